// The attributes of the uverbs methods, as tables: the counterpart of the kernel's UVERBS_ATTR_* declarations.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstdint>
#include <span>

#include "softhca/shim/objects/uobject.h"

namespace ucxl::softhca
{

class uverbs_call;

enum class attribute_type : std::uint8_t {
    input,
    output,
    object,     // a handle
    new_object, // where the new handle goes
    fd,         // a descriptor; the method checks what it is
    new_fd,
};

enum class presence : std::uint8_t {
    optional,
    mandatory,
};

inline constexpr std::uint16_t any_length = 0xffff;

struct attribute_spec {
    std::uint16_t id         = 0;
    attribute_type type      = attribute_type::input;
    presence needed          = presence::mandatory;
    std::uint16_t min_length = 0;
    std::uint16_t max_length = 0;
    bool zero_trailing       = false; // longer is allowed if the rest is zero
    object_kind kind         = object_kind::pd;
};

template <typename Value>
constexpr attribute_spec input(std::uint16_t id, presence needed = presence::mandatory)
{
    return {.id = id, .needed = needed, .min_length = sizeof(Value), .max_length = sizeof(Value)};
}

// A number or an enumeration: always 8 bytes.
constexpr attribute_spec constant(std::uint16_t id, presence needed = presence::mandatory)
{
    return input<std::uint64_t>(id, needed);
}

// Flags: 4 or 8 bytes.
constexpr attribute_spec flags(std::uint16_t id, presence needed = presence::optional)
{
    return {.id = id, .needed = needed, .min_length = sizeof(std::uint32_t), .max_length = sizeof(std::uint64_t)};
}

constexpr attribute_spec input_from(std::uint16_t id, std::uint16_t min_length, presence needed = presence::mandatory)
{
    return {.id = id, .needed = needed, .min_length = min_length, .max_length = any_length};
}

// A structure that grew; `min_length` is the length of its first version.
template <typename Value>
constexpr attribute_spec structure(std::uint16_t id, std::uint16_t min_length)
{
    return {.id = id, .min_length = min_length, .max_length = sizeof(Value), .zero_trailing = true};
}

template <typename Value>
constexpr attribute_spec output(std::uint16_t id, presence needed = presence::mandatory)
{
    return {.id         = id,
            .type       = attribute_type::output,
            .needed     = needed,
            .min_length = sizeof(Value),
            .max_length = sizeof(Value)};
}

constexpr attribute_spec output_from(std::uint16_t id, std::uint16_t min_length, presence needed = presence::mandatory)
{
    return {
        .id = id, .type = attribute_type::output, .needed = needed, .min_length = min_length, .max_length = any_length};
}

constexpr attribute_spec handle(std::uint16_t id, object_kind kind, presence needed = presence::mandatory)
{
    return {.id = id, .type = attribute_type::object, .needed = needed, .kind = kind};
}

constexpr attribute_spec new_handle(std::uint16_t id)
{
    return {.id = id, .type = attribute_type::new_object};
}

constexpr attribute_spec descriptor(std::uint16_t id, presence needed = presence::mandatory)
{
    return {.id = id, .type = attribute_type::fd, .needed = needed};
}

constexpr attribute_spec new_descriptor(std::uint16_t id)
{
    return {.id = id, .type = attribute_type::new_fd};
}

// The structures of the driver, beside those of the core.
inline constexpr attribute_spec driver_input  = input_from(UVERBS_ATTR_UHW_IN, 0, presence::optional);
inline constexpr attribute_spec driver_output = output_from(UVERBS_ATTR_UHW_OUT, 0, presence::optional);

struct method_spec {
    std::uint16_t object = 0;
    std::uint16_t method = 0;
    std::span<const attribute_spec> attributes;
    int (*run)(uverbs_call& call) = nullptr; // 0 or an errno
};

} // namespace ucxl::softhca
