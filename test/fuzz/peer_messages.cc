// Any bytes as the messages by which a peer puts, gets, does atomics and answers (src/uct/layout/messages), as the
// handlers that libucp registers get them. Bytes of a window change as a plain copy of it says, and no others.
//
// Left out is what libucp's own handlers get unchanged: requests for memory that is no window, and numbers of requests
// and of endpoints, which it takes for pointers.
#include "fuzz_target.h"

#include "abi/messages.h"
#include "abi/ucx.h"
#include "abi/window_types.h"
#include "support/leak_checks.h"
#include "support/ucp_pair.h"
#include "uct/layout/init.h"
#include "gtest/uct/layout/patterned_window.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ucxl
{
namespace
{

using fuzz::require;

constexpr std::uint64_t nobody = 0x7fffffff; // no endpoint has this number, so nothing is answered
constexpr std::uint64_t length = 600;

const abi::ucp_am_handler& handler_of(const char* id)
{
    return *abi::find_object<abi::ucp_am_handler>((std::string("ucp_am_handler_UCP_AM_ID_") + id).c_str());
}

struct target_process {
    test::ucp_pair pair{{.config = {{"TLS", "self,lay_copy"}}, .self = true}};
    std::array<test::patterned_window, 2> windows{
        test::patterned_window({12, 20}, length, 3),
        test::patterned_window({600, 640}, length, 4, window_carrier::copies),
    };
    std::array<std::vector<std::byte>, 2> expected{windows[0].packed(), windows[1].packed()};

    static target_process& instance()
    {
        static target_process& one = [] -> target_process& {
            const test::leaks_of_others unseen; // UCX's lists are in memory that is not searched for pointers
            uct_layout_init();
            return *new target_process; // never destroyed
        }();
        return one;
    }
};

// What a message starts with, before its body.
struct message_choices {
    std::uint8_t kind;   // and which form of the handler
    std::uint8_t window; // the address is near this one, or any
    std::int16_t offset;
    std::uint32_t memory_type;
    std::uint64_t number; // an address, the length of a get, or the number of a request
    std::uint8_t word;
    std::uint8_t operation;
};

std::uint64_t address_of(const message_choices& chosen, const target_process& process)
{
    return chosen.window >= 2 ? chosen.number
                              : reinterpret_cast<std::uintptr_t>(process.windows[chosen.window].address()) +
                                    static_cast<std::uint64_t>(chosen.offset);
}

bool is_ours(std::uint64_t address, std::uint64_t bytes, std::uint32_t memory_type)
{
    return abi::types_of_windows().serves(memory_type) ||
           window_registry::instance().touches_arena(reinterpret_cast<const void*>(address), bytes);
}

// The packed bytes of a window that the range is in, if it is all in one.
std::span<std::byte> expected_at(target_process& process, std::uint64_t address, std::uint64_t bytes)
{
    for (std::size_t i = 0; i < process.windows.size(); ++i) {
        const std::uint64_t at = address - reinterpret_cast<std::uintptr_t>(process.windows[i].address());
        if (at <= length && bytes <= length - at) {
            return std::span(process.expected[i]).subspan(at, bytes);
        }
    }
    return {};
}

template <typename Header>
void deliver(target_process& process, const char* id, const Header& header, std::span<const std::byte> body)
{
    std::vector<std::byte> message(sizeof(header) + body.size());
    std::memcpy(message.data(), &header, sizeof(header));
    std::ranges::copy(body, message.begin() + sizeof(header));
    const ucs_status_t status = handler_of(id).cb(process.pair.worker(0), message.data(), message.size(), 0);
    require(status == UCS_OK, "a handler ends with UCS_OK");
}

void put(target_process& process, const message_choices& chosen, std::span<const std::byte> body)
{
    const std::uint64_t address = address_of(chosen, process);
    if (body.empty() || !is_ours(address, body.size(), chosen.memory_type)) {
        return;
    }
    const auto expected = expected_at(process, address, body.size());
    std::ranges::copy(body.first(expected.size()), expected.begin());
    deliver(process, "PUT", abi::put_request{address, nobody, chosen.memory_type}, body);
}

void get(target_process& process, const message_choices& chosen, std::span<const std::byte> body)
{
    const std::uint64_t address = address_of(chosen, process);
    const std::uint64_t bytes   = chosen.window < 2 ? chosen.number % 700 : chosen.number;
    if (bytes != 0 && is_ours(address, bytes, chosen.memory_type)) {
        deliver(process, "GET_REQ", abi::get_request{address, bytes, {nobody, 1}, chosen.memory_type}, body);
    }
}

// Words of the second window: all of its bytes lie in one block, whose memory is aligned.
void do_atomic(target_process& process, const message_choices& chosen, std::span<const std::byte> body)
{
    const std::uint64_t address = address_of(chosen, process);
    const bool is_word          = chosen.word == 4 || chosen.word == 8;
    if (!is_word || chosen.operation >= UCT_ATOMIC_OP_LAST || !is_ours(address, chosen.word, UCS_MEMORY_TYPE_HOST)) {
        return;
    }
    const std::uint64_t awaited = chosen.kind < 128 ? 1 : 0; // whether the peer has a request for the result
    const auto packed           = expected_at(process, address, chosen.word);
    const std::vector<std::byte> before(packed.begin(), packed.end());
    deliver(process, "ATOMIC_REQ", abi::atomic_request{address, {nobody, awaited}, chosen.word, chosen.operation},
            body);
    if (packed.empty()) {
        return;
    }
    // Which values come out is the matter of other tests; here, that no other byte changes.
    for (std::size_t i = 0; i < process.windows.size(); ++i) {
        const auto now         = process.windows[i].packed();
        const std::uint64_t at = address - reinterpret_cast<std::uintptr_t>(process.windows[i].address());
        if (at < length) {
            std::ranges::copy(std::span(now).subspan(at, packed.size()), packed.begin());
        }
    }
}

// Numbers of requests that may exist are left out; notices have a form of their own.
void reply(target_process& process, const message_choices& chosen, std::span<const std::byte> body)
{
    constexpr std::uint64_t notice = std::uint64_t{0x5502} << 49;
    const bool is_notice           = chosen.window % 2 == 0;
    const std::uint64_t number     = is_notice ? notice | chosen.number >> 15 | 1 : chosen.number | 1;
    deliver(process, "GET_REP", abi::get_reply{number, chosen.memory_type}, body);
    std::array<std::byte, sizeof(abi::get_reply)> cut{};
    const std::size_t kept = std::min(body.size(), cut.size() - 1);
    std::ranges::copy(body.first(kept), cut.begin());
    require(handler_of("GET_REP").cb(process.pair.worker(0), cut.data(), kept, 0) == UCS_OK, "UCS_OK");
}

} // namespace
} // namespace ucxl

using namespace ucxl;

UCXL_FUZZ_TARGET(peer_messages)
{
    target_process& process = target_process::instance();
    auto bytes              = std::as_bytes(std::span(data, size));
    while (bytes.size() >= sizeof(message_choices)) {
        message_choices chosen;
        std::memcpy(&chosen, bytes.data(), sizeof(chosen));
        bytes                      = bytes.subspan(sizeof(chosen));
        const auto body            = bytes.first(std::min<std::size_t>(bytes.size(), chosen.kind / 4 * 11));
        bytes                      = bytes.subspan(body.size());
        constexpr std::array kinds = {put, get, do_atomic, reply};
        kinds[chosen.kind % 4](process, chosen, body);
    }
    for (std::size_t i = 0; i < process.windows.size(); ++i) {
        fuzz::require(process.windows[i].packed() == process.expected[i], "the window has what was put into it");
        fuzz::require(process.windows[i].gaps_untouched(), "nothing beside the window changes");
    }
    return 0;
}
