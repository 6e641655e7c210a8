// The parent's side of a two-process test. It starts two fresh processes of this program, connects them, gives them
// their own environment, and watches them with a deadline.
//
// A pair passes if both peers end as expected and print nothing. UCX logs warnings and errors to standard output, so
// any output is a failure, unless the test names the expected message. The parent itself never initialises UCX.
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

// How a peer must end for the test to pass.
struct peer_expectation {
    int exit_status = 0;
    int signal      = 0;     // if not 0, the peer must end by this signal, and the status is ignored
    std::string output{};    // a regular expression that must match the output; empty: there must be no output
    bool any_output = false; // stock UCX may log here; the output is ignored
};

struct pair_config {
    std::string scenario;
    environment variables{};
    std::array<environment, 2> own_variables{}; // of each peer, besides `variables`
    unsigned rounds = 6;
    bool wakeup     = false;
    std::array<peer_program, 2> programs{peer_program::with_library, peer_program::with_library};
    std::array<peer_expectation, 2> expected{};
    unsigned deadline_s = 40;
    std::uint64_t salt  = 0; // distinguishes tests that share a scenario
};

// The seed comes from that of the run and from the configuration; UCXL_TEST_ROUNDS overrides the number of rounds.
// Rounds are loops by hand: what fails is two processes in one state, and a smaller case would need two new ones.
testing::AssertionResult run_pair(const pair_config& config);

#define EXPECT_PAIR(config) EXPECT_TRUE(::ucxl::two_process::run_pair(config))

} // namespace ucxl::two_process
