// The declarations as tables, to print a structure or find a field by its name without knowing its type.
//
//     for (const field_info& f : info_of<mkc>.fields) ...
//     for_each_field<mkc>([](std::string_view name, auto field) { ... });      with the types, at compile time
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "names.h"
#include "structure.h"

namespace ucxl::prm
{

struct structure_info;

struct field_info {
    std::string_view name;
    unsigned offset; // bits
    unsigned width;  // bits, of one element
    unsigned count;
    field_kind kind;
    bool alternative;
    bool flags;                          // values are bits with names
    std::span<const named_value> values; // empty for plain numbers
    const structure_info* part;          // for part and parts
};

struct structure_info {
    std::string_view name;
    std::size_t size_bytes;
    std::span<const field_info> fields;
};

namespace detail
{

template <typename Field>
constexpr std::span<const named_value> values_of()
{
    if constexpr (Field::kind == field_kind::number) {
        if constexpr (std::is_enum_v<typename Field::value_type>) {
            return value_names<typename Field::value_type>::values;
        }
    }
    return {};
}

template <typename Field>
constexpr bool flags_of()
{
    if constexpr (Field::kind == field_kind::number) {
        if constexpr (std::is_enum_v<typename Field::value_type>) {
            return value_names<typename Field::value_type>::flags;
        }
    }
    return false;
}

template <typename Field>
constexpr const structure_info* part_of();

template <const auto& Field>
constexpr field_info describe_field()
{
    using type = std::remove_cvref_t<decltype(Field)>;
    return {field_name<Field>(), type::offset,     type::width,       type::count,    type::kind,
            type::alternative,   flags_of<type>(), values_of<type>(), part_of<type>()};
}

template <typename List>
struct field_table;

template <const auto&... Fields>
struct field_table<field_list<Fields...>> {
    static constexpr std::array<field_info, sizeof...(Fields)> rows{describe_field<Fields>()...};
};

template <typename Function, const auto&... Fields>
constexpr void visit_fields(Function&& function, field_list<Fields...>)
{
    (function(field_name<Fields>(), Fields), ...);
}

} // namespace detail

template <hardware_structure S>
inline constexpr structure_info info_of{detail::type_name<S>(), S::size_bytes,
                                        detail::field_table<typename S::fields>::rows};

template <typename Field>
constexpr const structure_info* detail::part_of()
{
    if constexpr (Field::kind == field_kind::part || Field::kind == field_kind::parts) {
        return &info_of<typename Field::part_type>;
    } else {
        return nullptr;
    }
}

template <hardware_structure S, typename Function>
constexpr void for_each_field(Function&& function)
{
    detail::visit_fields(std::forward<Function>(function), typename S::fields{});
}

} // namespace ucxl::prm
