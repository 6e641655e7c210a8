// `contrib/dev bench kernels`: packing and unpacking by plans against hand-written loops and against memcpy of the same
// number of bytes, whole and in the fragments of a transport, and copies from layout to layout, measured in turn, so
// that a slow moment of the machine hits all of them. Figures are medians; results are compared first. `--targets`
// takes the kernels of each instruction set by themselves.
#include "kernel_cases.h"
#include "support/must.h"
#include "targets.h"

#include "ucs/pack/pack_plan.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

struct options {
    std::vector<std::size_t> payloads{65536, 1048576, 16777216};
    std::string only;
    bool demo_only    = false;
    bool targets_only = false;
    effort how{.rounds = 31, .sample_time = 400e-6, .most_time = no_limit};
};

// Memory of one case, with contents.
class bench_memory
{
public:
    explicit bench_memory(const kernel_case& of) : _bytes(of.extent + 64)
    {
        for (std::size_t i = 0; i < _bytes.size(); ++i) {
            _bytes[i] = static_cast<std::byte>(i * 7 + i / 255);
        }
        for (const std::size_t offset : of.base_offsets) {
            _bases.push_back(_bytes.data() + offset);
        }
    }

    std::byte* data() { return _bytes.data(); }
    const std::vector<std::byte>& bytes() const { return _bytes; }
    base_list bases() const { return _bases; }

private:
    std::vector<std::byte> _bytes;
    std::vector<std::byte*> _bases;
};

void expect_same(const kernel_case& of, const std::vector<std::byte>& one, const std::vector<std::byte>& other)
{
    if (one != other) {
        throw std::runtime_error(of.name + ": the plan and the hand loop differ");
    }
}

void compare_results(const kernel_case& of, const pack_plan& plan)
{
    bench_memory memory(of), other(of);
    std::vector<std::byte> packed(plan.packed_length()), by_hand(packed.size());
    plan.gather(memory.bases(), 0, packed.size(), packed.data());
    of.hand.pack(by_hand.data(), memory.data());
    expect_same(of, packed, by_hand);
    std::ranges::reverse(packed);
    plan.scatter(memory.bases(), 0, packed.size(), packed.data());
    of.hand.unpack(other.data(), packed.data());
    expect_same(of, memory.bytes(), other.bytes());
}

void row(const effort& how, const kernel_case& of)
{
    const pack_plan_ptr plan = test::must(pack_plan::compile(of.what));
    compare_results(of, *plan);
    bench_memory memory(of);
    const std::size_t length = plan->packed_length();
    std::vector<std::byte> packed(length, std::byte{1}), other(length, std::byte{2});
    const auto copy = [&] { std::memcpy(other.data(), packed.data(), length); };

    const std::vector<measured> pack =
        alternate_calls(how, {[&] { plan->gather(memory.bases(), 0, length, packed.data()); },
                              [&] { of.hand.pack(packed.data(), memory.data()); }, copy});
    const std::vector<measured> unpack =
        alternate_calls(how, {[&] { plan->scatter(memory.bases(), 0, length, packed.data()); },
                              [&] { of.hand.unpack(memory.data(), packed.data()); }, copy});
    const auto rate = [&](double time) { return static_cast<double>(length) / time * 1e-9; };
    fmt::print("{:26} {:6.2f} {:6.2f}  {:6.2f} {:6.2f}  {:6.2f}  {:5.2f} {:5.2f}  {:5.2f} {:5.2f}\n", of.name,
               rate(pack[0].time), rate(unpack[0].time), rate(pack[1].time), rate(unpack[1].time), rate(pack[2].time),
               pack[1].ratio, unpack[1].ratio, pack[2].ratio, unpack[2].ratio);
    std::fflush(stdout);
}

void rows(const options& wanted, const std::vector<kernel_case>& cases, const std::string& title)
{
    fmt::print("\n{:26}            plan            hand   memcpy   plan/hand   plan/memcpy\n", title);
    fmt::print("{:26} {:>6} {:>6}  {:>6} {:>6}  {:>6}  {:>5} {:>5}  {:>5} {:>5}\n", "layout", "pack", "unpack", "pack",
               "unpack", "", "pack", "unpk", "pack", "unpk");
    for (const kernel_case& of : cases) {
        if (of.name.find(wanted.only) != std::string::npos) {
            row(wanted.how, of);
        }
    }
}

// A transport's fragment: no multiple of any block.
constexpr std::size_t fragment = 8212;

void fragment_row(const effort& how, const kernel_case& of)
{
    const pack_plan_ptr plan = test::must(pack_plan::compile(of.what));
    bench_memory memory(of);
    const std::size_t length = plan->packed_length();
    std::vector<std::byte> packed(length, std::byte{1});
    const auto each = [&](auto&& move) {
        for (std::size_t at = 0; at < length; at += fragment) {
            move(at, std::min(fragment, length - at));
        }
    };
    const auto gather = [&](std::size_t at, std::size_t size) {
        plan->gather(memory.bases(), at, size, packed.data() + at);
    };
    const auto scatter = [&](std::size_t at, std::size_t size) {
        plan->scatter(memory.bases(), at, size, packed.data() + at);
    };
    constexpr unsigned calls = 512;
    const auto tiny          = [&](auto&& move) {
        for (unsigned i = 0; i < calls; ++i) {
            move((i * 7919ul * 8) % (length - 8), 8);
        }
    };
    const std::vector<measured> pack =
        alternate_calls(how, {[&] { each(gather); }, [&] { gather(0, length); },
                              [&] { of.hand.pack(packed.data(), memory.data()); }, [&] { tiny(gather); }});
    const std::vector<measured> unpack =
        alternate_calls(how, {[&] { each(scatter); }, [&] { scatter(0, length); },
                              [&] { of.hand.unpack(memory.data(), packed.data()); }, [&] { tiny(scatter); }});
    fmt::print("{:26} {:6.2f} {:6.2f}  {:6.2f} {:6.2f}  {:6.1f} {:6.1f}\n", of.name, pack[2].ratio, unpack[2].ratio,
               pack[1].ratio, unpack[1].ratio, pack[3].time * 1e9 / calls, unpack[3].time * 1e9 / calls);
    std::fflush(stdout);
}

// What a transport does: fragments in sequence, each call beginning anew. And the cost of a call that moves next to
// nothing.
void fragments(const options& wanted, const std::vector<kernel_case>& cases, const std::string& title)
{
    fmt::print("\n{} in fragments of {} bytes: fragments/hand; fragments/one call; ns of a call for 8 bytes anywhere\n",
               title, fragment);
    fmt::print("{:26} {:>6} {:>6}  {:>6} {:>6}  {:>6} {:>6}\n", "layout", "pack", "unpack", "pack", "unpack", "ns",
               "ns");
    for (const kernel_case& of : cases) {
        if (of.name.find(wanted.only) != std::string::npos) {
            fragment_row(wanted.how, of);
        }
    }
}

// From layout to layout: one pass against unpacking what was packed.
void copies(const options& wanted)
{
    fmt::print("\n1024 KB from layout to layout, GB/s: copy; pack and unpack through a buffer; ratio\n");
    const std::vector<kernel_case> all = kernel_cases(1048576);
    for (const auto& [to, from] :
         {std::pair{1, 1}, {4, 4}, {6, 6}, {7, 7}, {1, 4}, {4, 1}, {7, 1}, {10, 10}, {13, 13}, {14, 15}}) {
        const kernel_case &target_case = all[static_cast<std::size_t>(to)],
                          &origin_case = all[static_cast<std::size_t>(from)];
        if ((target_case.name + origin_case.name).find(wanted.only) == std::string::npos) {
            continue;
        }
        const pack_plan_ptr target = test::must(pack_plan::compile(target_case.what)),
                            origin = test::must(pack_plan::compile(origin_case.what));
        bench_memory target_memory(target_case), origin_memory(origin_case);
        const std::size_t length = std::min(target->packed_length(), origin->packed_length());
        std::vector<std::byte> packed(length);
        const std::vector<measured> times = alternate_calls(
            wanted.how,
            {[&] { pack_plan::copy(*target, target_memory.bases(), 0, *origin, origin_memory.bases(), 0, length); },
             [&] {
                 origin->gather(origin_memory.bases(), 0, length, packed.data());
                 target->scatter(target_memory.bases(), 0, length, packed.data());
             }});
        const auto rate = [&](double time) { return static_cast<double>(length) / time * 1e-9; };
        fmt::print("{:56} {:6.2f} {:6.2f}  {:5.2f}\n", origin_case.name + " -> " + target_case.name,
                   rate(times[0].time), rate(times[1].time), times[1].ratio);
        std::fflush(stdout);
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    CLI::App app("packing and unpacking by plans, against hand loops and memcpy");
    options wanted;
    bool quick = false;
    app.add_flag("--quick", quick, "under 30 s, coarser");
    app.add_option("--only", wanted.only, "layouts whose name holds this text");
    app.add_flag("--demo", wanted.demo_only, "the layouts of the demo only");
    app.add_flag("--targets", wanted.targets_only, "only the kernels of each instruction set that this processor has");
    app.add_option("--payload", wanted.payloads, "packed bytes of every layout");
    CLI11_PARSE(app, argc, argv);
    if (quick) {
        wanted.how.rounds      = 9;
        wanted.how.sample_time = 200e-6;
        wanted.payloads        = {65536, 1048576};
    }
    try {
        if (wanted.targets_only) {
            print_targets(wanted.how);
            return 0;
        }
        if (!wanted.demo_only) {
            for (const std::size_t payload : wanted.payloads) {
                rows(wanted, kernel_cases(payload), fmt::format("{} KB packed, GB/s", payload / 1024));
            }
            fragments(wanted, kernel_cases(1048576), "1024 KB");
        }
        rows(wanted, demo_cases(), "as in the demo, GB/s");
        fragments(wanted, demo_cases(), "the same");
        if (!wanted.demo_only) {
            copies(wanted);
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench kernels: {}\n", error.what());
        return 1;
    }
    return 0;
}
