// Declares a hardware structure: a type with its fields, each a type {owner, bit offset, width}.
//
// Offsets count bits from the first, most significant bit of the structure, as in the device's manual. A declaration
// carries no data: view.h reads and writes bytes with it, and decode.h prints them with its names. Bits that are not
// declared are reserved.
//
//     struct klm : structure<klm, 16> {
//         static constexpr f<0x00, 32> byte_count{};
//         static constexpr f<0x20, 32> mkey{};
//         static constexpr f<0x40, 64> address{};
//         using fields = field_list<byte_count, mkey, address>;
//     };
//     static_assert(well_formed<klm>);
//
// A field outside the structure does not compile; well_formed also rejects fields that overlap or are out of order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "bits.h"

namespace ucxl::prm
{

// The type of a field of that many bits, unless it has an enumeration of its own.
template <unsigned Width>
using unsigned_of = std::conditional_t<
    Width == 1, bool,
    std::conditional_t<
        Width <= 8, std::uint8_t,
        std::conditional_t<Width <= 16, std::uint16_t, std::conditional_t<Width <= 32, std::uint32_t, std::uint64_t>>>>;

enum class field_kind {
    number,
    numbers, // an array of numbers of one width
    part,    // a structure inside this one
    parts,   // an array of structures
    bytes,   // a string of bytes without byte order
};

// Alternative: another reading of bits that an earlier field names already (a union).
template <typename Owner, unsigned Offset, unsigned Width, typename Value, bool Alternative>
struct field {
    using owner_type = Owner;
    using value_type = Value;
    using bits       = bit_range<Offset, Width>;

    static constexpr field_kind kind    = field_kind::number;
    static constexpr unsigned offset    = Offset;
    static constexpr unsigned width     = Width;
    static constexpr unsigned count     = 1;
    static constexpr unsigned size_bits = Width;
    static constexpr bool alternative   = Alternative;
};

template <typename Owner, unsigned Offset, unsigned Width, unsigned Count>
struct field_array {
    using owner_type = Owner;
    using value_type = unsigned_of<Width>;

    static constexpr field_kind kind    = field_kind::numbers;
    static constexpr unsigned offset    = Offset;
    static constexpr unsigned width     = Width;
    static constexpr unsigned count     = Count;
    static constexpr unsigned size_bits = Width * Count;
    static constexpr bool alternative   = false;
    static_assert(Offset % Width == 0 && (Width == 8 || Width == 16 || Width == 32 || Width == 64));
};

template <typename Owner, unsigned Offset, typename Part, unsigned Count, bool Alternative>
struct part_field {
    using owner_type = Owner;
    using part_type  = Part;

    static constexpr field_kind kind    = Count == 1 ? field_kind::part : field_kind::parts;
    static constexpr unsigned offset    = Offset;
    static constexpr unsigned width     = static_cast<unsigned>(Part::size_bytes) * 8;
    static constexpr unsigned count     = Count;
    static constexpr unsigned size_bits = width * Count;
    static constexpr bool alternative   = Alternative;
    static_assert(Offset % 8 == 0);
};

template <typename Owner, unsigned Offset, unsigned Bytes>
struct bytes_field {
    using owner_type = Owner;

    static constexpr field_kind kind    = field_kind::bytes;
    static constexpr unsigned offset    = Offset;
    static constexpr unsigned width     = Bytes * 8;
    static constexpr unsigned count     = 1;
    static constexpr unsigned size_bits = width;
    static constexpr bool alternative   = false;
    static_assert(Offset % 8 == 0);
};

// Fields in the order of their offsets.
template <const auto&... Fields>
struct field_list {
    static constexpr std::size_t size = sizeof...(Fields);
};

// The base of every declaration. The short names in it are for declarations only.
template <typename Self, unsigned SizeBytes>
struct structure {
    static_assert(SizeBytes % 4 == 0, "hardware structures are made of 32-bit words");
    static constexpr std::size_t size_bytes = SizeBytes;

    template <unsigned Offset, unsigned Width, typename Value = unsigned_of<Width>>
        requires(Offset + Width <= SizeBytes * 8)
    using f = field<Self, Offset, Width, Value, false>;

    template <unsigned Offset, unsigned Width, typename Value = unsigned_of<Width>>
        requires(Offset + Width <= SizeBytes * 8)
    using alt = field<Self, Offset, Width, Value, true>;

    template <unsigned Offset, unsigned Width, unsigned Count>
        requires(Offset + Width * Count <= SizeBytes * 8)
    using numbers = field_array<Self, Offset, Width, Count>;

    template <unsigned Offset, typename Part, unsigned Count = 1>
        requires(Offset + Part::size_bytes * 8 * Count <= SizeBytes * 8)
    using part = part_field<Self, Offset, Part, Count, false>;

    template <unsigned Offset, typename Part>
        requires(Offset + Part::size_bytes * 8 <= SizeBytes * 8)
    using alt_part = part_field<Self, Offset, Part, 1, true>;

    template <unsigned Offset, unsigned Bytes>
        requires(Offset + Bytes * 8 <= SizeBytes * 8)
    using bytes = bytes_field<Self, Offset, Bytes>;

private:
    structure() = default;
    friend Self;
};

namespace detail
{

template <typename Owner, const auto&... Fields>
consteval bool ordered(field_list<Fields...>)
{
    static_assert((std::is_same_v<typename std::remove_cvref_t<decltype(Fields)>::owner_type, Owner> && ...),
                  "a field of another structure in the list");
    struct range {
        unsigned begin, end;
        bool alternative;
    };
    unsigned end = 0;
    for (const range& r : {range{Fields.offset, Fields.offset + Fields.size_bits, Fields.alternative}...}) {
        if (r.alternative ? r.begin >= end : r.begin < end) {
            return false;
        }
        end = std::max(end, r.end);
    }
    return true;
}

} // namespace detail

// The fields are in order and do not overlap, except alternatives.
template <typename S>
inline constexpr bool well_formed = detail::ordered<S>(typename S::fields{});

template <typename S>
concept hardware_structure = requires {
    typename S::fields;
    requires S::size_bytes % 4 == 0;
};

} // namespace ucxl::prm
