// One run on one side: the images, and for each method its objects and its exchange with the peer.
//
// Both sides create it at the same time, because they trade keys. Both destroy it after the same barrier.
#pragma once

#include "exchange.h"
#include "memory_owner.h"

#include <memory>
#include <vector>

namespace ucxl::perf
{

class bench
{
public:
    // owner: of the memory that this side uses, if that is another process.
    bench(session& session, agreed_run run, memory_owner* owner = nullptr);

    const settings& test_settings() const { return _run.test_settings; }
    std::size_t num_methods() const { return _lanes.size(); }
    exchange& exchange_of(std::size_t index) { return *_lanes[index].test; }
    session& own_session() { return _session; }
    // As method::copied_bytes.
    std::optional<std::uint64_t> copied_bytes(std::size_t index) const { return _lanes[index].driver->copied_bytes(); }

    // A message with a known pattern in either direction; this side sends `own`.
    void fill(std::size_t index, std::uint64_t own);
    // Checks what came from the peer, after both sides have flushed. Throws unless it is the pattern of `expected`.
    void check(std::size_t index, std::uint64_t expected);

private:
    struct lane {
        std::unique_ptr<method> driver;
        std::unique_ptr<exchange> test;
    };

    session& _session;
    agreed_run _run;
    image_pair _images;
    std::vector<lane> _lanes;
};

// What the client tells the server to do, in every message of kind `command`.
enum class command_kind : std::uint32_t { measure = 1, validate, end_run };

struct command {
    command_kind kind;
    std::uint32_t method; // index into the chosen methods
    std::uint64_t count;  // messages
    std::uint64_t number; // number of the validated message
};

// The client fills number 2n and the server 2n + 1, so that no side takes its own pattern for that of the peer.
inline std::uint64_t pattern_of_client(std::uint64_t number)
{
    return 2 * number;
}
inline std::uint64_t pattern_of_server(std::uint64_t number)
{
    return 2 * number + 1;
}

} // namespace ucxl::perf
