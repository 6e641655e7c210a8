#include "registry.h"

#include "all_structures.h"
#include "prm/view.h"

namespace ucxl::prm
{
namespace
{

template <typename S, typename Byte>
basic_view<S, Byte> over(Byte* structure)
{
    return *basic_view<S, Byte>::over(std::span(structure, S::size_bytes));
}

template <typename S, typename Field>
std::uint64_t get(const std::byte* structure)
{
    return detail::raw(over<S>(structure).get(Field{}));
}

template <typename S, typename Field>
bool set(std::byte* structure, std::uint64_t value)
{
    return over<S>(structure).set(Field{}, value);
}

template <typename S>
structure_access access()
{
    structure_access all{&info_of<S>, {}};
    const field_info* next = info_of<S>.fields.data();
    for_each_field<S>([&](std::string_view, auto field) {
        using type = decltype(field);
        if constexpr (type::kind == field_kind::number) {
            all.numbers.push_back({next, get<S, type>, set<S, type>});
        }
        next++;
    });
    return all;
}

std::map<std::string_view, structure_access> make()
{
    std::map<std::string_view, structure_access> all;
    all_structures::for_each([&]<typename S>() { all.emplace(info_of<S>.name, access<S>()); });
    return all;
}

} // namespace

const std::map<std::string_view, structure_access>& registry()
{
    static const auto all = make();
    return all;
}

} // namespace ucxl::prm
