// The bytes that two backends exchange: what NIXL's metadata holds for them, and the messages between them.
//
// Both are read with all checks: bytes from outside may be anything.
//
//     show     "make a window of this layout over these regions"; answered by shown
//     shown    its address and key, or why not
//     drop     the window is not used any more
//     notice   a notification of NIXL
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

enum class message_kind : std::uint32_t { show = 1, shown, drop, notice };

struct message {
    message_kind kind     = message_kind::notice;
    std::uint64_t sender  = 0;            // the instance that sends it
    std::uint64_t window  = 0;            // show, shown, drop: its number, chosen by who asks for it
    std::int32_t status   = 0;            // shown: a ucs_status_t
    std::uint64_t address = 0;            // shown
    std::uint64_t length  = 0;            // show, shown: packed bytes
    std::vector<std::uint64_t> regions{}; // show
    std::string name{};                   // notice: of the agent that sends it
    std::string bytes{};                  // show: the layout; shown: the key; notice: the text
};

std::string encode(const message& from);
std::optional<message> decode(std::string_view bytes);

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
