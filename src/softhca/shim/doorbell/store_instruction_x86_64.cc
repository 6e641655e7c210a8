#include "store_instruction.h"

#ifdef __x86_64__
#include <Zydis/Zydis.h>
#include <array>

namespace ucxl::softhca
{
namespace
{

constexpr std::size_t most_operands = 3; // target, mask, source

struct decoded_move {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, most_operands> operands;

    const ZydisDecodedOperand& target() const { return operands[0]; }
    const ZydisDecodedOperand& source() const { return operands[instruction.operand_count_visible - 1]; }
};

// Those of EVEX in map 0f38 are the ones that narrow what they move.
bool changes_nothing(const ZydisDecodedInstruction& instruction)
{
    return (instruction.meta.category == ZYDIS_CATEGORY_DATAXFER ||
            instruction.meta.category == ZYDIS_CATEGORY_MOVDIR) &&
           !(instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
             instruction.opcode_map == ZYDIS_OPCODE_MAP_0F38);
}

// Nothing for an instruction that does more than to move. Zydis neither allocates nor locks, so that a signal handler
// may call it.
std::optional<decoded_move> decode_move(std::span<const std::uint8_t> code)
{
    ZydisDecoder decoder;
    ZydisDecoderContext context;
    decoded_move move;
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, code.data(), code.size(), &move.instruction))) {
        return std::nullopt;
    }
    const std::uint8_t operands = move.instruction.operand_count_visible;
    if (!changes_nothing(move.instruction) || operands < 2 || operands > most_operands ||
        !ZYAN_SUCCESS(
            ZydisDecoderDecodeOperands(&decoder, &context, &move.instruction, move.operands.data(), operands)) ||
        move.target().actions != ZYDIS_OPERAND_ACTION_WRITE) { // reads it, too, or writes under a mask only
        return std::nullopt;
    }
    return move;
}

bool set_source(store_instruction& store, const ZydisDecodedOperand& operand)
{
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        store.source    = store_source::immediate;
        store.immediate = operand.imm.value.u;
        return true;
    }
    const ZydisRegister part        = operand.reg.value;
    const ZydisRegister whole       = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
    const ZydisRegisterClass family = ZydisRegisterGetClass(whole);
    const auto number               = static_cast<std::uint8_t>(ZydisRegisterGetId(whole));
    // Vector registers above 15 are not in the part of the frame that is looked at.
    if ((family != ZYDIS_REGCLASS_GPR64 && family != ZYDIS_REGCLASS_ZMM) || number > 15) {
        return false;
    }
    store.source = family == ZYDIS_REGCLASS_ZMM                             ? store_source::vector
                   : part >= ZYDIS_REGISTER_AH && part <= ZYDIS_REGISTER_BH ? store_source::general_high
                                                                            : store_source::general;
    store.number = number;
    return true;
}

bool stores_high_half(const ZydisDecodedInstruction& instruction)
{
    return instruction.mnemonic == ZYDIS_MNEMONIC_MOVHPS || instruction.mnemonic == ZYDIS_MNEMONIC_MOVHPD ||
           instruction.mnemonic == ZYDIS_MNEMONIC_VMOVHPS || instruction.mnemonic == ZYDIS_MNEMONIC_VMOVHPD;
}

// no_register where the address is not a register and a constant.
std::uint8_t base_of(const ZydisDecodedOperandMem& memory)
{
    const bool simple = memory.index == ZYDIS_REGISTER_NONE && memory.segment != ZYDIS_REGISTER_FS &&
                        memory.segment != ZYDIS_REGISTER_GS &&
                        ZydisRegisterGetClass(memory.base) == ZYDIS_REGCLASS_GPR64;
    return simple ? static_cast<std::uint8_t>(ZydisRegisterGetId(memory.base)) : no_register;
}

} // namespace

std::optional<store_instruction> decode_store_x86_64(std::span<const std::uint8_t> code)
{
    const auto move = decode_move(code);
    if (!move || move->target().type != ZYDIS_OPERAND_TYPE_MEMORY) {
        return std::nullopt;
    }
    store_instruction store{.length       = move->instruction.length,
                            .width        = static_cast<std::uint8_t>(move->target().size / 8),
                            .source       = store_source::zero,
                            .number       = 0,
                            .byte_swapped = move->instruction.mnemonic == ZYDIS_MNEMONIC_MOVBE,
                            .immediate    = 0,
                            .written_back = no_register,
                            .moved_by     = 0,
                            .second       = no_register,
                            .base         = base_of(move->target().mem),
                            .displacement = static_cast<std::int32_t>(move->target().mem.disp.value)};
    if (!set_source(store, move->source())) {
        return std::nullopt;
    }
    if (stores_high_half(move->instruction)) {
        store.source = store_source::vector_high;
    }
    return store;
}

// Only of the encoding that leaves the rest of a wider register alone, and without those that double some words.
std::optional<vector_load> decode_load_x86_64(std::span<const std::uint8_t> code)
{
    const auto move = decode_move(code);
    if (!move || move->instruction.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
        move->instruction.mnemonic == ZYDIS_MNEMONIC_MOVSHDUP ||
        move->instruction.mnemonic == ZYDIS_MNEMONIC_MOVSLDUP || move->source().type != ZYDIS_OPERAND_TYPE_MEMORY ||
        move->source().size != 128 || ZydisRegisterGetClass(move->target().reg.value) != ZYDIS_REGCLASS_XMM ||
        base_of(move->source().mem) == no_register) {
        return std::nullopt;
    }
    return vector_load{.length       = move->instruction.length,
                       .number       = static_cast<std::uint8_t>(ZydisRegisterGetId(move->target().reg.value)),
                       .base         = base_of(move->source().mem),
                       .displacement = static_cast<std::int32_t>(move->source().mem.disp.value)};
}

} // namespace ucxl::softhca
#endif
