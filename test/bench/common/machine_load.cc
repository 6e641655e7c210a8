#include "machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace ucxl::bench
{

namespace
{

// The next word of a text, which is taken away from it.
std::string_view take_word(std::string_view& text)
{
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    return word;
}

template <typename T>
bool take_number(std::string_view& text, T& number)
{
    const std::string_view word = take_word(text);
    const auto [end, error]     = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc{} && end == word.data() + word.size();
}

std::string read(const std::filesystem::path& file)
{
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Those whose numbers name a folder of /proc.
std::vector<process_times> all_processes()
{
    std::vector<process_times> made;
    std::error_code ended;
    for (const auto& folder : std::filesystem::directory_iterator("/proc", ended)) {
        const std::string name = folder.path().filename();
        if (name.find_first_not_of("0123456789") == std::string::npos) {
            if (const auto one = parse_process_times(read(folder.path() / "stat"))) {
                made.push_back(*one);
            }
        }
    }
    return made;
}

} // namespace

load_sample parse_cpu_times(std::string_view text, const std::vector<int>& cpus)
{
    load_sample made;
    std::set<std::string> missing;
    for (const int cpu : cpus) {
        missing.insert("cpu" + std::to_string(cpu));
    }
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        // user nice system idle iowait irq softirq steal; what follows is part of the first two
        std::array<unsigned long long, 8> times{};
        const std::string name(take_word(line));
        if (!missing.contains(name) ||
            !std::ranges::all_of(times, [&](unsigned long long& time) { return take_number(line, time); })) {
            continue;
        }
        missing.erase(name);
        for (std::size_t i = 0; i < times.size(); ++i) {
            const bool is_idle = i == 3 || i == 4;
            made.busy += is_idle ? 0 : times[i];
            made.all += times[i];
        }
    }
    // Some containers show nothing but zeros.
    made.is_known = missing.empty() && made.all > 0;
    return made;
}

std::optional<process_times> parse_process_times(std::string_view text)
{
    process_times made{};
    const std::size_t name = text.find('('), after = text.rfind(')');
    if (name == std::string_view::npos || after == std::string_view::npos || after < name) {
        return std::nullopt;
    }
    std::string_view head = text.substr(0, name), rest = text.substr(after + 1);
    if (!take_number(head, made.process)) {
        return std::nullopt;
    }
    take_word(rest); // its state
    if (!take_number(rest, made.parent)) {
        return std::nullopt;
    }
    constexpr unsigned between = 9; // from the process group to the last of the page faults
    for (unsigned i = 0; i < between; ++i) {
        take_word(rest);
    }
    for (unsigned i = 0; i < 4; ++i) { // utime stime cutime cstime
        unsigned long long ticks = 0;
        if (!take_number(rest, ticks)) {
            return std::nullopt;
        }
        made.ticks += ticks;
    }
    return made;
}

unsigned long long ticks_below(const std::vector<process_times>& all, pid_t top)
{
    std::multimap<pid_t, const process_times*> children;
    unsigned long long sum = 0;
    for (const process_times& one : all) {
        children.emplace(one.parent, &one);
        sum += one.process == top ? one.ticks : 0;
    }
    std::set<pid_t> seen{top}; // numbers that are given out anew could make a circle
    std::vector<pid_t> open{top};
    while (!open.empty()) {
        const auto [begin, end] = children.equal_range(open.back());
        open.pop_back();
        for (auto child = begin; child != end; ++child) {
            if (seen.insert(child->second->process).second) {
                sum += child->second->ticks;
                open.push_back(child->second->process);
            }
        }
    }
    return sum;
}

load_sample sample_load(const std::vector<int>& cpus)
{
    load_sample made = parse_cpu_times(read("/proc/stat"), cpus);
    made.own         = ticks_below(all_processes(), getpid());
    return made;
}

std::optional<double> part_of_others(const load_sample& begin, const load_sample& end)
{
    if (!begin.is_known || !end.is_known || end.all <= begin.all || end.busy < begin.busy) {
        return std::nullopt;
    }
    const auto all   = static_cast<double>(end.all - begin.all);
    const auto busy  = static_cast<double>(end.busy - begin.busy);
    const double own = end.own > begin.own ? static_cast<double>(end.own - begin.own) : 0;
    return std::clamp((busy - own) / all, 0.0, 1.0);
}

} // namespace ucxl::bench
