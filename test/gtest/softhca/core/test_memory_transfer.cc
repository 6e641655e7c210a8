// Transfers between two lists of references.
#include "key_maker.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/keys/memory_transfer.h"
#include "support/random.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace ucxl::softhca::test
{

namespace
{

using outcome = transfer_result::outcome;
using ucxl::test::random;
using ucxl::test::run_seed;

class transfers : public ::testing::Test
{
protected:
    memory_side side(right needed, std::span<const reference> references) { return {make.user(), needed, references}; }

    transfer_result move(const reference& to, const reference& from, std::uint64_t length)
    {
        return transfer(device, side(right::local_write, {&to, 1}), side(right::local_read, {&from, 1}), length);
    }

    test_machine machine;
    test_process& near = machine.start();
    test_process& far  = machine.start();
    environment device{machine.memory(), near, near.id()};
    key_maker make{machine.memory()};
    std::span<std::byte> source      = near.allocate(8192);
    std::span<std::byte> destination = far.allocate(8192);
    std::uint32_t source_key         = make.direct(near.id(), source);
    std::uint32_t destination_key    = make.direct(far.id(), destination);
};

void fill(std::span<std::byte> bytes, random& numbers)
{
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(numbers.next()); });
}

TEST_F(transfers, eight_bytes_reach_another_process)
{
    std::uint64_t value = 0x1122334455667788;
    const auto result   = move({.key = destination_key, .address = address_of(destination) + 16, .length = 8},
                               {.length = 8, .data = reinterpret_cast<std::byte*>(&value)}, 8);
    EXPECT_EQ(result.result, outcome::done);
    EXPECT_EQ(std::memcmp(destination.data() + 16, &value, 8), 0);
    EXPECT_EQ(machine.memory().counts.bytes_moved, 8u);
    EXPECT_EQ(machine.memory().counts.translation_pieces, 1u);
}

TEST_F(transfers, more_pieces_than_a_batch_holds_keep_their_order)
{
    random numbers(run_seed());
    fill(source, numbers);
    // Every second byte, from the end.
    std::vector<translation_entry> entries;
    for (std::uint64_t i = 0; i < 4096; i++) {
        entries.push_back(klm(1, source_key, address_of(source) + 8190 - 2 * i));
    }
    const std::uint32_t strided = make.list(entries);
    const auto result           = move({.key = destination_key, .address = address_of(destination), .length = 4096},
                                       {.key = strided, .address = 0, .length = 4096}, 4096);
    EXPECT_EQ(result.result, outcome::done);
    for (std::size_t i = 0; i < 4096; i++) {
        ASSERT_EQ(destination[i], source[8190 - 2 * i]) << i;
    }
    EXPECT_EQ(machine.memory().counts.bytes_moved, 4096u);
    EXPECT_EQ(machine.memory().counts.translation_pieces, 4097u);
}

TEST_F(transfers, only_what_is_moved_is_checked)
{
    const auto result = move({.key = destination_key, .address = address_of(destination) + 8000, .length = 100'000},
                             {.key = source_key, .address = address_of(source), .length = 8192}, 192);
    EXPECT_EQ(result.result, outcome::done);
    const reference list[] = {{.key = source_key, .address = address_of(source), .length = 64},
                              {.key = source_key, .address = address_of(source) + 8160, .length = 64},
                              {.key = 0xbad, .address = 0, .length = 64}};
    const reference to{.key = destination_key, .address = address_of(destination), .length = 192};
    EXPECT_EQ(transfer(device, side(right::local_write, {&to, 1}), side(right::local_read, list), 96).result,
              outcome::done);
    EXPECT_EQ(transfer(device, side(right::local_write, {&to, 1}), side(right::local_read, list), 97).result,
              outcome::from_refused);
    EXPECT_EQ(move({.key = 1}, {.key = 2}, 0).result, outcome::done);
}

TEST_F(transfers, the_key_without_memory_reads_as_zeros_and_keeps_nothing)
{
    random numbers(run_seed());
    fill(source, numbers);
    fill(destination, numbers);
    const reference nothing{.key = key_without_memory, .address = 0x1234, .length = 1U << 20};
    const reference to{.key = destination_key, .address = address_of(destination), .length = 8192};
    const reference from{.key = source_key, .address = address_of(source), .length = 8192};
    const std::vector<std::byte> before(source.begin(), source.end());
    EXPECT_EQ(move(nothing, from, 8192).result, outcome::done);
    EXPECT_EQ(move(to, nothing, 8192).result, outcome::done) << "what was written before is not there";
    EXPECT_EQ(std::ranges::count(destination, std::byte{0}), 8192);
    EXPECT_TRUE(std::ranges::equal(source, before));
    EXPECT_EQ(move(nothing, nothing, 1U << 20).result, outcome::done) << "longer than one piece of it";
    EXPECT_EQ(check_access(device, make.user(), key_without_memory, 0, 8, right::remote_read),
              access_fault::no_such_key)
        << "for this side only";
}

TEST_F(transfers, refusal_says_which_side_and_why)
{
    const reference to{.key = destination_key, .address = address_of(destination), .length = 64};
    const reference from{.key = source_key, .address = address_of(source), .length = 64};
    const auto expect = [&](const transfer_result& got, outcome result, access_fault fault) {
        EXPECT_EQ(got.result, result);
        EXPECT_EQ(got.fault, fault);
    };
    expect(move({.key = 0xbad, .address = 1, .length = 64}, from, 64), outcome::to_refused, access_fault::no_such_key);
    expect(move(to, {.key = source_key, .address = 1, .length = 64}, 64), outcome::from_refused, access_fault::outside);
    make.record(destination_key).local_write = false;
    expect(move(to, from, 64), outcome::to_refused, access_fault::forbidden);
    make.record(destination_key).local_write = true;
    // References with fewer bytes than the transfer.
    expect(move(to, from, 65), outcome::to_refused, access_fault::outside);
    // Translated, but not mapped.
    make.record(source_key).host_address = 64;
    expect(move(to, from, 64), outcome::from_refused, access_fault::outside);
    make.record(source_key).host_address = address_of(source);
    far.kill();
    expect(move(to, from, 64), outcome::to_gone, access_fault::none);
    expect(move(from, to, 64), outcome::from_gone, access_fault::none);
}

} // namespace

} // namespace ucxl::softhca::test
