// The two CPUs of a measurement. A benchmark keeps itself, and with it all that it starts, to two CPUs; each of the two
// processes of a pair then takes one of them. Without UCX: the peers' programs include it too.
//
//     main:           keep_to(choose_two(usable_cpus()))
//     each process:   take_one(is_first)
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ucxl::bench
{

struct cpu_place {
    int cpu, core, package; // cores are numbered within a package
};

struct cpu_pair {
    int first, second;
    bool share_core; // nothing else was there
};

// Those that this process may run on, in ascending order.
std::vector<int> allowed_cpus();
std::vector<cpu_place> usable_cpus();

// Two cores of one package where there are such. Nothing: there are not two CPUs.
std::optional<cpu_pair> choose_two(const std::vector<cpu_place>& usable);

// This process and what it starts from now on. Throws std::system_error.
void keep_to(const cpu_pair& cpus);

// Of exactly two allowed CPUs the first or the second one; where there are more or less, nothing happens. Throws
// std::system_error.
void take_one(bool is_first);
// The only CPU that this thread may run on; -1: there are several.
int pinned_to();

// For the head of the tables.
std::string pin_text(const std::optional<cpu_pair>& cpus);

} // namespace ucxl::bench
