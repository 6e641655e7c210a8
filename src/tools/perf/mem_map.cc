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
    const auto image_of_layout = [&] {
        return layout_image::create(session.context(), repeat_to(layout, layout.packed_length(), "send"),
                                    place_of(options.memory.local));
    };
    const layout_image first = image_of_layout(), second = image_of_layout(), third = image_of_layout(),
                       fourth     = image_of_layout();
    const anonymous_mapping plain = anonymous_mapping::create(first.packed_length());
    const ucx_layout::window held = map(session, first.layout(), second.bases());
    ucx_layout::window rebound    = map(session, first.layout(), third.bases());
    bool at_third                 = true;

    // `cached` finds the window that is still held.
    const std::vector<operation> operations{
        {"fresh", [&] { map(session, first.layout(), first.bases()); }},
        {"cached", [&] { map(session, first.layout(), second.bases()); }},
        {"rebind",
         [&] {
             tools::check(rebound.rebind((at_third ? fourth : third).bases()), "ucp_layout_rebind");
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
