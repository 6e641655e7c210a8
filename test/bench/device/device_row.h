// A row of `bench device`: one pattern by windows and by what stock UCX has, by messages or by puts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ucxl::bench
{

// Of one transfer, in both processes together.
struct device_cost {
    std::string method;
    double work_requests = 0; // in the steady state, as the next two
    double key_bindings  = 0;
    double commands      = 0;
    double bytes_copied  = 0; // bytes of the application's memory that CPUs copied
};

struct device_row {
    std::string pattern;
    std::string operation; // message, put
    std::size_t length     = 0;
    std::size_t num_blocks = 0; // of the sender
    bool has_keys_by_cost  = false;
    std::vector<device_cost> methods; // the first one is ours

    std::string name() const { return pattern + " " + operation; }
};

using device_rows = std::vector<device_row>;

// All rows of one operation, which have the same methods.
std::string device_table(const device_rows& rows, const std::string& operation);

// "device: N rows, N without a byte copied by a CPU, most work requests W (ROW)"
std::string device_summary(const device_rows& rows);

// What is asked of windows, and the rows that miss it.
std::string judge(const device_rows& rows);

std::string device_csv(const device_rows& rows);

} // namespace ucxl::bench
