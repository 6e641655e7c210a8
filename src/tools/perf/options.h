// The command line of ucx_layout_perftest. Letters that ucx_perftest has mean the same here.
#pragma once

#include "oob.h"
#include "test_kinds.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::perf
{

enum class output_format { table, csv, json };

struct options {
    std::string host; // empty: this is the server
    bool self        = false;
    test_kind test   = test_kind::tag_lat;
    bool test_is_set = false;
    std::vector<std::uint64_t> sizes; // empty: the packed length of the layout
    std::vector<std::string> layouts; // none, one for both sides, or send and receive
    std::vector<method_kind> methods;
    std::uint64_t iterations = 0; // of each method; 0: as many as take `seconds`
    std::optional<std::uint64_t> warmup;
    std::optional<std::uint32_t> outstanding;
    std::uint32_t rounds = 11;
    double seconds       = 1.0;
    double rank          = 50.0;
    std::vector<int> cpus;
    std::uint16_t port = 13337;
    bool final_only    = false;
    bool validate      = true;
    bool allocate      = false;
    bool live_data     = false;
    bool pass_memh     = false;
    memory_pair memory;
    std::string host_device = "mlx5_0";     // of xgvmi tests with --self: of the owner of the memory,
    std::string dpu_device  = "mlx5_1";     // and of the DPU process and its peer
    std::string owner;                      // where its server is, HOST or HOST:PORT; empty: --self starts it
    std::optional<std::uint32_t> processes; // that add to one variable; a server with it owns the variable
    output_format format = output_format::table;
    std::optional<int> inherited; // in the server of --self: its end of the socket
};

// What a client with these options comes for, and what UCX has to have for it.
errand errand_of(const options& options);
std::uint64_t features_of(errand purpose);

// Returns nullopt if help or version was printed, or if the command line is wrong and was explained; *exit_status is
// then the exit status.
std::optional<options> parse_options(int argc, char** argv, int* exit_status);

} // namespace ucxl::perf
