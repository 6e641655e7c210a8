// The parent's side of a two-process test: two fresh processes of this program, connected with each other, with an
// environment of their own, watched by a deadline.
//
// A pair passes when both peers end as expected and print nothing: UCX logs warnings and errors to standard output,
// so any output is a failure, unless the test says which message it wants. The parent itself never initialises UCX.
//
// Example:
//     EXPECT_PAIR((pair_config{.scenario = "transfers.tag", .environment = {{"UCX_TLS", "posix,lay_copy"}}}));
#pragma once

#include "support/process.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ucxl::two_process
{

using test::environment;

enum class peer_program {
    with_library,
    plain, // stock UCX only, without libucp_layout
    none,  // the other peer plays both roles
};

// What a peer has to do to make the test pass.
struct peer_expectation {
    int exit_status = 0;
    int signal      = 0;     // if not 0, the peer has to end by it, and the status is ignored
    std::string output{};    // a regular expression that has to be found in the output; empty: there must be no output
    bool any_output = false; // stock UCX may log here, and the output is not looked at
};

struct pair_config {
    std::string scenario;
    environment variables{};
    unsigned rounds = 6;
    bool wakeup     = false;
    std::array<peer_program, 2> programs{peer_program::with_library, peer_program::with_library};
    std::array<peer_expectation, 2> expected{};
    unsigned deadline_s = 40;
    std::uint64_t salt  = 0; // makes scenarios of tests that share a scenario name differ
};

// The seed comes from that of the run and from the configuration; UCXL_TEST_ROUNDS overrides the number of rounds.
// Rounds are loops by hand: what fails is two processes in one state, and a smaller case would need two new ones.
testing::AssertionResult run_pair(const pair_config& config);

#define EXPECT_PAIR(config) EXPECT_TRUE(::ucxl::two_process::run_pair(config))

} // namespace ucxl::two_process
