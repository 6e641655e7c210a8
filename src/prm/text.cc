#include "text.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace ucxl::prm::text
{

namespace
{

constexpr std::size_t small_structure_bytes = 16; // up to this size fields of zero are shown too
constexpr std::size_t min_counted_zeros     = 8;

void append_raw_hex(std::string& to, std::byte b)
{
    constexpr std::string_view digits = "0123456789abcdef";
    to += digits[std::to_integer<unsigned>(b) >> 4];
    to += digits[std::to_integer<unsigned>(b) & 15];
}

// The table knows offsets at run time only; bit by bit is fast enough for text.
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

void append_flags(std::string& to, std::span<const named_value> names, std::uint64_t value)
{
    bool first = true;
    for (const named_value& flag : names) {
        if ((value & flag.value) == 0) {
            continue;
        }
        if (!first) {
            to += '|';
        }
        to += flag.name;
        value &= ~flag.value;
        first = false;
    }
    if (value != 0 || first) {
        if (!first) {
            to += '|';
        }
        append_number(to, value);
    }
}

void append_value(std::string& to, const field_info& field, std::uint64_t value)
{
    if (field.flags) {
        return append_flags(to, field.values, value);
    }
    for (const named_value& known : field.values) {
        if (known.value == value) {
            to += known.name;
            return;
        }
    }
    append_number(to, value);
}

void append_field(std::string& to, const field_info& field, bytes data, bool zeros)
{
    const bytes own = data.subspan(field.offset / 8, (field.offset % 8 + field.width * field.count + 7) / 8);
    if (field.kind == field_kind::number) {
        const std::uint64_t value = load(data, field.offset, field.width);
        if (value == 0 && !zeros && field.values.empty()) {
            return;
        }
        to += ' ';
        to += field.name;
        to += '=';
        append_value(to, field, value);
    } else if (!is_zero(own)) {
        to += ' ';
        to += field.name;
        to += '=';
        append_hex(to, own);
    }
}

// Bits of data[0..] that no field names: cleared where one does.
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

void append_undeclared(std::string& to, const structure_info& info, bytes data)
{
    const auto left = undeclared(info, data);
    for (std::size_t i = 0; i < left.size(); i += 4) {
        const bytes word = bytes(left).subspan(i, std::min<std::size_t>(4, left.size() - i));
        if (is_zero(word)) {
            continue;
        }
        to += " reserved@";
        append_number(to, i);
        to += '=';
        append_hex(to, word);
    }
}

void append_label(std::string& to, std::string_view label, unsigned indent)
{
    to.append(std::size_t{indent} * 2, ' ');
    to += label;
    to += ':';
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

void append_number(std::string& to, std::uint64_t value)
{
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16).ptr;
    if (value > 9) {
        to += "0x";
    }
    to.append(digits, end);
}

void append_hex(std::string& to, bytes data)
{
    const auto last  = std::find_if(data.rbegin(), data.rend(), [](std::byte b) { return b != std::byte{0}; });
    const auto zeros = static_cast<std::size_t>(last - data.rbegin());
    const auto shown = zeros < min_counted_zeros ? data.size() : data.size() - zeros;
    for (std::size_t i = 0; i < shown; i++) {
        if (i != 0 && i % 4 == 0) {
            to += '.';
        }
        append_raw_hex(to, data[i]);
    }
    if (shown < data.size()) {
        to += shown == 0 ? "" : "+";
        to += std::to_string(zeros);
        to += "*00";
    }
}

void append_bytes(std::string& to, std::string_view label, bytes data, unsigned indent)
{
    if (data.empty()) {
        return;
    }
    append_label(to, label, indent);
    to += ' ';
    to += std::to_string(data.size());
    to += " bytes ";
    append_hex(to, data);
    to += '\n';
}

void append_structure(std::string& to, std::string_view label, const structure_info& info, bytes data, unsigned indent)
{
    if (data.size() < info.size_bytes) {
        append_label(to, label, indent);
        to += " cut short, ";
        to += std::to_string(info.size_bytes);
        to += " bytes wanted,";
        to += data.empty() ? " none there\n" : "\n";
        return append_bytes(to, "bytes", data, indent + 1);
    }
    data = data.first(info.size_bytes);
    append_label(to, label, indent);
    for (const field_info& field : info.fields) {
        if (field.part == nullptr && !field.alternative) {
            append_field(to, field, data, info.size_bytes <= small_structure_bytes);
        }
    }
    append_undeclared(to, info, data);
    to += '\n';
    for (const field_info& field : info.fields) {
        if (field.part == nullptr || field.alternative) {
            continue;
        }
        for (unsigned i = 0; i < field.count; i++) {
            const bytes part = data.subspan(field.offset / 8 + i * field.width / 8, field.width / 8);
            if (!is_zero(part)) {
                append_structure(to, field.count == 1 ? std::string(field.name) : indexed(field.name, i), *field.part,
                                 part, indent + 1);
            }
        }
    }
}

void append_list(std::string& to, std::string_view label, const structure_info& info, bytes data, unsigned indent)
{
    const std::size_t count = data.size() / info.size_bytes;
    for (std::size_t i = 0; i < count; i++) {
        append_structure(to, indexed(label, i), info, data.subspan(i * info.size_bytes), indent);
    }
    append_bytes(to, "bytes", data.subspan(count * info.size_bytes), indent);
}

} // namespace ucxl::prm::text
