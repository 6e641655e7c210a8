// Atomic operations: the arithmetic against a bit-by-bit oracle, and the data that is transferred.
#include "connected_pair.h"

#include "softhca/core/queues/atomics.h"
#include "support/random.h"

namespace ucxl::softhca::test
{

namespace
{

using ucxl::test::random;
using ucxl::test::run_seed;

std::uint64_t add_bit_by_bit(std::uint64_t old, std::uint64_t operand, std::uint64_t ends)
{
    std::uint64_t sum   = 0;
    std::uint64_t carry = 0;
    for (unsigned i = 0; i < 64; i++) {
        const std::uint64_t total = ((old >> i) & 1) + ((operand >> i) & 1) + carry;
        sum |= (total & 1) << i;
        carry = ((ends >> i) & 1) != 0 ? 0 : total >> 1;
    }
    return sum;
}

std::uint64_t swap_bit_by_bit(std::uint64_t old, const atomic_operation& operation)
{
    std::uint64_t result = old;
    for (unsigned i = 0; i < 64; i++) {
        const std::uint64_t bit = std::uint64_t{1} << i;
        if ((operation.compared_mask & bit) != 0 && (operation.compared & bit) != (old & bit)) {
            return old;
        }
        if ((operation.operand_mask & bit) != 0) {
            result = (result & ~bit) | (operation.operand & bit);
        }
    }
    return result;
}

TEST(atomic_arithmetic, masked_operations_agree_with_single_bits)
{
    random numbers(run_seed());
    for (int i = 0; i < 100'000; i++) {
        const auto sparse       = [&] { return numbers.next() & numbers.next() & numbers.next(); };
        const std::uint64_t old = numbers.next();
        const atomic_operation add{.operand = numbers.next(), .operand_mask = sparse()};
        ASSERT_EQ(apply(add, old), add_bit_by_bit(old, add.operand, add.operand_mask)) << "seed " << run_seed();
        const std::uint64_t compared_mask = sparse();
        const atomic_operation swap{
            8, true, numbers.next(), numbers.next(), numbers.one_in(2) ? old : numbers.next(), compared_mask};
        ASSERT_EQ(apply(swap, old), swap_bit_by_bit(old, swap)) << "seed " << run_seed();
    }
}

TEST(atomic_arithmetic, ends_everywhere_make_addition_exclusive_or)
{
    const atomic_operation flip{.operand = 0xff00ff00, .operand_mask = ~std::uint64_t{0}};
    EXPECT_EQ(apply(flip, 0x0ff00ff0u), 0xf0f0f0f0u);
}

class atomics : public connected_pair
{
protected:
    atomics() { set(0, 100); }

    void set(std::uint64_t offset, std::uint64_t value) { std::memcpy(target.data() + offset, &value, 8); }

    void set_returned(std::uint64_t value) { std::memcpy(source.data(), &value, 8); }

    std::uint64_t at_target(std::uint64_t offset, std::size_t bytes = 8) const
    {
        std::uint64_t value = 0;
        std::memcpy(&value, target.data() + offset, bytes);
        return value;
    }

    std::uint64_t returned(std::size_t bytes = 8) const
    {
        std::uint64_t value = 0;
        std::memcpy(&value, source.data(), bytes);
        return value;
    }

    work_request request(wqe_opcode opcode, std::uint64_t offset = 0, std::uint8_t op_mod = 0)
    {
        work_request made(opcode, op_mod);
        made.remote(address_of(target) + offset, target_key).signaled();
        return made;
    }

    polled run(work_request& with_operands, std::uint32_t bytes = 8)
    {
        a.post(with_operands.data(source_key, address_of(source), bytes));
        a.run();
        return only(a_sends);
    }
};

TEST_F(atomics, fetch_and_add)
{
    auto add         = request(wqe_opcode::atomic_fa).fetch_add(23);
    const polled got = run(add);
    EXPECT_FALSE(got.failed());
    EXPECT_EQ(got.length(), 8u);
    EXPECT_EQ(returned(), 100u);
    EXPECT_EQ(at_target(0), 123u);
}

TEST_F(atomics, compare_and_swap_that_matches_and_that_does_not)
{
    auto swap = request(wqe_opcode::atomic_cs).compare_swap(100, 7);
    EXPECT_FALSE(run(swap).failed());
    EXPECT_EQ(returned(), 100u);
    EXPECT_EQ(at_target(0), 7u);
    auto again = request(wqe_opcode::atomic_cs).compare_swap(100, 9);
    EXPECT_FALSE(run(again).failed());
    EXPECT_EQ(returned(), 7u);
    EXPECT_EQ(at_target(0), 7u);
}

TEST_F(atomics, four_byte_operands_leave_their_neighbours)
{
    using swap32 = prm::wqe_masked_swap32_segment;
    using add32  = prm::wqe_masked_add32_segment;
    set(0, 0x12345678'fffffffe);
    auto add = request(wqe_opcode::atomic_masked_fa, 0, 8);
    add.segment<add32>([](auto view) { view.put(add32::add, std::uint32_t{5}); });
    // UCX's segment of 4-byte addition is padded to 16 bytes.
    const polled got = run(add, 4);
    EXPECT_FALSE(got.failed());
    EXPECT_EQ(got.length(), 4u);
    EXPECT_EQ(at_target(0), 0x12345678'00000003u);

    auto swap = request(wqe_opcode::atomic_masked_cs, 4, 8);
    swap.segment<swap32>([](auto view) {
        view.put(swap32::compare, std::uint32_t{0x12345678});
        view.put(swap32::compare_mask, std::uint32_t{0xffffffff});
        view.put(swap32::swap, std::uint32_t{0x2468ace0});
        view.put(swap32::swap_mask, std::uint32_t{0x0000ffff});
    });
    EXPECT_FALSE(run(swap, 4).failed());
    EXPECT_EQ(at_target(0), 0x1234ace0'00000003u);
}

// As pollers read it: UCX swaps 4-byte results whatever the mode for 8 bytes is.
TEST_F(atomics, a_result_of_four_bytes_is_big_endian)
{
    using swap32 = prm::wqe_masked_swap32_segment;
    using add32  = prm::wqe_masked_add32_segment;
    set(0, 0x01234567'89abcdef);
    set_returned(~std::uint64_t{0});
    auto add = request(wqe_opcode::atomic_masked_fa, 0, 8);
    add.segment<add32>([](auto view) { view.put(add32::add, std::uint32_t{1}); });
    EXPECT_FALSE(run(add, 4).failed());
    EXPECT_EQ(returned(), 0xffffffff'efcdab89u);

    auto failing_swap = request(wqe_opcode::atomic_masked_cs, 4, 8);
    failing_swap.segment<swap32>([](auto view) {
        view.put(swap32::compare, std::uint32_t{1});
        view.put(swap32::compare_mask, std::uint32_t{0xffffffff});
    });
    EXPECT_FALSE(run(failing_swap, 4).failed());
    EXPECT_EQ(returned(), 0xffffffff'67452301u);
    EXPECT_EQ(at_target(0), 0x01234567'89abcdf0u);
}

TEST_F(atomics, a_result_of_eight_bytes_is_as_the_host_has_it)
{
    using add64 = prm::wqe_masked_add_segment;
    using s     = prm::wqe_masked_swap_segment;
    set(0, 0x01234567'89abcdef);
    auto plain = request(wqe_opcode::atomic_fa).fetch_add(1);
    EXPECT_FALSE(run(plain).failed());
    EXPECT_EQ(returned(), 0x01234567'89abcdefu);
    auto flip = request(wqe_opcode::atomic_masked_fa, 0, 9);
    flip.segment<add64>([](auto view) {
        view.put(add64::add, std::uint64_t{0xff});
        view.put(add64::field_boundary, ~std::uint64_t{0});
    });
    EXPECT_FALSE(run(flip).failed());
    EXPECT_EQ(returned(), 0x01234567'89abcdf0u);
    auto swap = request(wqe_opcode::atomic_masked_cs, 0, 9);
    swap.segment<s>([](auto view) { view.put(s::swap_mask, ~std::uint64_t{0}); });
    EXPECT_FALSE(run(swap).failed());
    EXPECT_EQ(returned(), 0x01234567'89abcd0fu);
}

TEST_F(atomics, masked_swap_of_eight_bytes_replaces_unconditionally)
{
    using s   = prm::wqe_masked_swap_segment;
    auto swap = request(wqe_opcode::atomic_masked_cs, 0, 9);
    swap.segment<s>([](auto view) {
        view.put(s::swap, std::uint64_t{0x0123456789abcdef});
        view.put(s::swap_mask, ~std::uint64_t{0});
    });
    EXPECT_FALSE(run(swap).failed());
    EXPECT_EQ(returned(), 100u);
    EXPECT_EQ(at_target(0), 0x0123456789abcdefu);
}

TEST_F(atomics, on_device_memory)
{
    std::memcpy(machine.memory().memic[0].bytes.data() + 64, "\1\0\0\0\0\0\0", 8);
    const std::uint32_t memic = make.memic(64, 64);
    auto add                  = work_request(wqe_opcode::atomic_fa).remote(0, memic).fetch_add(1).signaled();
    EXPECT_FALSE(run(add).failed());
    EXPECT_EQ(returned(), 1u);
    EXPECT_EQ(machine.memory().memic[0].bytes[64], std::byte{2});
}

TEST_F(atomics, results_stay_out_of_completions)
{
    a.scatter(prm::scatter_to_cqe::request_up_to_32b, prm::scatter_to_cqe::none);
    auto add         = request(wqe_opcode::atomic_fa).fetch_add(1);
    const polled got = run(add);
    EXPECT_EQ((*got.bytes).get(prm::cqe64::format), prm::cqe_format::no_inline);
    EXPECT_EQ(returned(), 100u);
}

TEST_F(atomics, an_unaligned_target_is_an_invalid_request)
{
    auto add = request(wqe_opcode::atomic_fa, 4).fetch_add(1);
    expect_error(run(add), cqe_syndrome::remote_invalid_request);
    EXPECT_EQ(events(b), std::vector{prm::event_type::wq_invalid_request});
}

TEST_F(atomics, the_key_and_the_peer_have_to_allow_them)
{
    make.record(target_key).remote_atomic = false;
    auto add                              = request(wqe_opcode::atomic_fa).fetch_add(1);
    expect_error(run(add), cqe_syndrome::remote_access);
    EXPECT_EQ(at_target(0), 100u);
}

TEST_F(atomics, the_peer_has_to_allow_them)
{
    b.record().remote_atomic = false;
    auto add                 = request(wqe_opcode::atomic_fa).fetch_add(1);
    expect_error(run(add), cqe_syndrome::remote_invalid_request);
}

TEST_F(atomics, operands_that_the_device_does_not_have_are_refused)
{
    auto add = request(wqe_opcode::atomic_masked_fa, 0, 10).fetch_add(1);
    expect_error(run(add, 16), cqe_syndrome::local_qp_operation);
}

TEST_F(atomics, a_place_too_small_for_the_result_is_a_length_error)
{
    auto add = request(wqe_opcode::atomic_fa).fetch_add(1);
    expect_error(run(add, 4), cqe_syndrome::local_length);
    EXPECT_EQ(at_target(0), 100u);
}

} // namespace

} // namespace ucxl::softhca::test
