#include "pair.h"

#include "child.h"
#include "seed.h"

#include <cstdlib>
#include <format>
#include <functional>
#include <memory>
#include <regex>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

std::optional<std::uint64_t> number_from_environment(const char* name)
{
    const char* const text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(text, nullptr, 0));
}

std::uint64_t seed_of(const pair_config& config)
{
    if (const auto given = number_from_environment("UCXL_TEST_SEED")) {
        return *given;
    }
    std::string text = config.scenario;
    for (const auto& [name, value] : config.variables) {
        text += name + value;
    }
    return derive_seed(std::hash<std::string>()(text), config.salt);
}

std::vector<std::string> arguments(const pair_config& config, int role, std::uint64_t seed)
{
    const auto rounds = number_from_environment("UCXL_TEST_ROUNDS").value_or(config.rounds);
    return {"--peer",
            std::to_string(role),
            config.scenario,
            std::to_string(seed),
            std::to_string(rounds),
            config.wakeup ? "wakeup" : "polling"};
}

// What is wrong with how a peer ended; empty if nothing is.
std::string complaint(const ended_child& peer, const peer_expectation& expected)
{
    if (peer.timed_out) {
        return std::format("did not end before the deadline, and ran {:.1f} s of that time", peer.ran_s);
    }
    if (expected.signal != 0) {
        if (peer.signal != expected.signal) {
            return std::format("ended with status {} signal {}, not by signal {}", peer.exit_status, peer.signal,
                               expected.signal);
        }
    } else if (peer.signal != 0 || peer.exit_status != expected.exit_status) {
        return std::format("ended with status {} signal {}, not with status {}", peer.exit_status, peer.signal,
                           expected.exit_status);
    }
    if (expected.any_output) {
        return {};
    }
    if (expected.output.empty()) {
        return peer.output.empty() ? std::string() : "printed something";
    }
    return std::regex_search(peer.output, std::regex(expected.output))
               ? std::string()
               : std::format("printed nothing that matches '{}'", expected.output);
}

} // namespace

testing::AssertionResult run_pair(const pair_config& config)
{
    const std::uint64_t seed = seed_of(config);
    const bool alone         = config.programs[1] == peer_program::none;
    std::vector<std::unique_ptr<child>> peers;
    {
        const channel_pairs channels;
        for (int role = 0; role < (alone ? 1 : 2); ++role) {
            peers.push_back(std::make_unique<child>(
                program_path(config.programs[role] == peer_program::plain ? "two_process_plain_peer" : ""),
                arguments(config, alone ? 2 : role, seed), config.variables, channels.ends(role)));
        }
    }
    const auto ended = wait_for(peers, config.deadline_s);

    std::string report;
    for (std::size_t role = 0; role < ended.size(); ++role) {
        const auto wrong = complaint(ended[role], config.expected[role]);
        if (!wrong.empty()) {
            report += std::format("peer {} {}\n", role, wrong);
        }
    }
    if (report.empty()) {
        return testing::AssertionSuccess();
    }
    report += std::format("scenario {}, UCXL_TEST_SEED={}\n", config.scenario, seed);
    for (const auto& [name, value] : config.variables) {
        report += std::format("    {}={}\n", name, value);
    }
    for (std::size_t role = 0; role < ended.size(); ++role) {
        report += std::format("--- output of peer {}:\n{}\n", role, ended[role].output);
    }
    return testing::AssertionFailure() << report;
}

} // namespace ucxl::two_process
