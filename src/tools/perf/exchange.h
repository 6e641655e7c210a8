// One test with one method between the two processes: what each side does for `count` messages.
//
// The order of calls is the same on both sides: make_exchange(), then for every round prepare_*(), a message over the
// socket that the server is ready, run_client() against run_server(), a barrier, verify_*(). run_client() returns when
// every message has arrived and, if the method copies, has been copied to its place.
#pragma once

#include "method.h"
#include "statistics.h"

#include <memory>
#include <optional>

namespace ucxl::perf
{

class exchange
{
public:
    exchange()                           = default;
    virtual ~exchange()                  = default;
    exchange(const exchange&)            = delete;
    exchange& operator=(const exchange&) = delete;

    virtual void prepare_client(std::uint64_t /*count*/) {}
    virtual void prepare_server(std::uint64_t /*count*/) {}
    virtual void run_client(std::uint64_t count, method_statistics& statistics) = 0;
    virtual void run_server(std::uint64_t count)                                = 0;

    // After every run and its barrier, if results are checked: both sides compare what they know. Returns how many
    // operations that verified; throws if something is wrong.
    virtual std::uint64_t verify_client(std::uint64_t /*count*/) { return 0; }
    virtual void verify_server(std::uint64_t /*count*/) {}

    // The last byte of a message that the test uses as a signal, after a run of one message.
    virtual std::optional<std::byte> signal_of_first() const { return std::nullopt; }
};

std::unique_ptr<exchange> make_exchange(const settings& settings, session& session, method& method);

// Tags of the tag-matching calls.
enum : ucp_tag_t { tag_data = 1, tag_word = 2 };

// Sends a small message beside the measured ones; ordered only among themselves.
void send_word(session& session, std::uint64_t value);
std::uint64_t receive_word(session& session);

} // namespace ucxl::perf
