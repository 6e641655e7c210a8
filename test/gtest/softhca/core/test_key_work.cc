// UMR: the keys and fields that it changes, and those that it leaves unchanged.
#include "prm/umr.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/keys/key_work.h"
#include "test_host.h"
#include "umr_request_maker.h"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <cstring>

namespace ucxl::softhca::test
{

namespace
{

using prm::cqe_syndrome;

constexpr std::uint32_t own_qpn   = 0x123;
constexpr std::uint32_t other_qpn = 0x124;

class umr : public ::testing::Test
{
protected:
    umr() { qp.pd = make.pd; }

    cqe_syndrome run(const umr_request_maker& request) { return run(request.bytes()); }
    cqe_syndrome run(const std::vector<std::byte>& wqe, std::uint32_t qpn = own_qpn)
    {
        return execute_umr(device, qp, qpn, wqe);
    }

    umr_request_maker change(std::uint32_t key) { return {key, own_qpn}; }

    access_fault check(std::uint32_t key, std::uint64_t address, std::uint64_t length, right needed = right::local_read)
    {
        return check_access(device, make.user(), key, address, length, needed);
    }

    // What must not change when a WQE is refused.
    std::vector<std::byte> snapshot(std::uint32_t key)
    {
        const mkey_record& record = make.record(key);
        const auto entries        = std::as_bytes(
            std::span(machine.memory().translations.entries).subspan(record.entries_first, record.entries_room));
        std::vector<std::byte> kept(sizeof(record) + entries.size());
        std::memcpy(kept.data(), &record, sizeof(record));
        std::ranges::copy(entries, kept.begin() + sizeof(record));
        return kept;
    }

    void expect_refused(const umr_request_maker& request, std::uint32_t key,
                        cqe_syndrome why = cqe_syndrome::memory_window_bind)
    {
        const auto before = snapshot(key);
        EXPECT_EQ(run(request), why);
        EXPECT_EQ(snapshot(key), before);
    }

    test_machine machine;
    test_process& process = machine.start();
    environment device{machine.memory(), process, process.id()};
    key_maker make{machine.memory()};
    std::span<std::byte> buffer = process.allocate(4096);
    std::uint32_t all           = make.direct(process.id(), buffer);
    std::uint64_t base          = address_of(buffer);
    std::uint32_t list          = make.empty(prm::mkey_access_mode::klm, 8);
    qp_record qp;
};

TEST_F(umr, binds_a_free_key_to_inline_entries)
{
    EXPECT_EQ(check(list, 0, 1), access_fault::not_bound);
    EXPECT_EQ(run(change(list)
                      .free(false)
                      .len(12)
                      .access(true, true, false, false)
                      .entries({klm(8, all, base), klm(4, all, base + 100)})),
              no_syndrome);
    EXPECT_EQ(check(list, 0, 12), access_fault::none);
    EXPECT_EQ(check(list, 0, 12, right::local_write), access_fault::none);
    EXPECT_EQ(check(list, 0, 12, right::remote_read), access_fault::none);
    EXPECT_EQ(check(list, 0, 12, right::remote_write), access_fault::forbidden);
    EXPECT_EQ(check(list, 0, 13), access_fault::outside);
    EXPECT_EQ(machine.memory().counts.umr_inline_entries, 4u);
}

TEST_F(umr, binds_to_entries_behind_a_pointer)
{
    const std::vector<translation_entry> entries(64, klm(4, all, base + 8));
    std::memcpy(buffer.data() + 2048, entries.data(), 1024);
    const std::uint32_t large = make.empty(prm::mkey_access_mode::klm, 64);
    EXPECT_EQ(run(change(large).free(false).len(256).entries_at(all, base + 2048, 64)), no_syndrome);
    EXPECT_EQ(check(large, 0, 256), access_fault::none);
    EXPECT_EQ(machine.memory().counts.umr_pointer_entries, 64u);
    EXPECT_EQ(machine.memory().counts.umr_inline_entries, 0u);
}

TEST_F(umr, leaves_all_as_it_was_when_entries_cannot_be_read)
{
    ASSERT_EQ(run(change(list).free(false).len(8).entries({klm(8, all, base)})), no_syndrome);
    expect_refused(change(list).len(99).entries_at(all, base + 4096, 8), list, cqe_syndrome::local_protection);
    expect_refused(change(list).len(99).entries_at(all ^ 1, base, 8), list, cqe_syndrome::local_protection);
    make.record(all).host_address += 4096;
    expect_refused(change(list).len(99).entries_at(all, base, 8), list, cqe_syndrome::local_protection);
}

TEST_F(umr, reads_entries_only_from_multiples_of_2_kb)
{
    for (const std::uint64_t offset : {64U, 1024U, 2048U + 64U}) {
        expect_refused(change(list).len(99).entries_at(all, base + offset, 8), list, cqe_syndrome::memory_window_bind);
    }
    machine.memory().card.list_alignment = 64; // a rule that is broken on purpose
    EXPECT_EQ(run(change(list).len(99).entries_at(all, base + 64, 8)), no_syndrome);
}

TEST_F(umr, does_what_the_card_can_do)
{
    ASSERT_EQ(run(change(list).free(false).len(8).entries({klm(8, all, base)})), no_syndrome);
    machine.memory().card.umr_modifies_atomic = false;
    expect_refused(change(list).access(true, true, true, true), list, cqe_syndrome::memory_window_bind);
    expect_refused(change(list).access(true, true, true, false), list, cqe_syndrome::memory_window_bind);
    machine.memory().card.takes_unset_atomic_bit = true; // a rule that is broken on purpose
    expect_refused(change(list).access(true, true, true, true), list, cqe_syndrome::memory_window_bind);
    EXPECT_EQ(run(change(list).access(true, true, true, false)), no_syndrome);
    EXPECT_EQ(run(change(list).len(4)), no_syndrome);
    machine.memory().card.repeat_blocks = false;
    translation_entry header{};
    const prm::view<prm::repeat_block_header> block(header);
    block.put<prm::repeat_block_op>(prm::repeat_block_header::op);
    expect_refused(change(list).entries({header}), list, cqe_syndrome::memory_window_bind);
}

TEST_F(umr, writes_only_fields_that_the_mask_names)
{
    ASSERT_EQ(run(change(list).free(false).len(8).entries({klm(8, all, base)})), no_syndrome);
    const mkey_record before = make.record(list);
    const auto same_but      = [&](auto&& apart) {
        mkey_record expected = before;
        apart(expected);
        mkey_record& now = make.record(list);
        EXPECT_EQ(std::memcmp(&expected, &now, sizeof(now)), 0); // NOLINT(bugprone-suspicious-memory-comparison)
        now = before;
    };
    ASSERT_EQ(run(change(list)), no_syndrome);
    same_but([](mkey_record&) {});
    ASSERT_EQ(run(change(list).len(5)), no_syndrome);
    same_but([](mkey_record& key) { key.len = 5; });
    ASSERT_EQ(run(change(list).start(0x1234567890)), no_syndrome);
    same_but([](mkey_record& key) { key.start_addr = 0x1234567890; });
    ASSERT_EQ(run(change(list).variant(0x77)), no_syndrome);
    same_but([](mkey_record& key) { key.variant = 0x77; });
    ASSERT_EQ(run(change(list).qpn(other_qpn)), no_syndrome);
    same_but([](mkey_record& key) { key.qpn = other_qpn; });
    ASSERT_EQ(run(change(list).free(true)), no_syndrome);
    same_but([](mkey_record& key) { key.free = true; });
    ASSERT_EQ(run(change(list).access(false, false, true, true)), no_syndrome);
    same_but([](mkey_record& key) { key.remote_write = key.remote_atomic = true; });
    // Bits that mlx5dv.h does not name, with garbage in the context: lr and en_rinval are set there or not.
    ASSERT_EQ(run(change(list).mask(1ULL << 17)), no_syndrome);
    same_but([](mkey_record& key) { key.local_read = true; });
    ASSERT_EQ(run(change(list).mask(1ULL << 8)), no_syndrome);
    same_but([](mkey_record& key) { key.remote_invalidate = true; });
    ASSERT_EQ(run(change(list).pd(make.pd)), no_syndrome);
    same_but([](mkey_record&) {});
}

TEST_F(umr, needs_a_key_that_allows_it)
{
    const auto bind = [&](std::uint32_t key) { return change(key).free(false).len(8).entries({klm(8, all, base)}); };
    expect_refused(bind(all), all);
    make.record(all).umr_en = true;
    expect_refused(bind(all), all);
    EXPECT_EQ(run(bind(0xffffff00)), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(run(bind(0)), cqe_syndrome::memory_window_bind);
    make.record(list).umr_en = false;
    expect_refused(bind(list), list);
    make.record(list).umr_en = true;
    make.record(list).pd++;
    expect_refused(bind(list), list);
    make.record(list).pd--;
    qp.owner.function = 1;
    expect_refused(bind(list), list);
    qp.owner.function = 0;
    EXPECT_EQ(run(bind(list)), no_syndrome);
    make.destroy(list);
    EXPECT_EQ(run(bind(list)), cqe_syndrome::memory_window_bind);
}

TEST_F(umr, refuses_what_is_not_modelled)
{
    expect_refused(change(list).pd(make.pd + 1), list);
    expect_refused(change(list).mask(1ULL << 12), list); // bsf_enable, and garbage says enabled
    expect_refused(change(list).mask(1ULL << 9), list);
    expect_refused(change(list).mask(1ULL << 63), list);
    expect_refused(change(list).signature(4), list);
}

TEST_F(umr, keeps_entries_within_the_room_of_the_key)
{
    const std::vector<translation_entry> four(4, klm(2, all, base));
    EXPECT_EQ(run(change(list).free(false).len(16).entries(four)), no_syndrome);
    EXPECT_EQ(run(change(list).offset(4).entries(four)), no_syndrome);
    EXPECT_EQ(check(list, 0, 16), access_fault::none);
    expect_refused(change(list).offset(8).entries(four), list);
    expect_refused(change(list).offset(0xfffc).entries(four), list);
    expect_refused(change(list).entries(std::vector<translation_entry>(12, klm(2, all, base))), list);
    expect_refused(change(list).offset(2).entries(four), list);
    expect_refused(change(list).entries(four).octowords(3), list);
    expect_refused(change(list).entries_at(all, base, 12), list);
}

TEST_F(umr, replaces_entries_at_an_offset)
{
    ASSERT_EQ(run(change(list).free(false).len(16).entries(std::vector<translation_entry>(8, klm(2, all, base)))),
              no_syndrome);
    ASSERT_EQ(run(change(list).offset(4).entries({klm(8, all, base + 512), {}, {}, {}})), no_syndrome);
    key_walk walk(device, make.user(), list, 8, 8, right::local_read);
    piece found;
    ASSERT_TRUE(walk.next(found));
    EXPECT_EQ(found.address, base + 512);
    EXPECT_EQ(found.length, 8u);
}

TEST_F(umr, turns_a_list_into_a_repeat_block_and_back)
{
    ASSERT_EQ(run(change(list).free(false).len(12).entries({repeat_header(4, 3, 1), repeat_entry(64, 4, all, base)})),
              no_syndrome);
    EXPECT_EQ(make.record(list).backing, mkey_backing::repeat);
    EXPECT_EQ(check(list, 0, 12), access_fault::none);
    ASSERT_EQ(run(change(list).len(12).entries({klm(12, all, base)})), no_syndrome);
    EXPECT_EQ(make.record(list).backing, mkey_backing::klm);
    EXPECT_EQ(check(list, 0, 12), access_fault::none);
}

TEST_F(umr, changes_the_size_of_blocks)
{
    const std::uint32_t blocks = make.empty(prm::mkey_access_mode::ksm, 4);
    // The garbage in the context says 2^5.
    ASSERT_EQ(run(change(blocks).free(false).len(64).mask(1ULL << 1).entries({ksm(all, base), ksm(all, base + 1000)})),
              no_syndrome);
    EXPECT_EQ(make.record(blocks).log_entity_size, 5);
    EXPECT_EQ(check(blocks, 0, 64), access_fault::none);
}

TEST_F(umr, refuses_a_request_that_is_not_whole)
{
    const std::vector<std::byte> whole = change(list).free(false).len(8).entries({klm(8, all, base)}).bytes();
    for (std::size_t size = 0; size < whole.size(); size++) {
        std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(run(cut), cqe_syndrome::local_qp_operation) << size;
        if (size >= 16) {
            cut[7] = static_cast<std::byte>(size / 16); // ds says the length of the bytes
            EXPECT_EQ(run(cut), cqe_syndrome::local_qp_operation) << size;
        }
    }
    EXPECT_EQ(run(whole), no_syndrome);
    // Claims more entries than there are.
    EXPECT_EQ(run(change(list).entries({klm(8, all, base)}).octowords(8)), cqe_syndrome::local_qp_operation);
}

class windows : public umr
{
protected:
    windows() { make.record(list).remote_invalidate = true; }

    std::uint32_t key_with(std::uint8_t variant) const { return (list & ~0xffU) | variant; }

    access_fault remote_write(std::uint32_t key, std::uint32_t qpn = own_qpn)
    {
        return check_access(device, {make.function, make.pd, qpn}, key, base + 64, 32, right::remote_write);
    }
};

TEST_F(windows, of_type_1_are_bound_again_and_unbound)
{
    const std::uint32_t first = key_with(1);
    ASSERT_EQ(run(bind_type_1(list, first, all, base + 64, 32, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(first), access_fault::none);
    EXPECT_EQ(remote_write(first, other_qpn), access_fault::none);
    EXPECT_EQ(remote_write(list), access_fault::no_such_key);
    const std::uint32_t second = key_with(2);
    ASSERT_EQ(run(bind_type_1(first, second, all, base + 64, 31, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(first), access_fault::no_such_key);
    EXPECT_EQ(remote_write(second), access_fault::outside);
    const std::uint32_t third = key_with(3);
    ASSERT_EQ(run(bind_type_1(second, third, all, base + 64, 0, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(third), access_fault::not_bound);
}

TEST_F(windows, of_type_2_belong_to_their_queue_pair_and_are_bound_once)
{
    const std::uint32_t bound = key_with(1);
    ASSERT_EQ(run(bind_type_2(list, bound, all, base + 64, 32, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(bound), access_fault::none);
    EXPECT_EQ(remote_write(bound, other_qpn), access_fault::wrong_qp);
    EXPECT_EQ(run(bind_type_2(bound, key_with(2), all, base + 64, 32, own_qpn)), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(run(local_invalidate(bound, other_qpn), other_qpn), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(remote_write(bound), access_fault::none);
    ASSERT_EQ(run(local_invalidate(bound, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(bound), access_fault::no_such_key) << "the variant is that of the request: 0";
    EXPECT_EQ(remote_write(key_with(0)), access_fault::not_bound);
    // libmlx5 names the key with its number before the bind.
    ASSERT_EQ(run(bind_type_2(bound, key_with(2), all, base + 64, 32, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(key_with(2)), access_fault::none);
}

TEST_F(windows, grant_no_more_than_the_memory_below)
{
    const std::uint32_t bound    = key_with(1);
    make.record(all).local_write = false;
    ASSERT_EQ(run(bind_type_2(list, bound, all, base + 64, 32, own_qpn)), no_syndrome);
    EXPECT_EQ(remote_write(bound), access_fault::forbidden);
    EXPECT_EQ(check(bound, base + 64, 32, right::remote_read), access_fault::none);
}

TEST_F(windows, are_invalidated_by_a_peer_if_they_allow_it)
{
    const std::uint32_t bound = key_with(1);
    ASSERT_EQ(run(bind_type_2(list, bound, all, base + 64, 32, own_qpn)), no_syndrome);
    EXPECT_EQ(invalidate_key(device, qp, other_qpn, bound, true), cqe_syndrome::remote_access);
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, bound ^ 1, true), cqe_syndrome::remote_access);
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, all, true), cqe_syndrome::remote_access);
    qp.pd++;
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, bound, true), cqe_syndrome::remote_access);
    qp.pd--;
    make.record(bound).remote_invalidate = false;
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, bound, true), cqe_syndrome::remote_access);
    EXPECT_EQ(remote_write(bound), access_fault::none);
    make.record(bound).remote_invalidate = true;
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, bound, true), no_syndrome);
    EXPECT_EQ(remote_write(bound), access_fault::not_bound);
}

TEST_F(windows, are_invalidated_locally_whatever_the_peer_may)
{
    const std::uint32_t bound = key_with(1);
    ASSERT_EQ(run(bind_type_2(list, bound, all, base + 64, 32, own_qpn)), no_syndrome);
    make.record(bound).remote_invalidate = false;
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, 0xdead00, false), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(invalidate_key(device, qp, own_qpn, bound, false), no_syndrome);
    EXPECT_EQ(remote_write(bound), access_fault::not_bound);
}

} // namespace

} // namespace ucxl::softhca::test
