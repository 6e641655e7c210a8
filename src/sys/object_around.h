// The object that a member lies in. UCX's ucs_container_of() finds the place of a member in an object at a null
// pointer, which has no defined behaviour: UndefinedBehaviorSanitizer of clang reports it.
//
// Example: uct_component* component = object_around<uct_component>(link, offsetof(uct_component, list));
#pragma once

#include <cstddef>

namespace ucxl
{

template <typename Object>
Object* object_around(void* member, std::size_t offset)
{
    return reinterpret_cast<Object*>(static_cast<std::byte*>(member) - offset);
}

template <typename Object>
const Object* object_around(const void* member, std::size_t offset)
{
    return reinterpret_cast<const Object*>(static_cast<const std::byte*>(member) - offset);
}

} // namespace ucxl
