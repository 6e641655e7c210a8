// The two parts of an arena: windows that network cards may register, and windows that they must not.
#include "abi/memory_types.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/random.h"
#include "window_helpers.h"

#include <iterator>
#include <map>
#include <utility>
#include <vector>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr auto keys   = window_carrier::keys;
constexpr auto copies = window_carrier::copies;
constexpr auto staged = UCS_MEMORY_TYPE_ROCM;

std::unique_ptr<window_registry> registry_of_two(std::size_t length)
{
    return must(window_registry::create_private(length, {.staged = staged, .direct = std::nullopt}));
}

ucs_memory_type_t type_of(window_carrier carrier)
{
    return carrier == copies ? staged : UCS_MEMORY_TYPE_RDMA;
}

TEST(arena_parts, are_halves_with_a_margin_between_and_types_up_to_the_last_byte)
{
    auto made             = must(arena::reserve(256 * mib, {.staged = staged, .direct = std::nullopt}));
    const std::byte* base = made->base();
    ASSERT_EQ(made->parts().size(), 2u);
    EXPECT_EQ(made->length(), 256 * mib + arena::margin);
    EXPECT_EQ(made->parts()[0].first, 0u);
    EXPECT_EQ(made->parts()[0].count, 2u);
    EXPECT_EQ(made->parts()[1].first, 3u);
    EXPECT_EQ(made->parts()[1].count, 2u);
    const auto is = [&](ucs_memory_type_t type, std::uint64_t offset) {
        return ucxl::abi::is_known_as(type, base + offset);
    };
    EXPECT_TRUE(is(UCS_MEMORY_TYPE_RDMA, -arena::margin));
    EXPECT_TRUE(is(UCS_MEMORY_TYPE_RDMA, 0));
    EXPECT_TRUE(is(UCS_MEMORY_TYPE_RDMA, 128 * mib + arena::margin - 1));
    EXPECT_TRUE(is(staged, 128 * mib + arena::margin));
    EXPECT_TRUE(is(staged, 256 * mib + 2 * arena::margin - 1));
    EXPECT_FALSE(is(staged, 256 * mib + 2 * arena::margin));
    ASSERT_TRUE(made->clear(128 * mib + arena::margin, 64 * mib).has_value());
    EXPECT_TRUE(is(staged, 128 * mib + arena::margin));
    made.reset();
    EXPECT_FALSE(is(staged, 128 * mib + arena::margin));
    EXPECT_FALSE(is(UCS_MEMORY_TYPE_RDMA, 0));
}

TEST(arena_parts, one_slot_has_no_second_part)
{
    EXPECT_EQ(must(arena::reserve(127 * mib, {.staged = staged, .direct = std::nullopt}))->parts().size(), 1u);
    EXPECT_EQ(must(arena::reserve(128 * mib, {.staged = staged, .direct = std::nullopt}))->parts().size(), 2u);
}

TEST(registry_parts, a_window_tells_its_carrier_and_has_its_memory_type)
{
    const auto registry = registry_of_two(128 * mib);
    for (const auto carrier : {keys, copies}) {
        const window* const one = must(registry->create(binding_of(5000), carrier));
        EXPECT_EQ(one->carrier(), carrier);
        EXPECT_EQ(registry->memory_type_at(one->address()), type_of(carrier));
        EXPECT_TRUE(ucxl::abi::is_known_as(type_of(carrier), one->address() + 4999));
        EXPECT_TRUE(registry->in_arena(one->address()));
        EXPECT_TRUE(registry->touches_arena(one->address() - 1, 2));
    }
    const window* const undecided = must(registry->create(binding_of(1)));
    EXPECT_EQ(undecided->carrier(), window_carrier::undecided);
    EXPECT_EQ(registry->memory_type_at(undecided->address()), type_of(keys)) << "a network card may register it later";
    const layout_ptr block  = must(make_contig(1, {.length = 5000}));
    const window* const own = must(registry->allocate(must(pack_plan::compile(block)), copies));
    EXPECT_EQ(own->carrier(), copies);
    EXPECT_TRUE(own->is_identity());
}

TEST(registry_parts, without_a_staged_type_there_is_one_part_and_copied_windows_are_refused)
{
    const auto registry = private_registry(128 * mib);
    EXPECT_TRUE(registry->has_part(window_carrier::undecided));
    EXPECT_TRUE(registry->has_part(keys));
    EXPECT_FALSE(registry->has_part(copies));
    EXPECT_FALSE(registry->has_part(window_carrier::direct));
    EXPECT_EQ(registry->create(binding_of(1), copies).error().code, errc::invalid_param);
    EXPECT_EQ(registry->num_live(), 0u);
    EXPECT_EQ(must(registry->create(binding_of(128 * mib - 4096), keys))->carrier(), keys) << "it is the whole arena";
}

TEST(registry_parts, a_third_one_has_its_own_type_margin_and_addresses)
{
    constexpr auto direct = window_carrier::direct;
    const auto type       = static_cast<ucs_memory_type_t>(7);
    const auto registry   = must(window_registry::create_private(192 * mib, {.staged = staged, .direct = type}));
    EXPECT_EQ(registry->arena_length(), 192 * mib + 2 * arena::margin);
    const std::byte* last = registry->arena_base();
    for (const auto& [carrier, of_windows] :
         {std::pair{keys, UCS_MEMORY_TYPE_RDMA}, {copies, staged}, {direct, type}}) {
        window* const one = must(registry->create(binding_of(64 * mib - 4096), carrier));
        EXPECT_EQ(one->carrier(), carrier);
        EXPECT_EQ(one->address(), last);
        EXPECT_EQ(registry->memory_type_at(one->address()), of_windows);
        EXPECT_EQ(registry->memory_type_at(one->address() + 64 * mib - 1), of_windows);
        EXPECT_TRUE(ucxl::abi::is_known_as(of_windows, one->address()));
        EXPECT_TRUE(ucxl::abi::is_known_as(of_windows, one->address() + 64 * mib + arena::margin - 1)) << "the margin";
        EXPECT_EQ(registry->find(one->address() + 64 * mib - 4097, 1), one);
        EXPECT_EQ(registry->find(one->address() + 64 * mib, 1), nullptr);
        last = one->address() + 64 * mib + arena::margin;
    }
    EXPECT_FALSE(ucxl::abi::is_known_as(type, last));
    for (const auto full : {keys, copies, direct}) {
        EXPECT_FALSE(registry->create(binding_of(1), full).has_value()) << "each part has its own slots";
    }
}

TEST(registry_parts, a_missing_direct_one_is_not_replaced_by_another)
{
    const auto registry = registry_of_two(128 * mib);
    EXPECT_TRUE(registry->has_part(copies));
    EXPECT_FALSE(registry->has_part(window_carrier::direct));
    EXPECT_EQ(registry->create(binding_of(1), window_carrier::direct).error().code, errc::invalid_param);
}

TEST(registry_parts, addresses_around_the_margin_between_the_parts_are_in_no_window)
{
    const auto registry = registry_of_two(128 * mib);
    window* const low   = must(registry->create(binding_of(64 * mib - 4096), keys));
    window* const high  = must(registry->create(binding_of(64 * mib - 4096), copies));
    EXPECT_EQ(high->address() - low->address(), 128l << 20);
    EXPECT_EQ(registry->find(low->address() + low->length() - 1, 1), low);
    EXPECT_EQ(registry->find(high->address(), 1), high);
    for (const std::byte* const address : {low->address() + 64 * mib, high->address() - 1}) {
        EXPECT_EQ(registry->find(address, 1), nullptr);
        EXPECT_EQ(registry->memory_type_at(address), UCS_MEMORY_TYPE_RDMA);
        EXPECT_TRUE(registry->touches_arena(address, 1));
    }
    EXPECT_EQ(registry->find(high->address() - 1, 2), nullptr);
    EXPECT_EQ(registry->memory_type_at(registry->arena_base() - 1), UCS_MEMORY_TYPE_RDMA) << "a margin";
    EXPECT_EQ(registry->memory_type_at(high->address() + 64 * mib), staged) << "a margin";
}

TEST(registry_parts, one_that_is_full_leaves_the_other_usable)
{
    for (const auto full : {keys, copies}) {
        const auto other    = full == keys ? copies : keys;
        const auto registry = registry_of_two(256 * mib);
        EXPECT_EQ(registry->create(binding_of(128 * mib), full).error().code, errc::exceeds_limit);
        std::vector<window*> windows;
        while (const auto created = registry->create(binding_of(1), full)) {
            windows.push_back(*created);
        }
        EXPECT_EQ(windows.size(), 2u * 1024);
        EXPECT_EQ(registry->create(binding_of(40 * mib), full).error().code, errc::no_memory);
        window* const whole = must(registry->create(binding_of(128 * mib - 4096), other));
        registry->destroy(whole);
        for (window* const each : windows) {
            registry->destroy(each);
        }
        EXPECT_EQ(must(registry->create(binding_of(128 * mib - 4096), full))->carrier(), full)
            << "slots of chunks are given back to their own part";
        EXPECT_EQ(must(registry->create(binding_of(128 * mib - 4096), other))->carrier(), other);
    }
}

TEST(registry_parts, random_windows_are_never_confused)
{
    const std::uint64_t seed = run_seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    ucxl::test::random from(seed);
    const auto registry           = registry_of_two(1024 * mib);
    const std::byte* const middle = registry->arena_base() + 512 * mib + arena::margin;
    std::map<const std::byte*, window*> live;
    unsigned made[2]{};
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned step = 0; step < 5000; ++step) {
        if (from.one_in(2)) {
            const auto carrier = from.one_in(2) ? keys : copies;
            const auto created =
                registry->create(binding_of(from.below(std::uint64_t{1} << (1 + from.below(28)))), carrier);
            if (created) {
                ++made[carrier == copies];
                ASSERT_EQ((*created)->carrier(), carrier);
                ASSERT_EQ((*created)->address() >= middle, carrier == copies);
                ASSERT_TRUE(live.emplace((*created)->address(), *created).second);
            }
        } else if (!live.empty()) {
            const auto one = std::next(live.begin(), static_cast<std::ptrdiff_t>(from.below(live.size())));
            registry->destroy(one->second);
            live.erase(one);
        }
        const auto some                    = static_cast<std::ptrdiff_t>(live.empty() ? 0 : from.below(live.size()));
        const std::byte* const addresses[] = {registry->arena_base() + from.below(registry->arena_length()),
                                              live.empty() ? middle : std::next(live.begin(), some)->first};
        for (const std::byte* const address : addresses) {
            auto holder = live.upper_bound(address);
            const bool inside =
                holder != live.begin() && (--holder, address < holder->second->address() + holder->second->length());
            ASSERT_EQ(registry->find(address, 1), inside ? holder->second : nullptr);
            ASSERT_EQ(registry->memory_type_at(address), type_of(address >= middle ? copies : keys));
        }
    }
    EXPECT_GT(made[0], 100u);
    EXPECT_GT(made[1], 100u);
}

TEST(registry_parts, a_forked_process_has_both)
{
    const auto registry = registry_of_two(128 * mib);
    std::byte memory[16]{};
    window* const low  = must(registry->create(binding_of(16, memory), keys));
    window* const high = must(registry->create(binding_of(16, memory), copies));
    EXPECT_TRUE(holds_in_child([&] {
        if (registry->find(low->address(), 16) != low || registry->find(high->address(), 16) != high) {
            return false;
        }
        const std::byte* const stale = high->address();
        registry->destroy(high);
        window* const other = must(registry->create(binding_of(16, memory), copies));
        return other->carrier() == copies && registry->find(other->address(), 16) == other &&
               registry->find(stale, 16) == nullptr && registry->find(low->address(), 16) == low;
    }));
    EXPECT_EQ(registry->find(high->address(), 16), high) << "the parent keeps its own";
}

} // namespace
