#include "mem_map.h"

#include "layout_image.h"
#include "registered_memory.h"
#include "settings.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <functional>

namespace ucxl::perf
{

namespace
{

constexpr std::uint64_t default_iterations = 11000;

struct operation {
    std::string name;
    std::function<void()> once;
};

ucx_layout::window map(session& session, const ucx_layout::layout& layout, std::span<void* const> bases)
{
    const tools::held_log log;
    return tools::value_of(ucx_layout::window::map(session.context(), layout, bases), log, "mapping a window");
}

// Other addresses for the same layout. They are mapped, but never accessed.
std::vector<void*> shifted(std::span<void* const> bases, std::size_t times)
{
    const std::size_t distance = 4096 * times;
    std::vector<void*> result(bases.begin(), bases.end());
    std::ranges::for_each(result, [&](void*& base) { base = static_cast<std::byte*>(base) + distance; });
    return result;
}

void measure(const operation& operation, std::uint64_t count, method_statistics& into)
{
    into.begin();
    for (std::uint64_t i = 0; i < count; ++i) {
        operation.once();
        into.lap();
    }
    into.end(count);
}

} // namespace

std::vector<report_row> measure_mem_map(const options& options, session& session, const ucx_layout::layout& layout,
                                        reporter& report)
{
    const layout_image image = layout_image::create(
        session.context(), repeat_to(layout, layout.packed_length(), "send"), place_of(options.memory.local));
    const anonymous_mapping plain = anonymous_mapping::create(image.packed_length());
    const std::vector<void*> first(image.bases().begin(), image.bases().end());
    const std::vector<void*> second = shifted(first, 1);
    const ucx_layout::window held   = map(session, image.layout(), second);
    const std::vector<void*> third  = shifted(first, 2);
    const std::vector<void*> fourth = shifted(first, 3);
    ucx_layout::window rebound      = map(session, image.layout(), third);
    bool at_third                   = true;

    // `cached` finds the window that is still held.
    const std::vector<operation> operations{
        {"fresh", [&] { map(session, image.layout(), first); }},
        {"cached", [&] { map(session, image.layout(), second); }},
        {"rebind",
         [&] {
             tools::check(rebound.rebind(at_third ? fourth : third), "ucp_layout_rebind");
             at_third = !at_third;
         }},
        {"ucp_mem_map", [&] { registered_memory::create(session.context(), plain.data(), plain.size()); }},
    };
    std::vector<report_row> rows;
    for (const operation& each : operations) {
        rows.push_back({.name = each.name, .statistics = method_statistics(1)});
    }
    const std::uint64_t total  = options.iterations != 0 ? options.iterations : default_iterations;
    const std::uint64_t rounds = std::min<std::uint64_t>(options.rounds, total);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < operations.size(); ++i) {
            measure(operations[i], part_of_round(total, rounds, round), rows[i].statistics);
            report.progress(rows[i]);
        }
    }
    return rows;
}

} // namespace ucxl::perf
