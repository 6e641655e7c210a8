#include "atomics.h"

#include <bit>

namespace ucxl::softhca
{

namespace
{

using prm::const_view;
using prm::segment_kind;

// op_mod of extended atomics: log2 of the operand's bytes minus 2, with bit 3 set. Plain atomics have 8 bytes.
constexpr std::uint8_t plain           = 0;
constexpr std::uint8_t extended_4bytes = prm::extended_atomic;
constexpr std::uint8_t extended_8bytes = prm::extended_atomic + 1;

// Adds with carry inside each field: the carry into a bit is dropped when the bit below it is the last of its field.
std::uint64_t add_in_fields(std::uint64_t old, std::uint64_t operand, std::uint64_t ends)
{
    // With the end bits cleared no carry leaves a field. Each end bit is the sum of its bits and the carry, modulo 2.
    return ((old & ~ends) + (operand & ~ends)) ^ ((old ^ operand) & ends);
}

template <typename S>
const_view<S> over(std::span<const std::byte> operands)
{
    return const_view<S>(operands.first<S::size_bytes>());
}

atomic_operation masked_swap(std::span<const std::byte> operands)
{
    using s         = prm::wqe_masked_swap_segment;
    const auto view = over<s>(operands);
    return {8, true, view.get(s::swap), view.get(s::swap_mask), view.get(s::compare), view.get(s::compare_mask)};
}

atomic_operation masked_swap32(std::span<const std::byte> operands)
{
    using s         = prm::wqe_masked_swap32_segment;
    const auto view = over<s>(operands);
    return {4, true, view.get(s::swap), view.get(s::swap_mask), view.get(s::compare), view.get(s::compare_mask)};
}

atomic_operation masked_add(std::span<const std::byte> operands)
{
    using s         = prm::wqe_masked_add_segment;
    const auto view = over<s>(operands);
    return {.operand = view.get(s::add), .operand_mask = view.get(s::field_boundary)};
}

atomic_operation masked_add32(std::span<const std::byte> operands)
{
    using s         = prm::wqe_masked_add32_segment;
    const auto view = over<s>(operands);
    return {.bytes = 4, .operand = view.get(s::add), .operand_mask = view.get(s::field_boundary)};
}

} // namespace

std::optional<atomic_operation> atomic_of(segment_kind kind, std::span<const std::byte> operands,
                                          prm::wqe_opcode opcode, std::uint8_t op_mod)
{
    if (kind == segment_kind::masked_swap32 && op_mod == extended_4bytes) {
        return masked_swap32(operands);
    }
    if (kind == segment_kind::masked_add32 && op_mod == extended_4bytes) {
        return masked_add32(operands);
    }
    if (op_mod != plain && op_mod != extended_8bytes) {
        return std::nullopt;
    }
    if (kind == segment_kind::masked_swap) {
        return masked_swap(operands);
    }
    if (kind == segment_kind::masked_add) {
        return masked_add(operands);
    }
    if (kind != segment_kind::atomic) {
        return std::nullopt;
    }
    using s         = prm::wqe_atomic_segment;
    const auto view = over<s>(operands);
    if (opcode == prm::wqe_opcode::atomic_fa) {
        return atomic_operation{.operand = view.get(s::swap_add)};
    }
    return atomic_operation{8, true, view.get(s::swap_add), ~std::uint64_t{0}, view.get(s::compare), ~std::uint64_t{0}};
}

std::uint64_t apply(const atomic_operation& operation, std::uint64_t old)
{
    if (!operation.swaps) {
        return add_in_fields(old, operation.operand, operation.operand_mask);
    }
    if (((old ^ operation.compared) & operation.compared_mask) != 0) {
        return old;
    }
    return (old & ~operation.operand_mask) | (operation.operand & operation.operand_mask);
}

std::uint64_t result_bytes(const atomic_operation& operation, std::uint64_t old)
{
    return operation.bytes == 8 ? old : std::byteswap(old) >> (64 - 8 * operation.bytes);
}

} // namespace ucxl::softhca
