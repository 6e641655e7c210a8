// One run on one side: the images, and for each method what it needs and its exchange with the peer.
//
// Both sides make it at the same time (keys are traded), and both destroy it after the same barrier.
#pragma once

#include "exchange.h"

#include <memory>
#include <vector>

namespace ucxl::perf
{

class bench
{
public:
    bench(session& with, agreed_run run);

    const settings& what() const { return _run.what; }
    std::size_t num_methods() const { return _lanes.size(); }
    exchange& exchange_of(std::size_t index) { return *_lanes[index].test; }
    session& with() { return _with; }

    // A message with a known pattern in either direction; this side sends `own`.
    void fill(std::size_t index, std::uint64_t own);
    // What came from the peer, after both sides have flushed; throws when it is not the pattern of `expected`.
    void check(std::size_t index, std::uint64_t expected);

private:
    struct lane {
        std::unique_ptr<method> how;
        std::unique_ptr<exchange> test;
    };

    session& _with;
    agreed_run _run;
    image_pair _images;
    std::vector<lane> _lanes;
};

// What the client tells the server to do, in every message of kind `command`.
enum class command_kind : std::uint32_t { measure = 1, validate, end_run };

struct command {
    command_kind kind;
    std::uint32_t method; // index into the chosen ones
    std::uint64_t count;  // messages
    std::uint64_t number; // of the validated message
};

// The client fills number 2n, the server 2n + 1, so that a side never takes its own pattern for the peer's.
inline std::uint64_t pattern_of_client(std::uint64_t number)
{
    return 2 * number;
}
inline std::uint64_t pattern_of_server(std::uint64_t number)
{
    return 2 * number + 1;
}

} // namespace ucxl::perf
