// The bytes that two backends exchange: what NIXL's metadata holds for them, and the messages between them.
//
// Both are read with all checks: bytes from outside may be anything. What UCX makes and reads itself, addresses and
// keys, only UCX could check. Of the address there is a hash, which finds damage, but not intent.
//
//     show     "make a window of this layout over these regions"; answered by shown
//     shown    its address and key and how to reach it, or why not
//     drop     the window is not used any more
//     drop_all the same of all windows up to this number, by which its sender leaves
//     notice   a notification of NIXL
//     fetch    "send bytes of a window": answered by data, or by moved with an error
//     moved    the data has arrived, or why not
//     greeting "I have made an endpoint to you", with what that takes in the other direction
//
// Data has a header of its own (data_header), because UCX brings it to its place by itself.
//
// Example: const auto bytes = encode(message{.kind = message_kind::drop, .window = 7});
//          const auto read  = decode(bytes);   // empty if these bytes are no message
#pragma once

#include "sys/process.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucxl::nixl
{

enum class message_kind : std::uint32_t { show = 1, shown, drop, notice, fetch, moved, drop_all, greeting };

// How the window of another agent is reached.
enum class reach : std::uint32_t {
    messages,   // its owner takes part: it receives into the window, and sends from it
    neighbors,  // by puts and gets of processes of the same host: it lies in shared memory
    everywhere, // by puts and gets: a network card has it
    kernel,     // by puts and gets of processes of the same host whose memory the kernel copies
};

struct message {
    message_kind kind     = message_kind::notice;
    std::uint64_t sender  = 0;               // the instance that sends it
    std::uint64_t window  = 0;               // show, shown, drop, drop_all: a number, chosen by who asks for it
    std::int32_t status   = 0;               // shown: a ucs_status_t
    reach way             = reach::messages; // shown
    std::uint64_t address = 0;               // shown; fetch: packed bytes before the first one
    std::uint64_t length  = 0;               // show, shown, fetch: packed bytes
    std::uint64_t piece   = 0;               // fetch, moved: a number of who began it; greeting: how many endpoints
    process_identity process{};              // show: that sends it, and with which the window ends
    std::vector<std::uint64_t> regions{};    // show
    std::string name{};                      // notice: of the agent that sends it
    std::string bytes{};                     // show: the layout; shown: the key; notice: the text; greeting: metadata
};

std::string encode(const message& from);
std::optional<message> decode(std::string_view bytes);

// Bytes for a window of the receiver, or bytes that the receiver has asked for by fetch.
struct data_header {
    std::uint64_t sender = 0;
    std::uint64_t window = 0; // 0: asked for
    std::uint64_t offset = 0; // in the window
    std::uint64_t piece  = 0;
};

std::string encode(const data_header& from);
std::optional<data_header> decode_data(std::string_view bytes);

// What another agent has to know of registered memory. Its size does not depend on what is done with it.
struct region_info {
    std::uint64_t id      = 0;
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
};

std::string encode(const region_info& from);
std::optional<region_info> decode_region(std::string_view bytes);

// What another agent has to know to connect.
struct connection_info {
    std::uint64_t instance = 0;
    process_identity process{};
    std::string address{}; // of a UCP worker
};

std::string encode(const connection_info& from);
std::optional<connection_info> decode_connection(std::string_view bytes);

} // namespace ucxl::nixl
