// What users choose by UCX_LAYOUT_MPI_*, in the environment or in UCX's configuration files; docs/options.md has the
// list.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ucxl::mpi
{

struct settings {
    bool is_enabled        = true;
    bool takes_messages    = true; // UCX_LAYOUT_MPI_CALLS
    bool takes_packs       = true;
    bool takes_collectives = true;
    bool takes_one_sided   = true;
    bool takes_all_types   = false;      // UCX_LAYOUT_MPI_TYPES=all: also those that MPI moves as fast
    std::optional<std::size_t> min_size; // UCX_LAYOUT_MPI_MIN_SIZE in bytes; none: measured, see rule.h
    std::size_t idle_windows  = 8;       // UCX_LAYOUT_MPI_WINDOWS, for each type and count
    bool always_takes_windows = false;   // UCX_LAYOUT_MPI_ENGINE=windows: also where ucp_datatypes.h would do
    bool is_one_pass          = true;    // UCX_LAYOUT_MPI_ONE_PASS, see one_pass.h
    bool shares_static_arrays = false;   // UCX_LAYOUT_MPI_STATIC_ARRAYS, see static_arrays.h
    bool has_report           = false;
    bool tells_status         = false; // UCX_LAYOUT_MPI_STATUS, see status.h
    bool prefers_ucx          = false; // UCX_LAYOUT_MPI_PML=ucx: Open MPI uses UCX if nobody chose a pml

    // Reads the environment once. A bad value is told on stderr, and the default is used.
    static const settings& get();
    // Takes from UCX's configuration files, once, what the environment does not say. Does nothing as long as there is
    // no UCX. While MPI starts, because nobody else may read the settings at the same time.
    static void complete();
};

// Whether the process has a UCX yet: MPI may load its own while it starts.
bool has_ucx() noexcept;

// Takes the options out of the environment while it exists: UCX would warn of each that it does not know itself.
class hidden_options
{
public:
    hidden_options();
    ~hidden_options();
    hidden_options(const hidden_options&)            = delete;
    hidden_options& operator=(const hidden_options&) = delete;

private:
    std::vector<std::pair<std::string, std::string>> _options;
};

// Whether UCX_LOG_LEVEL shows messages of this level.
bool is_logged_info();
// One line on stderr in the form of UCX's log, if UCX_LOG_LEVEL shows it.
[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);
// One line on stderr.
[[gnu::format(printf, 1, 2)]] void log_warn(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);

} // namespace ucxl::mpi
