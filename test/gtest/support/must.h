// What a function returned, or a failure with the words of its error: GoogleTest counts an exception as a failure of
// the test, other programs end with it.
//
// Example: const layout_ptr column = must(build(*described));
#pragma once

#include <expected>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ucxl::test
{

// Of errors of the library inside, of its C++ interface, which are statuses of UCX, and of other numbers.
template <typename Error>
std::string words_of(const Error& error)
{
    if constexpr (std::is_convertible_v<const Error&, std::string>) {
        return error;
    } else if constexpr (requires { error.message; }) {
        return error.message;
    } else if constexpr (requires { ucs_status_string(error); }) {
        return ucs_status_string(error);
    } else {
        return "error " + std::to_string(static_cast<int>(error));
    }
}

// Throws std::runtime_error.
template <typename T, typename Error>
T must(std::expected<T, Error> made)
{
    if (!made) {
        throw std::runtime_error(words_of(made.error()));
    }
    if constexpr (!std::is_void_v<T>) {
        return *std::move(made);
    }
}

} // namespace ucxl::test
