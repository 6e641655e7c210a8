#include "key_maker.h"
#include "softhca/core/keys/translation_list.h"
#include "softhca/core/keys/translation_pool.h"
#include "support/random.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

namespace ucxl::softhca::test
{

namespace
{

using ucxl::test::random;
using ucxl::test::run_seed;

class translation_pool : public ::testing::Test
{
protected:
    // The runs of live keys, by first entry. Fails when two overlap.
    void expect_apart(const std::vector<std::uint32_t>& keys)
    {
        std::map<std::uint32_t, std::uint32_t> runs;
        for (const std::uint32_t key : keys) {
            const mkey_record& record = make.record(key);
            ASSERT_TRUE(runs.emplace(record.entries_first, record.entries_room).second);
        }
        std::uint32_t end = 1;
        for (const auto& [first, room] : runs) {
            ASSERT_GE(first, end);
            end = first + room;
        }
        ASSERT_LE(end, max_translation_entries);
    }

    test_machine machine;
    key_maker make{machine.memory()};
};

TEST_F(translation_pool, runs_of_live_keys_never_overlap)
{
    random numbers(run_seed());
    std::vector<std::uint32_t> keys;
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned step = 0; step < 4000; step++) {
        SCOPED_TRACE("seed " + std::to_string(run_seed()) + " step " + std::to_string(step));
        if (keys.empty() || !numbers.one_in(3)) {
            const auto room = static_cast<std::uint32_t>(numbers.below(numbers.one_in(10) ? 5000 : 40) + 1);
            keys.push_back(make.empty(prm::mkey_access_mode::klm, room));
            ASSERT_NE(make.record(keys.back()).entries_first, 0u);
        } else {
            std::swap(keys[numbers.below(keys.size())], keys.back());
            make.destroy(keys.back());
            keys.pop_back();
        }
        if (numbers.one_in(200)) {
            rebuild_translation_pool(machine.memory());
        }
        if (step % 50 == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_apart(keys));
        }
    }
    ASSERT_NO_FATAL_FAILURE(expect_apart(keys));
}

TEST_F(translation_pool, run_given_back_is_used_again_and_empty)
{
    const std::uint32_t key   = make.list(std::vector<translation_entry>(100, klm(1, 2, 3)));
    const std::uint32_t first = make.record(key).entries_first;
    make.destroy(key);
    const std::uint32_t again = make.empty(prm::mkey_access_mode::klm, 70);
    EXPECT_EQ(make.record(again).entries_first, first);
    const auto entries = std::span(machine.memory().translations.entries).subspan(first, 70);
    EXPECT_TRUE(std::ranges::all_of(entries, [](const auto& entry) { return entry == translation_entry{}; }));
}

TEST_F(translation_pool, what_a_dead_process_took_comes_back_with_a_rebuild)
{
    const std::uint32_t kept = make.empty(prm::mkey_access_mode::klm, 8);
    const std::uint32_t lost = allocate_translations(machine.memory(), 1000);
    ASSERT_NE(lost, 0u);
    rebuild_translation_pool(machine.memory());
    const std::uint32_t next = make.empty(prm::mkey_access_mode::klm, 1000);
    EXPECT_EQ(make.record(next).entries_first, lost);
    expect_apart({kept, next});
}

TEST_F(translation_pool, all_of_it_can_be_used_and_one_more_entry_cannot)
{
    std::vector<std::uint32_t> keys;
    constexpr std::uint32_t quarter = max_translation_entries / 4;
    for (unsigned i = 0; i < 3; i++) {
        keys.push_back(make.empty(prm::mkey_access_mode::klm, quarter));
        ASSERT_NE(make.record(keys.back()).entries_first, 0u);
    }
    EXPECT_EQ(allocate_translations(machine.memory(), quarter), 0u) << "entry 0 is never given out";
    EXPECT_EQ(allocate_translations(machine.memory(), 0), 0u);
    EXPECT_EQ(allocate_translations(machine.memory(), UINT32_MAX), 0u);
    keys.push_back(make.empty(prm::mkey_access_mode::klm, quarter / 2));
    EXPECT_NE(make.record(keys.back()).entries_first, 0u);
    expect_apart(keys);
}

TEST_F(translation_pool, small_runs_side_by_side_become_a_large_one)
{
    std::vector<std::uint32_t> keys;
    constexpr std::uint32_t eighth = max_translation_entries / 8;
    for (unsigned i = 0; i < 7; i++) {
        keys.push_back(make.empty(prm::mkey_access_mode::klm, eighth));
        ASSERT_NE(make.record(keys.back()).entries_first, 0u);
    }
    for (unsigned i = 2; i < 6; i++) {
        make.destroy(keys[i]);
    }
    const std::uint32_t half = make.empty(prm::mkey_access_mode::klm, eighth * 4);
    EXPECT_NE(make.record(half).entries_first, 0u);
    expect_apart({keys[0], keys[1], keys[6], half});
}

TEST_F(translation_pool, large_run_is_split_when_no_small_one_is_left)
{
    std::vector<std::uint32_t> keys;
    constexpr std::uint32_t quarter = max_translation_entries / 4;
    for (unsigned i = 0; i < 3; i++) {
        keys.push_back(make.empty(prm::mkey_access_mode::klm, quarter));
    }
    keys.push_back(make.empty(prm::mkey_access_mode::klm, quarter / 2));
    make.destroy(keys[0]);
    keys.erase(keys.begin());
    for (unsigned i = 0; i < 11; i++) {
        keys.push_back(make.empty(prm::mkey_access_mode::klm, quarter / 8));
        ASSERT_NE(make.record(keys.back()).entries_first, 0u);
    }
    ASSERT_NO_FATAL_FAILURE(expect_apart(keys));
    EXPECT_EQ(allocate_translations(machine.memory(), quarter / 8), 0u);
}

TEST_F(translation_pool, entries_do_not_leave_the_room_of_their_key)
{
    const std::uint32_t key = make.empty(prm::mkey_access_mode::klm, 8);
    mkey_record& record     = make.record(key);
    const std::vector<translation_entry> four(4, klm(1, 2, 3));
    EXPECT_FALSE(store_translations(machine.memory(), record, 5, std::as_bytes(std::span(four))));
    EXPECT_FALSE(store_translations(machine.memory(), record, UINT32_MAX, std::as_bytes(std::span(four))));
    EXPECT_EQ(record.entries_used, 0u);
    EXPECT_TRUE(store_translations(machine.memory(), record, 4, std::as_bytes(std::span(four))));
    EXPECT_EQ(record.entries_used, 8u);
    record.mode = prm::mkey_access_mode::mtt;
    EXPECT_FALSE(store_translations(machine.memory(), record, 0, std::as_bytes(std::span(four))));
}

// The sum of each entry is right after any history of writes.
TEST_F(translation_pool, sums_follow_from_the_entries_whatever_the_order_of_writes)
{
    random numbers(run_seed());
    const std::uint32_t key = make.empty(prm::mkey_access_mode::klm, 64);
    mkey_record& record     = make.record(key);
    arena& memory           = machine.memory();
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned step = 0; step < 2000; step++) {
        SCOPED_TRACE("seed " + std::to_string(run_seed()) + " step " + std::to_string(step));
        const auto offset = static_cast<std::uint32_t>(numbers.below(64));
        std::vector<translation_entry> written(numbers.below(64 - offset + 1));
        std::ranges::generate(written, [&] { return klm(static_cast<std::uint32_t>(numbers.below(9)), 1, 2); });
        if (!written.empty() && offset == 0 && numbers.one_in(3)) {
            written[0] = repeat_header(1, 2, 3);
        }
        ASSERT_TRUE(store_translations(memory, record, offset, std::as_bytes(std::span(written))));
        if (record.backing == mkey_backing::klm) {
            std::uint64_t end = 0;
            for (std::uint32_t i = record.entries_first; i < record.entries_first + record.entries_used; i++) {
                end += prm::const_view<prm::klm>(memory.translations.entries[i]).get(prm::klm::byte_count);
                ASSERT_EQ(memory.translations.ends[i], end);
            }
        }
    }
}

} // namespace

} // namespace ucxl::softhca::test
