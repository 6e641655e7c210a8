#include "pair.h"

#include "channel.h"
#include "transports.h"

#include "support/random.h"

#include <algorithm>
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

// Pairs of one run differ.
std::uint64_t seed_of(const pair_config& config)
{
    std::string text = config.scenario;
    for (const auto& [name, value] : config.variables) {
        text += name + value;
    }
    return test::derive_seed(test::run_seed() ^ std::hash<std::string>()(text), config.salt);
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
std::string complaint(const test::ended_process& peer, const peer_expectation& expected)
{
    if (peer.timed_out) {
        return std::format("did not end before the deadline, and ran {:.1f} s of that time", peer.ran_s);
    }
    const int status = expected.signal != 0 ? 128 + expected.signal : expected.exit_status;
    if (peer.status != status) {
        return std::format("ended with status {} (128 + a signal), not {}", peer.status, status);
    }
    if (expected.any_output) {
        return {};
    }
    const std::string output = peer.output();
    if (expected.output.empty()) {
        return output.empty() ? std::string() : "printed something";
    }
    return std::regex_search(output, std::regex(expected.output))
               ? std::string()
               : std::format("printed nothing that matches '{}'", expected.output);
}

// UCX fills the receive queue of a card when a process starts: 4096 buffers, 33 MB, a third of what a test takes. It
// warns of options that it does not use.
void shorten_queues(environment& variables)
{
    const auto tls           = std::ranges::find(variables, "UCX_TLS", &environment::value_type::first);
    const bool may_use_cards = tls == variables.end() || std::regex_search(tls->second, std::regex("rc_|dc_|ud_"));
    if (is_on_device() && may_use_cards) {
        variables.emplace_back("UCX_IB_RX_QUEUE_LEN", "256");
    }
}

environment variables_of(const pair_config& config, std::size_t role)
{
    environment variables = config.variables;
    variables.insert(variables.end(), config.own_variables[role].begin(), config.own_variables[role].end());
    shorten_queues(variables);
    return variables;
}

} // namespace

testing::AssertionResult run_pair(const pair_config& config)
{
    const std::uint64_t seed = seed_of(config);
    const bool alone         = config.programs[1] == peer_program::none;
    std::vector<std::unique_ptr<test::process>> peers;
    std::vector<test::process*> all;
    {
        const channel_pairs channels;
        for (int role = 0; role < (alone ? 1 : 2); ++role) {
            const auto place    = static_cast<std::size_t>(role);
            const bool is_plain = config.programs[place] == peer_program::plain;
            peers.push_back(std::make_unique<test::process>(
                test::program_path(is_plain ? "two_process_plain_peer" : ""), arguments(config, alone ? 2 : role, seed),
                test::process_options{.variables           = variables_of(config, place),
                                      .without_ucx_options = true,
                                      .descriptors         = channels.ends(role)}));
            all.push_back(peers.back().get());
        }
    }
    const auto ended = wait_for_all(all, std::chrono::seconds(config.deadline_s));
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
    report += std::format("scenario {}, UCXL_TEST_SEED={}\n", config.scenario, test::run_seed());
    for (const auto& [name, value] : config.variables) {
        report += std::format("    {}={}\n", name, value);
    }
    for (std::size_t role = 0; role < ended.size(); ++role) {
        for (const auto& [name, value] : config.own_variables[role]) {
            report += std::format("    peer {}: {}={}\n", role, name, value);
        }
        report += std::format("--- output of peer {}:\n{}\n", role, ended[role].output());
    }
    return testing::AssertionFailure() << report;
}

} // namespace ucxl::two_process
