// The record a reader of an event channel gets for one event: the three structures that the kernel writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "softhca/core/arena/host.h"

namespace ucxl::softhca
{

// event_route::kind: the format in the low bits; for DEVX channels the subscribed events above it.
enum class event_format : std::uint32_t {
    completion  = 1, // ib_uverbs_comp_event_desc
    async       = 2, // ib_uverbs_async_event_desc
    devx        = 3, // mlx5_ib_uapi_devx_async_event_hdr
    devx_data   = 4, // the same, followed by the event queue entry
    devx_count  = 5, // an eventfd, which counts
    devx_answer = 6, // mlx5_ib_uapi_devx_async_cmd_hdr and the answer of the command; no event has it
};

inline constexpr std::size_t max_event_bytes = 8 + 64;

struct event_record {
    std::array<std::byte, max_event_bytes> bytes{};
    std::size_t length = 0; // 0: the channel does not want the event
};

// `type` as in host::notify(). The end of a channel is a record as well, because a reader that waits has to be woken;
// the program never sees it.
event_record format_event(const event_route& route, std::uint32_t type);

// The length of these events up to the end of the channel; all of them when the end is not there.
std::size_t ends_behind(std::span<const std::byte> events, event_format format);

std::size_t event_bytes(event_format format);
event_format format_of(std::uint32_t kind);

// Adds an event to the subscriptions in `kind`. False for an event that no channel can have.
bool subscribe(std::uint32_t& kind, std::uint32_t type);

} // namespace ucxl::softhca
