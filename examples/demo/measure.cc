#include "measure.h"

#include "exchange.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace examples
{

using method = void (exchange::*)(unsigned iterations);
static constexpr std::array<method, 3> methods{&exchange::ping_pong_windows, &exchange::ping_pong_packed,
                                               &exchange::put_windows};
static constexpr std::array<const char*, 3> method_names{"windows", "packing", "put"};
static constexpr std::array<unsigned, 3> transfers{2, 2, 1}; // in one iteration

// Contents differ between processes and between checks, so that stale or mixed data fails.
static std::uint64_t send_seed(unsigned rank, unsigned generation)
{
    return 1000 + 2 * generation + rank;
}
static constexpr std::uint64_t background_seed = 7;

static double seconds(team& both, exchange& moved, method chosen, unsigned iterations)
{
    both.barrier();
    const auto begin = std::chrono::steady_clock::now();
    (moved.*chosen)(iterations);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Joins the findings of both sides; both processes get the same text. Empty if there is no error.
static std::string agree(team& both, const std::string& mine)
{
    for (const std::string& text : both.gather(mine)) {
        if (!text.empty()) {
            return text;
        }
    }
    return {};
}

// Checks that the peer's contents of this generation have arrived. With put only the second process receives.
static std::string verify_arrived(team& both, exchange& moved, const pattern& pattern, unsigned m, unsigned generation)
{
    std::string wrong;
    const bool received = methods[m] != &exchange::put_windows || both.rank() == 1;
    if (received) {
        wrong = verify(moved.receive_memory(), pattern, send_seed(1 - both.rank(), generation), background_seed);
    }
    return agree(both, wrong.empty() ? wrong : std::string(method_names[m]) + ": " + wrong);
}

// One iteration of every method with fresh contents.
static std::string verify_all(team& both, exchange& moved, const pattern& pattern, unsigned first_generation)
{
    for (unsigned m = 0; m < methods.size(); ++m) {
        const unsigned generation = first_generation + m;
        moved.send_memory().fill(send_seed(both.rank(), generation));
        both.barrier();
        (moved.*methods[m])(1);
        if (std::string wrong = verify_arrived(both, moved, pattern, m, generation); !wrong.empty()) {
            return wrong;
        }
    }
    return {};
}

// Rank 0 decides and sends the number as text.
static unsigned choose_iterations(team& both, exchange& moved, unsigned m, double seconds_a_round)
{
    constexpr unsigned max_iterations = 100000;
    unsigned tried                    = 1;
    double took                       = seconds(both, moved, methods[m], tried);
    while (true) {
        took = std::stod(both.gather(std::to_string(took))[0]);
        if (took > seconds_a_round / 4 || tried >= max_iterations) {
            return static_cast<unsigned>(std::clamp(tried * seconds_a_round / took, 1.0, 1.0 * max_iterations));
        }
        tried = std::min(tried * 4, max_iterations);
        took  = seconds(both, moved, methods[m], tried);
    }
}

static double median(std::vector<double>& values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

static void time_all(team& both, exchange& moved, const measure_settings& settings, row& result)
{
    std::array<unsigned, 3> iterations;
    for (unsigned m = 0; m < methods.size(); ++m) {
        iterations[m] = choose_iterations(both, moved, m, settings.seconds_a_round);
    }
    std::array<std::vector<double>, 3> rounds;
    for (unsigned round = 0; round < settings.rounds; ++round) {
        for (unsigned m = 0; m < methods.size(); ++m) {
            rounds[m].push_back(seconds(both, moved, methods[m], iterations[m]) / iterations[m] / transfers[m]);
        }
    }
    result.windows_s     = median(rounds[0]);
    result.packed_s      = median(rounds[1]);
    result.put_s         = median(rounds[2]);
    result.windows_min_s = std::ranges::min(rounds[0]);
    result.packed_min_s  = std::ranges::min(rounds[1]);
    result.put_min_s     = std::ranges::min(rounds[2]);
}

row measure(team& both, ucx_link& link, const pattern& pattern, const measure_settings& settings)
{
    exchange moved(both, link, pattern);
    moved.receive_memory().fill(background_seed);
    row result{};
    result.bytes  = moved.length_bytes();
    result.blocks = moved.blocks();

    std::string wrong = verify_all(both, moved, pattern, 0);
    if (wrong.empty()) {
        // The contents sent here are those of the last check, so the result of many iterations can be verified, too.
        const unsigned generation = methods.size() - 1;
        time_all(both, moved, settings, result);
        moved.ping_pong_windows(1);
        wrong = verify_arrived(both, moved, pattern, 0, generation);
    }
    if (wrong.empty()) {
        wrong = verify_all(both, moved, pattern, methods.size());
    }
    for (const std::string& bytes : both.gather(std::to_string(moved.copied_bytes()))) {
        result.copied_bytes += std::stoull(bytes);
    }
    result.verified = wrong.empty();
    std::snprintf(result.problem, sizeof(result.problem), "%s", wrong.c_str());
    both.barrier(); // the peer may still be reading this window
    return result;
}

} // namespace examples
