// What a machine instruction stores: for the doorbell page, whose stores trap. The decoders know the store instructions
// that compilers make for a doorbell (an 8-byte or 4-byte store, byte-swapping stores, vector stores of a copied WQE);
// of anything else they say so. That for aarch64 is compiled everywhere, as it is only about bytes; that for x86-64 is
// Zydis and there on x86-64 only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace ucxl::softhca
{

enum class store_source : std::uint8_t {
    immediate,
    general,      // a general register
    general_high, // bits 8 to 15 of one (ah, ch, dh, bh)
    vector,       // the low bytes of a vector register
    vector_high,  // its bytes 8 to 15
    zero,         // the zero register
};

struct store_instruction {
    std::uint8_t length; // of the instruction
    std::uint8_t width;  // bytes stored
    store_source source;
    std::uint8_t number; // of the register
    bool byte_swapped;
    std::uint64_t immediate;
    // Of a store that moves its base register (aarch64): 0xff for none.
    std::uint8_t written_back;
    std::int32_t moved_by;
    // The part of a pair that goes to the lower address is in `number`, the other here: 0xff for none.
    std::uint8_t second;
    // Where to, if that is a general register and a constant; base 0xff otherwise. x86-64 only.
    std::uint8_t base         = 0xff;
    std::int32_t displacement = 0;
};

// A load of 16 bytes into a vector register, as they stand between the stores of a copy. x86-64 only.
struct vector_load {
    std::uint8_t length;
    std::uint8_t number; // of the vector register
    std::uint8_t base;
    std::int32_t displacement;
};

inline constexpr std::uint8_t no_register = 0xff;

// `code` begins with the instruction; it may end behind it (an x86-64 instruction has up to 15 bytes).
std::optional<store_instruction> decode_store_x86_64(std::span<const std::uint8_t> code);
std::optional<vector_load> decode_load_x86_64(std::span<const std::uint8_t> code);
std::optional<store_instruction> decode_store_aarch64(std::uint32_t code);

// Registers of a thread, as a signal handler has them.
struct stored_registers {
    std::span<const std::uint64_t> general;
    std::span<const std::uint64_t> vector; // two for each register, its low 16 bytes
};

// The first 8 bytes as they would be in memory (fewer for a narrower store, above them 0); nothing where a register is
// not among those given.
std::optional<std::uint64_t> stored_value(const store_instruction& store, const stored_registers& registers);

} // namespace ucxl::softhca
