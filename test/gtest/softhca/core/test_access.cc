// The rules of address translation, one by one.
#include "key_maker.h"
#include "prm/umr.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ucxl::softhca::test
{

namespace
{

class access_rules : public ::testing::Test
{
protected:
    access_fault check(std::uint32_t key, std::uint64_t address, std::uint64_t length, right needed = right::local_read)
    {
        return check_access(device, make.user(), key, address, length, needed);
    }

    std::vector<piece> walk(std::uint32_t key, std::uint64_t address, std::uint64_t length)
    {
        std::vector<piece> pieces;
        key_walk walk(device, make.user(), key, address, length, right::local_read);
        piece found;
        while (walk.next(found)) {
            pieces.push_back(found);
        }
        EXPECT_EQ(walk.fault(), access_fault::none);
        return pieces;
    }

    std::uint64_t offset_of(const piece& found) const { return found.address - address_of(buffer); }

    test_machine machine{{.devices = 1, .functions_per_device = 2}};
    test_process& process = machine.start();
    environment device{machine.memory(), process, process.id()};
    key_maker make{machine.memory()};
    std::span<std::byte> buffer = process.allocate(4096);
    std::uint32_t all           = make.direct(process.id(), buffer);
    std::uint64_t base          = address_of(buffer);
};

TEST_F(access_rules, whole_range_of_a_direct_key_is_one_piece)
{
    const auto pieces = walk(all, base, 4096);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].space, space::process);
    EXPECT_EQ(pieces[0].client, process.id());
    EXPECT_EQ(pieces[0].address, base);
    EXPECT_EQ(pieces[0].length, 4096u);
}

TEST_F(access_rules, keys_below_the_first_one_need_remote_rights_unless_imaicl_says_otherwise)
{
    const std::uint32_t inner = make.list({klm(8, all, base)});
    const std::uint32_t outer = make.list({klm(8, inner, 0)});
    mkey_record& below        = make.record(inner);
    below.remote_read = below.remote_write = below.remote_atomic = false;
    for (const right needed : {right::remote_read, right::remote_write, right::remote_atomic}) {
        machine.memory().card.imaicl = true;
        EXPECT_EQ(check(outer, 0, 8, needed), access_fault::none);
        machine.memory().card.imaicl = false;
        EXPECT_EQ(check(outer, 0, 8, needed), access_fault::forbidden);
    }
    EXPECT_EQ(check(outer, 0, 8, right::local_write), access_fault::none);
}

TEST_F(access_rules, a_card_may_follow_fewer_levels)
{
    const std::uint32_t inner         = make.list({klm(8, all, base)});
    const std::uint32_t outer         = make.list({klm(8, inner, 0)});
    machine.memory().card.indirection = 1;
    EXPECT_EQ(check(inner, 0, 8), access_fault::none);
    EXPECT_EQ(check(outer, 0, 8), access_fault::too_deep);
}

TEST_F(access_rules, bounds_are_those_of_the_key_at_both_ends)
{
    EXPECT_EQ(check(all, base, 4096), access_fault::none);
    EXPECT_EQ(check(all, base + 4095, 1), access_fault::none);
    EXPECT_EQ(check(all, base - 1, 1), access_fault::outside);
    EXPECT_EQ(check(all, base + 4096, 1), access_fault::outside);
    EXPECT_EQ(check(all, base, 4097), access_fault::outside);
    EXPECT_EQ(check(all, base + 1, UINT64_MAX), access_fault::outside);
    EXPECT_EQ(check(all, base + 1, 0 - base), access_fault::outside);
}

TEST_F(access_rules, nothing_is_checked_for_no_bytes)
{
    EXPECT_EQ(check(0, 0, 0), access_fault::none);
    EXPECT_EQ(check(0xffffffff, base, 0), access_fault::none);
}

TEST_F(access_rules, key_is_found_by_index_and_variant)
{
    EXPECT_EQ(check(all ^ 1, base, 1), access_fault::no_such_key);
    EXPECT_EQ(check(all + 0x100, base, 1), access_fault::no_such_key);
    EXPECT_EQ(check(0, base, 1), access_fault::no_such_key);
    EXPECT_EQ(check(0xffffff00, base, 1), access_fault::no_such_key);
    make.destroy(all);
    EXPECT_EQ(check(all, base, 1), access_fault::no_such_key);
}

TEST_F(access_rules, numbers_that_mean_something_else_are_no_keys)
{
    for (unsigned i = 0; i < 3000; i++) {
        const std::uint32_t key = make.direct(process.id(), buffer);
        ASSERT_NE(key >> 8, prm::invalid_lkey >> 8);
        ASSERT_NE(key >> 8, prm::repeat_block_op >> 8);
        make.destroy(key);
    }
}

TEST_F(access_rules, key_belongs_to_a_function_a_domain_and_perhaps_a_queue_pair)
{
    key_user user = make.user();
    user.function = 1;
    EXPECT_EQ(check_access(device, user, all, base, 1, right::local_read), access_fault::no_such_key);
    user = make.user();
    user.pd++;
    EXPECT_EQ(check_access(device, user, all, base, 1, right::local_read), access_fault::wrong_pd);
    make.record(all).qpn = make.user().qpn;
    EXPECT_EQ(check(all, base, 1), access_fault::none);
    make.record(all).qpn++;
    EXPECT_EQ(check(all, base, 1), access_fault::wrong_qp);
}

TEST_F(access_rules, each_right_is_its_own)
{
    const std::pair<right, bool mkey_record::*> rights[] = {
        {right::local_read, &mkey_record::local_read},       {right::local_write, &mkey_record::local_write},
        {right::remote_read, &mkey_record::remote_read},     {right::remote_write, &mkey_record::remote_write},
        {right::remote_atomic, &mkey_record::remote_atomic},
    };
    for (const auto& [missing, flag] : rights) {
        const std::uint32_t key = make.direct(process.id(), buffer);
        make.record(key).*flag  = false;
        for (const auto& [needed, ignored] : rights) {
            EXPECT_EQ(check(key, base, 1, needed), needed == missing ? access_fault::forbidden : access_fault::none);
        }
    }
}

TEST_F(access_rules, entries_are_used_with_local_rights)
{
    const std::uint32_t list       = make.list({klm(8, all, base)});
    make.record(all).remote_read   = false;
    make.record(all).remote_write  = false;
    make.record(all).remote_atomic = false;
    EXPECT_EQ(check(list, 0, 8, right::remote_read), access_fault::none);
    EXPECT_EQ(check(list, 0, 8, right::remote_atomic), access_fault::none);
    make.record(all).local_write = false;
    EXPECT_EQ(check(list, 0, 8, right::remote_read), access_fault::none);
    EXPECT_EQ(check(list, 0, 8, right::remote_write), access_fault::forbidden);
    EXPECT_EQ(check(list, 0, 8, right::remote_atomic), access_fault::forbidden);
    make.record(all).local_read = false;
    EXPECT_EQ(check(list, 0, 8, right::remote_read), access_fault::forbidden);
}

TEST_F(access_rules, list_is_zero_based_or_starts_where_the_key_says)
{
    const std::uint32_t list = make.list({klm(16, all, base + 100), klm(0, all, base), klm(8, all, base + 200)});
    auto pieces              = walk(list, 0, 24);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(offset_of(pieces[0]), 100u);
    EXPECT_EQ(offset_of(pieces[1]), 200u);
    make.record(list).start_addr = 0x7000;
    pieces                       = walk(list, 0x7000 + 12, 8);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(offset_of(pieces[0]), 112u);
    EXPECT_EQ(pieces[0].length, 4u);
    EXPECT_EQ(offset_of(pieces[1]), 200u);
    EXPECT_EQ(pieces[1].length, 4u);
    EXPECT_EQ(check(list, 12, 8), access_fault::outside);
}

TEST_F(access_rules, entry_of_no_bytes_is_no_entry)
{
    // Some devices read a byte count of 0 as 2^32; this one does not report that.
    const std::uint32_t list = make.list({klm(0, all, base), klm(0, 0xdead00, 0), klm(8, all, base)});
    EXPECT_EQ(walk(list, 0, 8).size(), 1u);
    make.record(list).len = 1ULL << 32;
    EXPECT_EQ(check(list, 8, 1), access_fault::broken_entry);
}

TEST_F(access_rules, key_longer_than_its_entries_breaks_only_where_they_end)
{
    const std::uint32_t list = make.list({klm(8, all, base)});
    make.record(list).len    = 100;
    EXPECT_EQ(check(list, 0, 8), access_fault::none);
    EXPECT_EQ(check(list, 0, 9), access_fault::broken_entry);
    EXPECT_EQ(check(list, 50, 1), access_fault::broken_entry);
    const std::uint32_t blocks = make.blocks(3, {ksm(all, base)});
    make.record(blocks).len    = 100;
    EXPECT_EQ(check(blocks, 0, 8), access_fault::none);
    EXPECT_EQ(check(blocks, 8, 1), access_fault::broken_entry);
}

TEST_F(access_rules, blocks_are_counted_from_the_start_address)
{
    // The address of a block needs no alignment, nor does that of the key.
    const std::uint32_t blocks     = make.blocks(6, {ksm(all, base + 1), ksm(all, base + 1001)});
    make.record(blocks).start_addr = 0x1003;
    const auto pieces              = walk(blocks, 0x1003 + 60, 8);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(offset_of(pieces[0]), 61u);
    EXPECT_EQ(pieces[0].length, 4u);
    EXPECT_EQ(offset_of(pieces[1]), 1001u);
}

TEST_F(access_rules, block_may_reach_out_of_its_key_where_it_is_not_used)
{
    const std::uint32_t blocks = make.blocks(13, {ksm(all, base - 4096)});
    EXPECT_EQ(check(blocks, 4096, 4096), access_fault::none);
    EXPECT_EQ(check(blocks, 4095, 2), access_fault::outside);
}

TEST_F(access_rules, repeat_block_takes_all_entries_in_each_turn)
{
    const std::uint32_t key =
        make.list({repeat_header(12, 3, 2), repeat_entry(100, 8, all, base), repeat_entry(10, 4, all, base + 2000)});
    const auto pieces = walk(key, 0, 36);
    std::vector<std::uint64_t> offsets;
    std::ranges::transform(pieces, std::back_inserter(offsets), [&](const piece& one) { return offset_of(one); });
    EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 2000, 100, 2010, 200, 2020}));
    EXPECT_EQ(check(key, 0, 37), access_fault::outside);
    const auto middle = walk(key, 12 + 9, 1);
    ASSERT_EQ(middle.size(), 1u);
    EXPECT_EQ(offset_of(middle[0]), 2011u);
}

TEST_F(access_rules, repeat_block_that_contradicts_itself_is_broken_when_used)
{
    const auto first        = repeat_entry(100, 8, all, base);
    const std::uint32_t sum = make.list({repeat_header(9, 3, 1), first});
    EXPECT_EQ(check(sum, 0, 1), access_fault::broken_entry);
    const std::uint32_t missing = make.list({repeat_header(8, 3, 2), first});
    EXPECT_EQ(check(missing, 0, 1), access_fault::broken_entry);
    const std::uint32_t empty = make.list({repeat_header(0, 3, 1), repeat_entry(100, 0, all, base)});
    make.record(empty).len    = 10;
    EXPECT_EQ(check(empty, 0, 1), access_fault::broken_entry);
    const std::uint32_t turns = make.list({repeat_header(8, 3, 1), first});
    make.record(turns).len    = 25;
    EXPECT_EQ(check(turns, 0, 24), access_fault::none);
    EXPECT_EQ(check(turns, 0, 25), access_fault::broken_entry);
    EXPECT_EQ(check(turns, 24, 1), access_fault::broken_entry);
}

TEST_F(access_rules, repeat_block_of_all_turns_a_counter_holds_starts_anywhere_at_once)
{
    const std::uint32_t key = make.list({repeat_header(1, UINT32_MAX, 1), repeat_entry(0, 1, all, base + 5)});
    const auto last         = walk(key, std::uint64_t{UINT32_MAX} - 1, 1);
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(offset_of(last[0]), 5u);
    EXPECT_EQ(check(key, UINT32_MAX, 1), access_fault::outside);
}

TEST_F(access_rules, four_levels_above_memory_are_allowed_and_five_are_not)
{
    std::uint32_t key = all;
    std::uint64_t at  = base;
    for (unsigned level = 1; level <= max_indirection; level++, at = 0) {
        key = make.list({klm(8, key, at), klm(8, key, at)});
        EXPECT_EQ(check(key, 0, 16), access_fault::none) << "level " << level;
    }
    key = make.list({klm(8, key, 0)});
    EXPECT_EQ(check(key, 0, 8), access_fault::too_deep);
}

TEST_F(access_rules, key_made_of_itself_is_too_deep)
{
    const std::uint32_t own                                               = make.list({klm(8, 0, 0)});
    machine.memory().translations.entries[make.record(own).entries_first] = klm(8, own, 0);
    EXPECT_EQ(check(own, 0, 8), access_fault::too_deep);
    const std::uint32_t first                                               = make.list({klm(8, 0, 0)});
    const std::uint32_t second                                              = make.blocks(3, {ksm(first, 0)});
    machine.memory().translations.entries[make.record(first).entries_first] = klm(8, second, 0);
    EXPECT_EQ(check(second, 0, 8), access_fault::too_deep);
}

TEST_F(access_rules, key_that_is_free_or_empty_is_not_bound)
{
    const std::uint32_t list = make.list({klm(8, all, base)});
    make.record(list).free   = true;
    EXPECT_EQ(check(list, 0, 8), access_fault::not_bound);
    const std::uint32_t above = make.list({klm(8, list, 0)});
    EXPECT_EQ(check(above, 0, 8), access_fault::not_bound);
    const std::uint32_t empty = make.empty(prm::mkey_access_mode::klm, 4);
    make.record(empty).free   = false;
    make.record(empty).len    = 8;
    EXPECT_EQ(check(empty, 0, 8), access_fault::not_bound);
}

TEST_F(access_rules, addresses_do_not_wrap)
{
    const std::uint32_t key     = make.direct(process.id(), buffer);
    make.record(key).start_addr = 0 - std::uint64_t{100};
    EXPECT_EQ(check(key, 0 - std::uint64_t{100}, 100), access_fault::none);
    EXPECT_EQ(check(key, 0 - std::uint64_t{100}, 101), access_fault::outside);
    EXPECT_EQ(check(key, 0, 1), access_fault::outside);
    make.record(key).length64 = true;
    EXPECT_EQ(check(key, 0 - std::uint64_t{100}, 101), access_fault::outside);
    make.record(key).start_addr   = 0;
    make.record(key).host_address = 0 - std::uint64_t{10};
    EXPECT_EQ(check(key, 5, 5), access_fault::none);
    EXPECT_EQ(check(key, 5, 6), access_fault::outside);
    EXPECT_EQ(check(key, 10, 1), access_fault::outside);
    const std::uint32_t list = make.list({klm(100, all, 0 - std::uint64_t{50})});
    EXPECT_EQ(check(list, 60, 1), access_fault::broken_entry);
    const std::uint32_t block = make.list({repeat_header(1, 10, 1), repeat_entry(100, 1, all, 0 - std::uint64_t{50})});
    EXPECT_EQ(check(block, 5, 1), access_fault::broken_entry);
}

TEST_F(access_rules, device_memory_is_in_the_arena_and_ends_with_the_device)
{
    const std::uint32_t key = make.memic(4096 + 64, 128);
    const auto pieces       = walk(key, 8, 16);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].space, space::engine);
    EXPECT_EQ(pieces[0].address, address_of(machine.memory().memic[0].bytes) + 4096 + 64 + 8);
    const std::uint32_t end = make.memic(memic_bytes - 8, 100);
    EXPECT_EQ(check(end, 0, 8), access_fault::none);
    EXPECT_EQ(check(end, 0, 9), access_fault::outside);
    const std::uint32_t none = make.memic(memic_bytes * max_devices, 100);
    EXPECT_EQ(check(none, 0, 8), access_fault::outside);
}

TEST_F(access_rules, alias_is_its_target_in_another_function_and_domain)
{
    const std::uint32_t target = make.list({klm(8, all, base + 8)});
    const std::uint32_t alias  = make.alias(target, 1, 99);
    const key_user user{1, 99, 5};
    const auto use = [&](right needed = right::remote_write) {
        return check_access(device, user, alias, 0, 8, needed);
    };
    EXPECT_EQ(use(), access_fault::none);
    EXPECT_EQ(check_access(device, {1, 98, 5}, alias, 0, 8, right::remote_write), access_fault::wrong_pd);
    EXPECT_EQ(check_access(device, {0, 99, 5}, alias, 0, 8, right::remote_write), access_fault::no_such_key);
    EXPECT_EQ(check_access(device, user, target, 0, 8, right::remote_write), access_fault::no_such_key);
    make.record(target).remote_write = false;
    EXPECT_EQ(use(), access_fault::forbidden);
    EXPECT_EQ(use(right::remote_read), access_fault::none);
    make.record(target).access_key[31] = 1;
    EXPECT_EQ(use(right::remote_read), access_fault::wrong_vhca);
    make.record(target).access_key[31]   = 0;
    make.record(target).shared_with_vhca = false;
    EXPECT_EQ(use(right::remote_read), access_fault::wrong_vhca);
    make.record(target).shared_with_vhca = true;
    make.record(alias).target_vhca++;
    EXPECT_EQ(use(right::remote_read), access_fault::wrong_vhca);
    make.record(alias).target_vhca--;
    make.record(target).free = true;
    EXPECT_EQ(use(right::remote_read), access_fault::not_bound);
    make.destroy(target);
    EXPECT_EQ(use(right::remote_read), access_fault::no_such_key);
}

TEST_F(access_rules, alias_of_an_alias_is_refused)
{
    const std::uint32_t alias = make.alias(all, 0, make.pd);
    EXPECT_EQ(check(alias, base, 8), access_fault::none);
    const std::uint32_t second = make.alias(alias, 0, make.pd);
    EXPECT_EQ(check(second, base, 8), access_fault::broken_entry);
}

TEST_F(access_rules, many_empty_entries_cost_no_time)
{
    // Looking at each of them would take 2^32 steps.
    std::vector<translation_entry> gap(65536, klm(0, 0, 0));
    gap.front() = gap.back()  = klm(1, all, base);
    const std::uint32_t inner = make.list(gap);
    const std::uint32_t outer = make.list(std::vector<translation_entry>(65536, klm(2, inner, 0)));
    EXPECT_EQ(check(outer, 0, 2 * 65536), access_fault::none);
}

} // namespace

} // namespace ucxl::softhca::test
