// How windows of this host can travel, each way forced by options, beside what UCP chooses.
#pragma once

#include "bench/common/cpus.h"
#include "transfer_row.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::bench
{

// Over memory of the library, that of the other process can be mapped.
inline constexpr const char* by_chosen = "chosen"; // what UCP chooses
inline constexpr const char* by_staged = "staged"; // through UCX's posix transport
inline constexpr const char* by_pulled = "pulled"; // the receiver copies in one pass
inline constexpr const char* by_pushed = "pushed"; // the sender does
inline constexpr const char* by_shared = "shared"; // both do
inline constexpr const char* by_kernel = "kernel"; // the kernel copies for the receiver
// Over memory of the application.
inline constexpr const char* by_app_chosen = "app chosen";
inline constexpr const char* by_app_staged = "app staged";
inline constexpr const char* by_app_kernel = "app kernel";

// A choice is as good as the best way from here on.
inline constexpr double as_good = 0.95;

struct way_options {
    effort how;
    data_kind data;
    unsigned buffers;             // that are used in turn
    std::optional<cpu_pair> cpus; // of the two processes
};

// Rows of transfer_cases(): of those that `choose` returns a case for. Each is printed when it has been measured.
// Throws std::runtime_error.
transfer_rows measure_ways(const way_options& options,
                           const std::function<std::optional<layout_case>(const case_maker& from)>& choose);

// Rows in which UCP's choice takes longer than the best way.
std::string judge_ways(const transfer_rows& rows);

} // namespace ucxl::bench
