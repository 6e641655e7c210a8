// Errors of every layer: a code, and a message that names the field and the limit. Whoever turns the code into a
// ucs_status_t logs the message, once (ucs/sys/status.h).
//
// Example:
//     result<void> send(const layout& layout)
//     {
//         auto plan = UCXL_TRY(pack_plan::compile(layout)); // the value, or the error goes to the caller
//         if (plan->length() > limit) {
//             return fail(errc::exceeds_limit, std::format("length is {}, the limit is {}", plan->length(), limit));
//         }
//         return {};
//     }
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <expected>
#include <format>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ucxl
{

enum class errc : std::uint8_t {
    invalid_param, // a value contradicts another value or the documentation
    exceeds_limit, // a named limit is exceeded, or 64-bit arithmetic would overflow
    no_memory,
    no_resource, // a queue or pool is full; a later attempt may succeed
    no_device,
    malformed,   // the bytes are no wire form, or the text is no layout
    unsupported, // well formed, but this device or this version cannot do it
    timed_out,
    io_error, // the device or the kernel failed
};

struct error {
    errc code;
    std::string message;
};

template <typename T>
using result = std::expected<T, error>;

inline std::unexpected<error> fail(errc code, std::string message)
{
    return std::unexpected(error{code, std::move(message)});
}

// What the device or the kernel refused, by its errno.
inline std::unexpected<error> fail_errno(std::string_view subject, int number = errno)
{
    const errc code = number == ENOMEM                                    ? errc::no_memory
                      : number == EOPNOTSUPP || number == EPROTONOSUPPORT ? errc::unsupported
                                                                          : errc::io_error;
    return fail(code, std::format("{}: {}", subject, std::strerror(number)));
}

// By value: what a statement expression ends with outlives its variables.
template <typename Result>
auto take_value(Result&& result) -> std::remove_cvref_t<Result>::value_type
{
    return *std::forward<Result>(result);
}

} // namespace ucxl

// The value of a result; on an error the function around it returns that error. A statement expression, as UCX uses
// them (GNU C), because C++ has no other way to return from within an expression.
#define UCXL_TRY(...)                                                                                                  \
    ({                                                                                                                 \
        auto&& ucxl_tried = (__VA_ARGS__);                                                                             \
        if (!ucxl_tried) [[unlikely]] {                                                                                \
            return std::unexpected(std::forward<decltype(ucxl_tried)>(ucxl_tried).error());                            \
        }                                                                                                              \
        ::ucxl::take_value(std::forward<decltype(ucxl_tried)>(ucxl_tried));                                            \
    })
