// Transfers between a peer with the library and a peer with stock UCX only.
#pragma once

#include "session.h"

#include <array>

namespace ucxl::two_process
{

// Lengths that role 0 sends from a window to role 1.
inline constexpr std::array<std::size_t, 5> window_lengths = {1, 64, 5000, 70000, 1 << 20};

bytes test_pattern(std::size_t length, unsigned salt);

// Role 0 sends host memory, whose length depends on the round, and gets it back from role 1.
void echo(session& session, unsigned round);
// In this round it is a megabyte.
constexpr unsigned round_by_rendezvous = 4;

} // namespace ucxl::two_process
