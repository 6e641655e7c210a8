// A typed view of the bytes of one hardware structure. view<S> reads and writes, const_view<S> reads.
//
// Invariant: the view covers S::size_bytes bytes that outlive it. Only over() makes a view of bytes of unknown length.
// A field of another structure does not compile. A value wider than its field is never cut: set() refuses it and
// changes nothing, put() takes only values that are known to fit at compile time.
//
//     if (auto m = view<mkc>::over(bytes)) {
//         m->put(mkc::start_addr, address);       64 bits into 64 bits: always fits
//         m->put<true>(mkc::free);                a constant: checked at compile time
//         if (!m->set(mkc::pd, pdn))              a run-time value into 24 bits
//             return too_large;
//     }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "structure.h"

namespace ucxl::prm
{

namespace detail
{

template <typename T>
constexpr std::uint64_t raw(T value)
{
    if constexpr (std::is_enum_v<T>) {
        return static_cast<std::uint64_t>(std::to_underlying(value));
    } else {
        return static_cast<std::uint64_t>(value);
    }
}

template <typename T>
constexpr bool negative(T value)
{
    if constexpr (std::is_signed_v<T>) {
        return value < 0;
    } else {
        return false;
    }
}

// Whether every value of T fits in that many bits. An enumeration can hold values without a name.
template <typename T, unsigned Width>
concept never_wider = std::is_unsigned_v<T> && std::numeric_limits<T>::digits <= Width;

// Whether a field takes the type: its own type, or a plain number. An enumeration of another field is refused.
template <typename T, typename Value>
concept storable = std::is_same_v<T, Value> || std::is_integral_v<T>;

} // namespace detail

// Whether that field can hold the value.
template <typename O, unsigned Offset, unsigned Width, typename V, bool A, detail::storable<V> T>
constexpr bool fits(field<O, Offset, Width, V, A>, T value)
{
    return !detail::negative(value) && detail::raw(value) <= (~std::uint64_t{0} >> (64 - Width));
}

template <hardware_structure S, typename Byte>
class basic_view
{
public:
    using structure_type = S;

    static constexpr std::optional<basic_view> over(std::span<Byte> bytes)
    {
        if (bytes.size() < S::size_bytes) {
            return std::nullopt;
        }
        return basic_view(bytes.data());
    }

    explicit constexpr basic_view(std::span<Byte, S::size_bytes> bytes) : _base(bytes.data()) {}

    constexpr operator basic_view<S, const std::byte>() const
        requires(!std::is_const_v<Byte>)
    {
        return basic_view<S, const std::byte>(std::span<const std::byte, S::size_bytes>(span()));
    }

    constexpr std::span<Byte, S::size_bytes> span() const
    {
        return std::span<Byte, S::size_bytes>(_base, S::size_bytes);
    }

    template <unsigned Offset, unsigned Width, typename V, bool A>
    constexpr V get(field<S, Offset, Width, V, A>) const
    {
        return static_cast<V>(bit_range<Offset, Width>::load(_base));
    }

    // False, and writes nothing, when the value does not fit in the field.
    template <unsigned Offset, unsigned Width, typename V, bool A, detail::storable<V> T>
        requires(!std::is_const_v<Byte>)
    [[nodiscard]] constexpr bool set(field<S, Offset, Width, V, A> place, T value) const
    {
        if (!fits(place, value)) {
            return false;
        }
        bit_range<Offset, Width>::store(_base, detail::raw(value));
        return true;
    }

    // For types that always fit.
    template <unsigned Offset, unsigned Width, typename V, bool A, detail::storable<V> T>
        requires(!std::is_const_v<Byte> && detail::never_wider<T, Width>)
    constexpr void put(field<S, Offset, Width, V, A>, T value) const
    {
        bit_range<Offset, Width>::store(_base, value);
    }

    template <auto Value, unsigned Offset, unsigned Width, typename V, bool A>
        requires(!std::is_const_v<Byte> && detail::storable<decltype(Value), V>)
    constexpr void put(field<S, Offset, Width, V, A> place) const
    {
        static_assert(fits(place, Value), "the constant does not fit in the field");
        bit_range<Offset, Width>::store(_base, detail::raw(Value));
    }

    // An element of an array. The caller checks the index, as with operator[].
    template <unsigned Offset, unsigned Width, unsigned Count>
    constexpr unsigned_of<Width> get(field_array<S, Offset, Width, Count>, std::size_t index) const
    {
        return detail::load_big_endian<unsigned_of<Width>>(_base + Offset / 8 + index * (Width / 8));
    }

    template <unsigned Offset, unsigned Width, unsigned Count>
        requires(!std::is_const_v<Byte>)
    constexpr void put(field_array<S, Offset, Width, Count>, std::size_t index, unsigned_of<Width> value) const
    {
        detail::store_big_endian(_base + Offset / 8 + index * (Width / 8), value);
    }

    template <unsigned Offset, typename Part, bool A>
    constexpr basic_view<Part, Byte> at(part_field<S, Offset, Part, 1, A>) const
    {
        return basic_view<Part, Byte>(std::span<Byte, Part::size_bytes>(_base + Offset / 8, Part::size_bytes));
    }

    template <unsigned Offset, typename Part, unsigned Count>
        requires(Count > 1)
    constexpr basic_view<Part, Byte> at(part_field<S, Offset, Part, Count, false>, std::size_t index) const
    {
        Byte* const first = _base + Offset / 8 + index * Part::size_bytes;
        return basic_view<Part, Byte>(std::span<Byte, Part::size_bytes>(first, Part::size_bytes));
    }

    template <unsigned Offset, unsigned Bytes>
    constexpr std::span<Byte, Bytes> at(bytes_field<S, Offset, Bytes>) const
    {
        return std::span<Byte, Bytes>(_base + Offset / 8, Bytes);
    }

private:
    explicit constexpr basic_view(Byte* base) : _base(base) {}

    Byte* _base;
};

template <typename S>
using view = basic_view<S, std::byte>;

template <typename S>
using const_view = basic_view<S, const std::byte>;

// The bytes of a structure, zero at first, for building a command or WQE.
template <hardware_structure S>
struct storage {
    alignas(8) std::array<std::byte, S::size_bytes> bytes{};

    constexpr view<S> operator*() { return view<S>(bytes); }
    constexpr const_view<S> operator*() const { return const_view<S>(bytes); }
};

// The whole structures in a range of bytes, by index, and their number: for lists of descriptors.
template <hardware_structure S, typename Byte>
class view_list
{
public:
    explicit constexpr view_list(std::span<Byte> bytes) : _bytes(bytes) {}

    constexpr std::size_t size() const { return _bytes.size() / S::size_bytes; }

    constexpr basic_view<S, Byte> operator[](std::size_t index) const
    {
        return basic_view<S, Byte>(_bytes.subspan(index * S::size_bytes).template first<S::size_bytes>());
    }

private:
    std::span<Byte> _bytes;
};

} // namespace ucxl::prm
