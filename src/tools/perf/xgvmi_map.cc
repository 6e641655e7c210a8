#include "xgvmi_map.h"

#include "ticks.h"

#include <algorithm>
#include <array>

namespace ucxl::perf
{

namespace
{

constexpr std::uint64_t default_iterations = 1100;

enum step : std::size_t { host_map, host_export, host_unmap, dpu_import, dpu_key, dpu_release, host, dpu, num_steps };
constexpr std::array<const char*, num_steps> names{"host map", "host export", "host unmap", "dpu import",
                                                   "dpu rkey", "dpu unmap",   "host",       "dpu"};
using step_seconds = std::array<double, num_steps>;

class lap_timer
{
public:
    double lap()
    {
        const std::uint64_t begin = std::exchange(_last, ticks_now());
        return static_cast<double>(_last - begin) * seconds_per_tick();
    }

private:
    std::uint64_t _last = ticks_now();
};

step_seconds share_once(session& session, memory_owner& owner, method_kind kind)
{
    step_seconds seconds{};
    session.peer().check_peer(); // it takes no part, and might be gone
    const exported_memory exported = owner.map(kind);
    lap_timer timer;
    imported_memory imported = imported_memory::create(session.context(), exported);
    seconds[dpu_import]      = timer.lap();
    tools::pack_key(session.context(), imported.memh());
    seconds[dpu_key]         = timer.lap();
    imported                 = {};
    seconds[dpu_release]     = timer.lap();
    const owner_times theirs = owner.unmap();
    seconds[host_map]        = theirs.map;
    seconds[host_export]     = theirs.pack;
    seconds[host_unmap]      = theirs.unmap;
    seconds[host]            = theirs.map + theirs.pack + theirs.unmap;
    seconds[dpu]             = seconds[dpu_import] + seconds[dpu_key] + seconds[dpu_release];
    return seconds;
}

} // namespace

std::vector<report_row> measure_xgvmi_map(const options& options, session& session, memory_owner& owner,
                                          method_kind kind)
{
    std::vector<report_row> rows;
    for (const char* const name : names) {
        rows.push_back({.name = name, .statistics = method_statistics(1)});
    }
    const std::uint64_t total  = options.iterations != 0 ? options.iterations : default_iterations;
    const std::uint64_t rounds = std::min<std::uint64_t>(options.rounds, total);
    for (std::uint64_t i = 0; i < options.warmup.value_or(total / rounds / 10 + 1); ++i) {
        share_once(session, owner, kind);
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::array<std::vector<double>, num_steps> seconds;
        for (std::uint64_t i = 0; i < part_of_round(total, rounds, round); ++i) {
            const step_seconds once = share_once(session, owner, kind);
            for (std::size_t each = 0; each < num_steps; ++each) {
                seconds[each].push_back(once[each]);
            }
        }
        for (std::size_t each = 0; each < num_steps; ++each) {
            rows[each].statistics.add_round(seconds[each]);
        }
    }
    return rows;
}

} // namespace ucxl::perf
