#include "store_instruction.h"

namespace ucxl::softhca
{
namespace
{

enum class mandatory : std::uint8_t { none, p66, pf3, pf2 };

// Reads the bytes of one instruction; past the end it gives zeros and remembers that.
class reader
{
public:
    explicit reader(std::span<const std::uint8_t> code) : _code(code) {}

    std::uint8_t peek() const { return _at < _code.size() ? _code[_at] : std::uint8_t{0}; }
    std::uint8_t take()
    {
        const std::uint8_t value = peek();
        _short                   = _short || _at >= _code.size();
        ++_at;
        return value;
    }
    std::uint64_t take_little_endian(unsigned bytes)
    {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) {
            value |= std::uint64_t{take()} << (8 * i);
        }
        return value;
    }
    bool ended() const { return _short; }
    std::size_t length() const { return _at; }

private:
    std::span<const std::uint8_t> _code;
    std::size_t _at = 0;
    bool _short     = false;
};

struct prefixes {
    bool operand_size  = false; // 66
    bool address_size  = false; // 67
    bool repeat        = false; // f3
    bool repeat_not    = false; // f2
    bool locked        = false;
    bool rex           = false;
    bool wide          = false; // REX.W
    bool register_high = false; // REX.R
    bool index_high    = false; // REX.X
    bool base_high     = false; // REX.B
    bool segment       = false; // fs or gs
};

prefixes take_prefixes(reader& code)
{
    prefixes found;
    for (;; code.take()) {
        switch (code.peek()) {
        case 0x66:
            found.operand_size = true;
            continue;
        case 0x67:
            found.address_size = true;
            continue;
        case 0xf3:
            found.repeat = true;
            continue;
        case 0xf2:
            found.repeat_not = true;
            continue;
        case 0xf0:
            found.locked = true;
            continue;
        case 0x64:
        case 0x65:
            found.segment = true;
            continue;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
            continue;
        default:
            break;
        }
        break;
    }
    if ((code.peek() & 0xf0) == 0x40) {
        const std::uint8_t rex = code.take();
        found.rex              = true;
        found.wide             = (rex & 8) != 0;
        found.register_high    = (rex & 4) != 0;
        found.index_high       = (rex & 2) != 0;
        found.base_high        = (rex & 1) != 0;
    }
    return found;
}

mandatory mandatory_prefix(const prefixes& given)
{
    return given.repeat_not     ? mandatory::pf2
           : given.repeat       ? mandatory::pf3
           : given.operand_size ? mandatory::p66
                                : mandatory::none;
}

struct memory_operand {
    std::uint8_t field; // the register field of ModRM
    std::uint8_t base;  // no_register where the address is not a register and a constant
    std::int32_t displacement;
};

// Nothing where the operand is not memory.
std::optional<memory_operand> take_memory_operand(reader& code, const prefixes& given)
{
    const std::uint8_t modrm = code.take();
    const unsigned mod       = modrm >> 6;
    if (mod == 3) {
        return std::nullopt;
    }
    unsigned displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    unsigned base         = modrm & 7;
    bool simple           = !given.segment && !given.address_size;
    if (base == 4) {
        const std::uint8_t sib = code.take();
        base                   = sib & 7;
        simple                 = simple && (sib >> 3 & 7) == 4 && !given.index_high;
        if (mod == 0 && base == 5) {
            displacement = 4;
            simple       = false;
        }
    } else if (mod == 0 && base == 5) {
        displacement = 4;
        simple       = false;
    }
    base += given.base_high ? 8 : 0;
    const std::uint64_t constant = code.take_little_endian(displacement);
    return memory_operand{.field        = static_cast<std::uint8_t>(modrm >> 3 & 7),
                          .base         = simple ? static_cast<std::uint8_t>(base) : no_register,
                          .displacement = displacement == 1 ? static_cast<std::int8_t>(constant)
                                                            : static_cast<std::int32_t>(constant)};
}

// The same of instructions whose address does not matter.
std::optional<std::uint8_t> take_register_field(reader& code)
{
    const auto operand = take_memory_operand(code, {});
    return operand ? std::optional(operand->field) : std::nullopt;
}

store_instruction plain(unsigned width, store_source source, unsigned number)
{
    return {.length       = 0,
            .width        = static_cast<std::uint8_t>(width),
            .source       = source,
            .number       = static_cast<std::uint8_t>(number),
            .byte_swapped = false,
            .immediate    = 0,
            .written_back = no_register,
            .moved_by     = 0,
            .second       = no_register};
}

unsigned operand_width(const prefixes& given)
{
    return given.wide ? 8 : given.operand_size ? 2 : 4;
}

unsigned general_number(const prefixes& given, std::uint8_t field)
{
    return field + (given.register_high ? 8U : 0U);
}

std::optional<store_instruction> one_byte_store(reader& code, const prefixes& given, std::uint8_t opcode)
{
    const unsigned width = (opcode & 1) != 0 ? operand_width(given) : 1;
    if (opcode == 0xa2 || opcode == 0xa3) { // al, ax, eax or rax to an absolute address
        code.take_little_endian(given.address_size ? 4 : 8);
        return plain(width, store_source::general, 0);
    }
    const auto field = take_register_field(code);
    if (!field) {
        return std::nullopt;
    }
    if (opcode == 0x88 || opcode == 0x89) {
        if (width == 1 && !given.rex && *field >= 4) {
            return plain(1, store_source::general_high, *field - 4U);
        }
        return plain(width, store_source::general, general_number(given, *field));
    }
    if ((opcode == 0xc6 || opcode == 0xc7) && *field == 0) {
        auto store      = plain(width, store_source::immediate, 0);
        store.immediate = code.take_little_endian(width == 8 ? 4 : width);
        if (width == 8) {
            store.immediate =
                static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(store.immediate)));
        }
        return store;
    }
    return std::nullopt;
}

// Stores of map 0f, with and without VEX or EVEX; `vector_bytes` is the full width.
std::optional<store_instruction> vector_store(mandatory prefix, std::uint8_t opcode, bool wide, unsigned number,
                                              unsigned vector_bytes)
{
    const bool packed = prefix == mandatory::none || prefix == mandatory::p66;
    switch (opcode) {
    case 0x11: // movups, movupd, movss, movsd
        return plain(packed ? vector_bytes : prefix == mandatory::pf3 ? 4 : 8, store_source::vector, number);
    case 0x13: // movlps, movlpd
    case 0x17: // movhps, movhpd
        if (!packed) {
            return std::nullopt;
        }
        return plain(8, opcode == 0x13 ? store_source::vector : store_source::vector_high, number);
    case 0x29: // movaps, movapd
    case 0x2b: // movntps, movntpd
        return packed ? std::optional(plain(vector_bytes, store_source::vector, number)) : std::nullopt;
    case 0x7e: // movd, movq
        return prefix == mandatory::p66 ? std::optional(plain(wide ? 8 : 4, store_source::vector, number))
                                        : std::nullopt;
    case 0x7f: // movdqa, movdqu; f2 with EVEX only
        return prefix != mandatory::none ? std::optional(plain(vector_bytes, store_source::vector, number))
                                         : std::nullopt;
    case 0xd6: // movq
        return prefix == mandatory::p66 ? std::optional(plain(8, store_source::vector, number)) : std::nullopt;
    case 0xe7: // movntdq
        return prefix == mandatory::p66 ? std::optional(plain(vector_bytes, store_source::vector, number))
                                        : std::nullopt;
    default:
        return std::nullopt;
    }
}

std::optional<store_instruction> two_byte_store(reader& code, const prefixes& given)
{
    const std::uint8_t opcode = code.take();
    if (opcode == 0x38) {
        const std::uint8_t third = code.take();
        const auto field         = take_register_field(code);
        if (!field || given.repeat || given.repeat_not) {
            return std::nullopt;
        }
        auto store = plain(operand_width(given), store_source::general, general_number(given, *field));
        if (third == 0xf1) { // movbe
            store.byte_swapped = true;
            return store;
        }
        return third == 0xf9 && !given.operand_size ? std::optional(store) : std::nullopt; // movdiri
    }
    const auto operand = take_memory_operand(code, given);
    if (!operand) {
        return std::nullopt;
    }
    const unsigned number = general_number(given, operand->field);
    if (opcode == 0xc3) { // movnti
        return plain(given.wide ? 8 : 4, store_source::general, number);
    }
    const auto prefix = mandatory_prefix(given);
    if (opcode == 0x7f && prefix == mandatory::pf2) {
        return std::nullopt;
    }
    auto store = vector_store(prefix, opcode, given.wide, number, 16);
    if (store) {
        store->base         = operand->base;
        store->displacement = operand->displacement;
    }
    return store;
}

std::optional<store_instruction> vex_store(reader& code, bool three_bytes)
{
    const std::uint8_t first = code.take();
    const std::uint8_t last  = three_bytes ? code.take() : first;
    const bool wide          = three_bytes && (last & 0x80) != 0;
    if ((three_bytes && (first & 0x1f) != 1) || (last & 0x78) != 0x78) { // another map; vvvv used
        return std::nullopt;
    }
    const std::uint8_t opcode = code.take();
    const auto field          = take_register_field(code);
    const auto prefix         = static_cast<mandatory>(last & 3);
    if (!field || (opcode == 0x7f && prefix == mandatory::pf2)) {
        return std::nullopt;
    }
    const unsigned number = *field + ((first & 0x80) == 0 ? 8U : 0U);
    return vector_store(prefix, opcode, wide, number, (last & 4) != 0 ? 32 : 16);
}

std::optional<store_instruction> evex_store(reader& code)
{
    const std::uint8_t p0     = code.take();
    const std::uint8_t p1     = code.take();
    const std::uint8_t p2     = code.take();
    const std::uint8_t opcode = code.take();
    const auto field          = take_register_field(code);
    const unsigned size       = (p2 >> 5) & 3;
    // Map 0f, vvvv unused, no mask, registers 0 to 15 (the others are not in the part of the frame that is looked at).
    if (!field || (p0 & 7) != 1 || (p1 & 0x7c) != 0x7c || (p2 & 0x97) != 0 || (p0 & 0x10) == 0 || size == 3) {
        return std::nullopt;
    }
    const unsigned number = *field + ((p0 & 0x80) == 0 ? 8U : 0U);
    return vector_store(static_cast<mandatory>(p1 & 3), opcode, (p1 & 0x80) != 0, number, 16U << size);
}

std::optional<store_instruction> decode(reader& code)
{
    const prefixes given      = take_prefixes(code);
    const std::uint8_t opcode = code.take();
    if (given.locked) {
        return std::nullopt;
    }
    switch (opcode) {
    case 0x88:
    case 0x89:
    case 0xa2:
    case 0xa3:
    case 0xc6:
    case 0xc7:
        return one_byte_store(code, given, opcode);
    case 0x0f:
        return two_byte_store(code, given);
    case 0xc4:
    case 0xc5:
        return given.rex ? std::nullopt : vex_store(code, opcode == 0xc4);
    case 0x62:
        return given.rex ? std::nullopt : evex_store(code);
    default:
        return std::nullopt;
    }
}

} // namespace

std::optional<store_instruction> decode_store_x86_64(std::span<const std::uint8_t> bytes)
{
    reader code(bytes.first(bytes.size() < 15 ? bytes.size() : 15));
    auto store = decode(code);
    if (!store || code.ended()) {
        return std::nullopt;
    }
    store->length = static_cast<std::uint8_t>(code.length());
    return store;
}

// movups, movupd, movaps, movapd, movdqa, movdqu: forms that leave the rest of a wider register alone.
std::optional<vector_load> decode_load_x86_64(std::span<const std::uint8_t> bytes)
{
    reader code(bytes.first(bytes.size() < 15 ? bytes.size() : 15));
    const prefixes given = take_prefixes(code);
    if (code.take() != 0x0f || given.locked) {
        return std::nullopt;
    }
    const std::uint8_t opcode = code.take();
    const auto prefix         = mandatory_prefix(given);
    const bool floating = (opcode == 0x10 || opcode == 0x28) && (prefix == mandatory::none || prefix == mandatory::p66);
    const bool integer  = opcode == 0x6f && (prefix == mandatory::p66 || prefix == mandatory::pf3);
    const auto operand  = take_memory_operand(code, given);
    if ((!floating && !integer) || !operand || operand->base == no_register || code.ended()) {
        return std::nullopt;
    }
    return vector_load{.length       = static_cast<std::uint8_t>(code.length()),
                       .number       = static_cast<std::uint8_t>(general_number(given, operand->field)),
                       .base         = operand->base,
                       .displacement = operand->displacement};
}

} // namespace ucxl::softhca
