// Names of fields, structures and enumeration values, taken from the compiler so that each is written once.
//
// An enumeration whose values should print by name lists them beside its definition:
//     template <> struct value_names<qp_state> : one_of<qp_state::reset, qp_state::init> {};
// one_of prints the name of the value, any_of the names of the bits that are set.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace ucxl::prm
{

namespace detail
{

// The text after the last "::" of the value of the template parameter in GCC's and Clang's __PRETTY_FUNCTION__.
consteval std::string_view last_name(std::string_view function)
{
    const auto value = function.find("= ") + 2;
    const auto end   = function.find_first_of(";]", value);
    auto name        = function.substr(value, end - value);
    if (const auto colons = name.rfind("::"); colons != name.npos) {
        name.remove_prefix(colons + 2);
    }
    return name;
}

template <const auto& Field>
consteval std::string_view field_name()
{
    return last_name(__PRETTY_FUNCTION__);
}

template <auto Value>
consteval std::string_view value_name()
{
    return last_name(__PRETTY_FUNCTION__);
}

template <typename Type>
consteval std::string_view type_name()
{
    return last_name(__PRETTY_FUNCTION__);
}

} // namespace detail

template <typename Enum>
struct value_names;

struct named_value {
    std::uint64_t value;
    std::string_view name;
};

template <auto... Values>
struct one_of {
    static constexpr bool flags           = false;
    static constexpr named_value values[] = {
        {static_cast<std::uint64_t>(std::to_underlying(Values)), detail::value_name<Values>()}...};
};

template <auto... Values>
struct any_of : one_of<Values...> {
    static constexpr bool flags = true;
};

// The name of a value, or nothing when it has none.
template <typename Enum>
constexpr std::string_view name_of(Enum value)
{
    for (const named_value& known : value_names<Enum>::values) {
        if (known.value == static_cast<std::uint64_t>(std::to_underlying(value))) {
            return known.name;
        }
    }
    return {};
}

} // namespace ucxl::prm
