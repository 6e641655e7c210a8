#include "cpus.h"

#include <sched.h>

#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <system_error>

namespace ucxl::bench
{

namespace
{

// Machines have more CPUs than cpu_set_t has bits.
constexpr int most_cpus = 1 << 14;

struct free_set {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

using cpu_set = std::unique_ptr<cpu_set_t, free_set>;

constexpr std::size_t set_size = CPU_ALLOC_SIZE(most_cpus);

cpu_set empty_set()
{
    cpu_set made(CPU_ALLOC(most_cpus));
    CPU_ZERO_S(set_size, made.get());
    return made;
}

void allow(std::initializer_list<int> cpus)
{
    const cpu_set set = empty_set();
    for (const int cpu : cpus) {
        CPU_SET_S(static_cast<std::size_t>(cpu), set_size, set.get());
    }
    if (sched_setaffinity(0, set_size, set.get()) != 0) {
        throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
    }
}

// Where the kernel does not say it, every CPU is a core of its own.
int topology_of(int cpu, const char* name, int otherwise)
{
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
    int number = -1;
    return file >> number && number >= 0 ? number : otherwise;
}

} // namespace

std::vector<int> allowed_cpus()
{
    const cpu_set set = empty_set();
    std::vector<int> made;
    if (sched_getaffinity(0, set_size, set.get()) != 0) {
        return made;
    }
    for (int cpu = 0; cpu < most_cpus; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), set_size, set.get())) {
            made.push_back(cpu);
        }
    }
    return made;
}

std::vector<cpu_place> usable_cpus()
{
    std::vector<cpu_place> made;
    for (const int cpu : allowed_cpus()) {
        made.push_back({cpu, topology_of(cpu, "core_id", cpu), topology_of(cpu, "physical_package_id", 0)});
    }
    return made;
}

std::optional<cpu_pair> choose_two(const std::vector<cpu_place>& usable)
{
    std::optional<cpu_pair> shared, distant;
    for (std::size_t i = 0; i < usable.size(); ++i) {
        for (std::size_t k = i + 1; k < usable.size(); ++k) {
            const cpu_place &one = usable[i], &other = usable[k];
            if (one.package != other.package) {
                distant = distant ? distant : std::optional(cpu_pair{one.cpu, other.cpu, false});
            } else if (one.core != other.core) {
                return cpu_pair{one.cpu, other.cpu, false};
            } else {
                shared = shared ? shared : std::optional(cpu_pair{one.cpu, other.cpu, true});
            }
        }
    }
    return distant ? distant : shared;
}

void keep_to(const cpu_pair& cpus)
{
    allow({cpus.first, cpus.second});
}

void take_one(bool is_first)
{
    const std::vector<int> allowed = allowed_cpus();
    if (allowed.size() == 2) {
        allow({allowed[is_first ? 0 : 1]});
    }
}

int pinned_to()
{
    const std::vector<int> allowed = allowed_cpus();
    return allowed.size() == 1 ? allowed[0] : -1;
}

std::string pin_text(const std::optional<cpu_pair>& cpus)
{
    if (!cpus) {
        return "NOT PINNED: only one CPU may be used, and the two processes of a pair share it";
    }
    return "pinned: the first process of every pair to CPU " + std::to_string(cpus->first) +
           ", the second one to CPU " + std::to_string(cpus->second) + (cpus->share_core ? ", WHICH ARE ONE CORE" : "");
}

} // namespace ucxl::bench
