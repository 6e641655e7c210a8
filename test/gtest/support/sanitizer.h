// The sanitizer that the tests were built with.
//
// Example: constexpr double most_ms = 2000 * slower_by_sanitizer;
#pragma once

namespace ucxl::test
{

// How much longer something may take.
#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned slower_by_sanitizer = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned slower_by_sanitizer = 4;
#else
inline constexpr unsigned slower_by_sanitizer = 1;
#endif

} // namespace ucxl::test
