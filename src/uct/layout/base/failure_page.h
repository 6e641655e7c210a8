// The counts of failure.h in an unnamed file that other processes of the user can open. The first failure makes it, so
// a process without failures has none. A child of fork() begins with its own.
#pragma once

#include "failure.h"

#include "sys/magic.h"

#include <atomic>

namespace ucxl
{

struct failure_page {
    static constexpr auto form = magic<std::uint64_t>("UCXFAIL1");

    std::uint64_t magic;
    std::uint64_t num_kinds;
    std::array<std::atomic<std::uint64_t>, num_failure_kinds> all;
    std::array<std::atomic<std::uint64_t>, num_failure_kinds> silent;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(failure_page) == (2 + 2 * num_failure_kinds) * sizeof(std::uint64_t));

// The page of this process; makes it if there is none. Null only without memory for it.
failure_page* own_failure_page() noexcept;
// Null if this process has had no failure.
const failure_page* known_failure_page() noexcept;
// All zero for null.
failure_counts read_failure_page(const failure_page* page);

} // namespace ucxl
