#include "text.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace ucxl::prm::text
{

namespace
{

constexpr std::size_t small_structure_bytes = 16; // structures up to this size show fields that are zero
constexpr std::size_t min_counted_zeros     = 8;

void append_raw_hex(std::string& result, std::byte b)
{
    constexpr std::string_view digits = "0123456789abcdef";
    result += digits[std::to_integer<unsigned>(b) >> 4];
    result += digits[std::to_integer<unsigned>(b) & 15];
}

// Offsets are known at run time only; bit by bit is fast enough for text.
std::uint64_t load(bytes data, unsigned offset, unsigned width)
{
    std::uint64_t value = 0;
    for (unsigned bit = offset; bit < offset + width; bit++) {
        value = value << 1 | (std::to_integer<unsigned>(data[bit / 8]) >> (7 - bit % 8) & 1);
    }
    return value;
}

bool is_zero(bytes data)
{
    return std::ranges::all_of(data, [](std::byte b) { return b == std::byte{0}; });
}

void append_flags(std::string& result, std::span<const named_value> names, std::uint64_t value)
{
    bool first = true;
    for (const named_value& flag : names) {
        if ((value & flag.value) == 0) {
            continue;
        }
        if (!first) {
            result += '|';
        }
        result += flag.name;
        value &= ~flag.value;
        first = false;
    }
    if (value != 0 || first) {
        if (!first) {
            result += '|';
        }
        append_number(result, value);
    }
}

void append_value(std::string& result, const field_info& field, std::uint64_t value)
{
    if (field.flags) {
        return append_flags(result, field.values, value);
    }
    for (const named_value& known : field.values) {
        if (known.value == value) {
            result += known.name;
            return;
        }
    }
    append_number(result, value);
}

void append_field(std::string& result, const field_info& field, bytes data, bool zeros)
{
    const bytes own = data.subspan(field.offset / 8, (field.offset % 8 + field.width * field.count + 7) / 8);
    if (field.kind == field_kind::number) {
        const std::uint64_t value = load(data, field.offset, field.width);
        if (value == 0 && !zeros && field.values.empty()) {
            return;
        }
        result += ' ';
        result += field.name;
        result += '=';
        append_value(result, field, value);
    } else if (!is_zero(own)) {
        result += ' ';
        result += field.name;
        result += '=';
        append_hex(result, own);
    }
}

// The bits of data[0..] that no field names.
std::vector<std::byte> undeclared(const structure_info& info, bytes data)
{
    std::vector<std::byte> left(data.begin(), data.end());
    for (const field_info& field : info.fields) {
        for (unsigned bit = field.offset; bit < field.offset + field.width * field.count; bit++) {
            left[bit / 8] &= ~(std::byte{0x80} >> (bit % 8));
        }
    }
    return left;
}

void append_undeclared(std::string& result, const structure_info& info, bytes data)
{
    const auto left = undeclared(info, data);
    for (std::size_t i = 0; i < left.size(); i += 4) {
        const bytes word = bytes(left).subspan(i, std::min<std::size_t>(4, left.size() - i));
        if (is_zero(word)) {
            continue;
        }
        result += " reserved@";
        append_number(result, i);
        result += '=';
        append_hex(result, word);
    }
}

void append_label(std::string& result, std::string_view label, unsigned indent)
{
    result.append(std::size_t{indent} * 2, ' ');
    result += label;
    result += ':';
}

std::string indexed(std::string_view label, std::size_t index)
{
    std::string text(label);
    text += '[';
    text += std::to_string(index);
    text += ']';
    return text;
}

} // namespace

void append_number(std::string& result, std::uint64_t value)
{
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16).ptr;
    if (value > 9) {
        result += "0x";
    }
    result.append(digits, end);
}

void append_hex(std::string& result, bytes data)
{
    const auto last  = std::find_if(data.rbegin(), data.rend(), [](std::byte b) { return b != std::byte{0}; });
    const auto zeros = static_cast<std::size_t>(last - data.rbegin());
    const auto shown = zeros < min_counted_zeros ? data.size() : data.size() - zeros;
    for (std::size_t i = 0; i < shown; i++) {
        if (i != 0 && i % 4 == 0) {
            result += '.';
        }
        append_raw_hex(result, data[i]);
    }
    if (shown < data.size()) {
        result += shown == 0 ? "" : "+";
        result += std::to_string(zeros);
        result += "*00";
    }
}

void append_bytes(std::string& result, std::string_view label, bytes data, unsigned indent)
{
    if (data.empty()) {
        return;
    }
    append_label(result, label, indent);
    result += ' ';
    result += std::to_string(data.size());
    result += " bytes ";
    append_hex(result, data);
    result += '\n';
}

void append_structure(std::string& result, std::string_view label, const structure_info& info, bytes data,
                      unsigned indent)
{
    if (data.size() < info.size_bytes) {
        append_label(result, label, indent);
        result += " cut short, ";
        result += std::to_string(info.size_bytes);
        result += " bytes wanted,";
        result += data.empty() ? " none there\n" : "\n";
        return append_bytes(result, "bytes", data, indent + 1);
    }
    data = data.first(info.size_bytes);
    append_label(result, label, indent);
    for (const field_info& field : info.fields) {
        if (field.part == nullptr && !field.alternative) {
            append_field(result, field, data, info.size_bytes <= small_structure_bytes);
        }
    }
    append_undeclared(result, info, data);
    result += '\n';
    for (const field_info& field : info.fields) {
        if (field.part == nullptr || field.alternative) {
            continue;
        }
        for (unsigned i = 0; i < field.count; i++) {
            const bytes part = data.subspan(field.offset / 8 + i * field.width / 8, field.width / 8);
            if (!is_zero(part)) {
                append_structure(result, field.count == 1 ? std::string(field.name) : indexed(field.name, i),
                                 *field.part, part, indent + 1);
            }
        }
    }
}

void append_list(std::string& result, std::string_view label, const structure_info& info, bytes data, unsigned indent)
{
    const std::size_t count = data.size() / info.size_bytes;
    for (std::size_t i = 0; i < count; i++) {
        append_structure(result, indexed(label, i), info, data.subspan(i * info.size_bytes), indent);
    }
    append_bytes(result, "bytes", data.subspan(count * info.size_bytes), indent);
}

} // namespace ucxl::prm::text
