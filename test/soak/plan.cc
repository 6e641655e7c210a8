#include "plan.h"

#include "integration/two_process/layouts.h"
#include "support/random.h"

#include <algorithm>
#include <array>
#include <format>

namespace ucxl::soak
{

namespace
{

using test::random;
using test::spec;

memory_kind draw_window(random& from)
{
    return from.one_in(3) ? memory_kind::shared : memory_kind::plain;
}

operation draw_operation(random& from, const round_plan& plan)
{
    operation drawn;
    drawn.kind   = plan.kinds()[from.below(plan.kinds().size())];
    drawn.from   = static_cast<unsigned>(from.below(plan.num_processes));
    drawn.to     = (drawn.from + 1 + static_cast<unsigned>(from.below(plan.num_processes - 1))) % plan.num_processes;
    drawn.seed   = from.next();
    drawn.source = from.one_in(4) ? memory_kind::contiguous : draw_window(from);
    drawn.target =
        drawn.kind == operation_kind::message && from.one_in(4) ? memory_kind::contiguous : draw_window(from);
    return drawn;
}

step draw_step(random& from, const round_plan& plan)
{
    step drawn;
    const auto number = 1 + from.below(2 * plan.num_processes);
    for (std::uint64_t i = 0; i < number; ++i) {
        drawn.operations.push_back(draw_operation(from, plan));
    }
    constexpr std::array kinds = {disturbance::none, disturbance::kill, disturbance::stop, disturbance::fork};
    // Pages that a card has registered are not there in a child, with all that is on them.
    drawn.disturbed = kinds[from.below(kinds.size() - (plan.has_cards ? 1 : 0))];
    drawn.victim    = static_cast<unsigned>(from.below(plan.num_processes));
    // Most operations are over after some milliseconds.
    drawn.delay_us = static_cast<unsigned>(from.one_in(2) ? from.below(500) : from.below(8000));
    return drawn;
}

} // namespace

// docs/limits.md has the reasons: the first generation of protocols neither puts into windows nor gets from them by
// messages. With error handling the second one never ends the first atomic operation that goes by messages, and finds
// no way for one by a card; the first one ends the process if the peer dies while UCX connects it for one.
std::span<const operation_kind> round_plan::kinds() const
{
    static constexpr std::array all = {operation_kind::message, operation_kind::put, operation_kind::get,
                                       operation_kind::add};
    static constexpr std::array old = {operation_kind::message, operation_kind::add};
    const bool is_old = std::ranges::contains(options, std::pair<std::string, std::string>("UCX_PROTO_ENABLE", "n"));
    const std::span<const operation_kind> possible = is_old ? std::span<const operation_kind>(old) : all;
    return has_error_handling ? possible.first(possible.size() - 1) : possible; // without the last one
}

round_plan plan_of(std::uint64_t seed)
{
    random from(seed);
    round_plan plan{.seed = seed, .options = {}, .steps = {}};
    plan.num_processes        = 2 + static_cast<unsigned>(from.below(5));
    const std::uint64_t ranks = (std::uint64_t{1} << plan.num_processes) - 1;
    plan.heaps                = from.one_in(2) ? 0 : from.one_in(2) ? ranks : from.next() & ranks;
    plan.num_contexts         = from.one_in(3) ? 2 + static_cast<unsigned>(from.below(2)) : 1;
    plan.shared_mb            = from.one_in(4) ? 16 * plan.num_processes * plan.num_contexts : 0;
    plan.has_cards            = from.one_in(4);
    plan.has_error_handling   = plan.has_cards || from.one_in(3);
    constexpr std::array tcp  = {"tcp,self,lay_copy,lay_shm", "tcp,self,lay_copy"};
    constexpr std::array host = {"all", "posix,self,lay_copy,lay_shm,lay_cma", "sysv,self,cma,lay_copy,lay_shm",
                                 "posix,cma,tcp,self,lay_copy,lay_shm", "posix,tcp,self,lay_copy,lay_shm"};
    constexpr std::array card = {"rc_x,self,lay_copy", "dc_x,self,lay_copy,lay_shm", "rc_v,self,lay_copy"};
    plan.options.emplace_back("UCX_TLS", plan.has_cards            ? card[from.below(card.size())]
                                         : plan.has_error_handling ? tcp[from.below(tcp.size())]
                                                                   : host[from.below(host.size())]);
    plan.options.emplace_back("UCX_PROTO_ENABLE", from.one_in(3) ? "n" : "y");
    if (plan.has_cards && from.one_in(2)) {
        plan.options.emplace_back("UCX_LAYOUT_KEYS_SAME_HOST", "always");
    }
    if (!plan.has_cards && from.one_in(4)) {
        plan.little     = from.one_in(2) ? shortage::descriptors : shortage::addresses;
        plan.has_little = static_cast<unsigned>(from.below(plan.num_processes));
        plan.left =
            static_cast<unsigned>(plan.little == shortage::descriptors ? 1 + from.below(8) : 8 + from.below(200));
    }
    if (plan.little == shortage::addresses) {
        plan.options.emplace_back("UCX_RNDV_FRAG_ALLOC_COUNT", "host:8"); // 4 MB at once, not 64
    }
    if (plan.heaps != 0 && from.one_in(2)) {
        plan.options.emplace_back("UCX_LAYOUT_HEAP_MIN", "32k");
    }
    plan.has_rendezvous = from.one_in(2);
    if (plan.has_rendezvous) {
        plan.options.emplace_back("UCX_RNDV_THRESH", "8k");
    }
    if (from.one_in(4)) {
        plan.options.emplace_back("UCX_LAYOUT_DIRECT_SHM_MIN", "4k"); // short ones in one pass, too
    }
    step& connecting = plan.steps.emplace_back();
    for (unsigned rank = 0; rank < plan.num_processes; ++rank) {
        for (unsigned other = 0; other < plan.num_processes; ++other) {
            if (other != rank) {
                connecting.operations.push_back({operation_kind::message, rank, other, from.next()});
            }
        }
    }
    const auto number = 4 + from.below(8);
    for (std::uint64_t i = 0; i < number; ++i) {
        plan.steps.push_back(draw_step(from, plan));
    }
    return plan;
}

side_layouts layouts_of(const operation& planned)
{
    random from(planned.seed);
    if (planned.kind == operation_kind::add) {
        const auto words = 1 + from.below(64);
        const auto apart = 8 * from.between(1, 20);
        return {spec::block(8), spec::strided(spec::block(8), {{words, apart}}), 8 * words};
    }
    constexpr std::array<std::uint64_t, 4> longest = {64, 4096, 100'000, 3'000'000};
    const auto length                              = 1 + from.below(longest[from.below(longest.size())]);
    const auto draw                                = [&](memory_kind kind) {
        return kind == memory_kind::contiguous ? spec::block(length) : two_process::spec_of_length(from, length);
    };
    const auto source = draw(planned.source);
    return {source, draw(planned.target), length};
}

std::string text_of(const operation& planned)
{
    constexpr std::array kinds    = {"message", "put", "get", "atomic"};
    constexpr std::array memories = {"host memory", "a window", "a shared window"};
    return std::format("{} of {} bytes from {} to {}, {} to {}", kinds[std::to_underlying(planned.kind)],
                       layouts_of(planned).length, planned.from, planned.to,
                       memories[std::to_underlying(planned.source)], memories[std::to_underlying(planned.target)]);
}

std::string round_plan::text() const
{
    std::string made = std::format("{} processes, {} contexts, {} steps{}{}", num_processes, num_contexts, steps.size(),
                                   has_cards ? ", cards" : "", has_error_handling ? ", error handling" : "");
    for (unsigned rank = 0; rank < num_processes; ++rank) {
        made += has_heap(rank) ? std::format(", the heap in {}", rank) : "";
    }
    if (shared_mb != 0) {
        made += std::format(", {} MB in /dev/shm", shared_mb);
    }
    if (little != shortage::none) {
        made += std::format(", rank {} gets {} more {}", has_little, left,
                            little == shortage::descriptors ? "descriptors" : "MB of addresses");
    }
    for (const auto& [name, value] : options) {
        made += std::format(", {}={}", name, value);
    }
    return made;
}

} // namespace ucxl::soak
