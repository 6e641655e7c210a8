// Compares walks of random nested keys with the oracle.
#include "random_keys.h"
#include "reference_walk.h"
#include "support/random.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ucxl::softhca::test
{

namespace
{

using ucxl::test::random;
using ucxl::test::run_seed;

constexpr unsigned heaps         = 150;
constexpr unsigned keys_per_heap = 40;
constexpr unsigned walks         = 200;

// Random keys over the memory of one process, the same for the same seed and number.
struct random_heap {
    random_heap(std::uint64_t seed, unsigned number, unsigned num_keys) : numbers(seed * 1000 + number)
    {
        keys.make(num_keys);
    }

    random numbers;
    test_machine machine{{.devices = 1, .functions_per_device = 2}};
    test_process& process = machine.start();
    environment device{machine.memory(), process, process.id()};
    random_keys keys{machine.memory(), process.id(), process.allocate(4096),
                     [this](std::uint64_t bound) { return numbers.below(bound); }};
};

void expect_walk(environment& device, const key_user& user, const random_keys::target& at, right needed,
                 const reference_result& expected)
{
    key_walk walk(device, user, at.key, at.address, at.length, needed);
    std::size_t seen = 0;
    piece found;
    while (walk.next(found)) {
        ASSERT_NE(found.length, 0u);
        for (std::uint64_t i = 0; i < found.length; i++, seen++) {
            ASSERT_LT(seen, expected.bytes.size());
            ASSERT_TRUE(is_at(device.memory, expected.bytes[seen], found, i));
        }
    }
    ASSERT_EQ(seen, expected.bytes.size());
    ASSERT_EQ(walk.fault(), expected.fault);
    ASSERT_FALSE(walk.next(found)) << "a walk that has ended goes on";
    ASSERT_EQ(check_access(device, user, at.key, at.address, at.length, needed), expected.fault);
}

TEST(key_walk, finds_what_the_oracle_finds_in_random_nested_keys)
{
    const std::uint64_t seed = run_seed();
    std::array<unsigned, 16> faults{};
    std::uint64_t bytes = 0;
    // By hand: keys that refer to one another, of which none can be left out.
    for (unsigned heap = 0; heap < heaps; heap++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " heap " + std::to_string(heap));
        random_heap made(seed, heap, keys_per_heap);
        auto& [numbers, machine, process, device, keys] = made;
        for (unsigned i = 0; i < walks; i++) {
            random_keys::target at = keys.pick();
            at.length              = numbers.below(at.length + 2);
            key_user user          = keys.user();
            user.function          = numbers.one_in(10) ? 1 : 0;
            const auto needed      = static_cast<right>(numbers.below(5));
            const auto result      = reference_walk(machine.memory(), user, at.key, at.address, at.length, needed);
            ASSERT_NO_FATAL_FAILURE(expect_walk(device, user, at, needed, result));
            faults[static_cast<unsigned>(result.fault)]++;
            bytes += result.bytes.size();
        }
    }
    // A generator of only valid or only invalid keys would prove little.
    for (unsigned fault = 0; fault <= static_cast<unsigned>(access_fault::broken_entry); fault++) {
        EXPECT_GT(faults[fault], 10u) << "fault " << fault << " hardly ever happened";
    }
    EXPECT_GT(faults[0], heaps * walks / 4) << "few walks were good";
    EXPECT_GT(bytes, 100'000u);
}

// Lists of keys and of the key without memory; later ones are of earlier ones, too.
TEST(key_walk, finds_what_the_oracle_finds_where_entries_have_no_memory)
{
    const std::uint64_t seed = run_seed();
    std::size_t bytes        = 0;
    for (unsigned heap = 0; heap < heaps; heap++) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " heap " + std::to_string(heap));
        random_heap made(seed, heap, 10);
        auto& [numbers, machine, process, device, keys] = made;
        std::vector<random_keys::target> lists;
        for (unsigned list = 0; list < 8; list++) {
            std::vector<translation_entry> entries(numbers.below(12) + 1);
            std::uint64_t length = 0;
            for (translation_entry& entry : entries) {
                const bool is_deeper = !lists.empty() && numbers.one_in(4);
                const auto at        = is_deeper ? lists[numbers.below(lists.size())] : keys.pick();
                const auto part = static_cast<std::uint32_t>(numbers.below(std::min<std::uint64_t>(at.length, 60) + 1));
                entry =
                    numbers.one_in(3) ? klm(part, key_without_memory, numbers.next()) : klm(part, at.key, at.address);
                length += part;
            }
            lists.push_back({keys.maker().list(entries), 0, length});
        }
        for (unsigned i = 0; i < walks; i++) {
            const random_keys::target& list = lists[numbers.below(lists.size())];
            const std::uint64_t offset      = numbers.below(list.length + 1);
            const random_keys::target at{list.key, offset, numbers.below(list.length - offset + 1)};
            const auto needed = static_cast<right>(numbers.below(5));
            const auto result = reference_walk(machine.memory(), keys.user(), at.key, at.address, at.length, needed);
            ASSERT_NO_FATAL_FAILURE(expect_walk(device, keys.user(), at, needed, result));
            bytes += static_cast<std::size_t>(std::ranges::count(result.bytes, without_memory));
        }
    }
    EXPECT_GT(bytes, 10'000u) << "without memory";
}

} // namespace

} // namespace ucxl::softhca::test
