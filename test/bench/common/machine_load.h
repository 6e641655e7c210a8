// What others did on the CPUs of a measurement: the time in which these were busy, less that of the own processes.
//
//     const load_sample begin = sample_load({0, 1});
//     ...
//     const std::optional<double> part = part_of_others(begin, sample_load({0, 1}));
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace ucxl::bench
{

// In ticks of the kernel (sysconf(_SC_CLK_TCK)).
struct load_sample {
    unsigned long long busy = 0;     // of the CPUs, a hypervisor's other guests included
    unsigned long long all  = 0;     // busy or idle
    unsigned long long own  = 0;     // of this process and all below it
    bool is_known           = false; // the kernel tells all of these
};

// The CPUs' lines of /proc/stat (proc_stat(5)); `own` stays 0. Unknown: one of them has no line that can be read.
load_sample parse_cpu_times(std::string_view text, const std::vector<int>& cpus);

struct process_times {
    pid_t process, parent;
    unsigned long long ticks; // its own, and those of children it has waited for
};

// Of /proc/PID/stat (proc_pid_stat(5)). The name within may hold anything, spaces and brackets too.
std::optional<process_times> parse_process_times(std::string_view text);

// Of a process and all below it.
unsigned long long ticks_below(const std::vector<process_times>& all, pid_t top);

load_sample sample_load(const std::vector<int>& cpus);

// 0 to 1; nothing: it is not known, or no time has passed.
std::optional<double> part_of_others(const load_sample& begin, const load_sample& end);

// From here on a machine was not idle. One tick of 10 ms that is counted on the wrong side is no more than that in the
// shortest row.
inline constexpr double idle_part = 0.05;

} // namespace ucxl::bench
