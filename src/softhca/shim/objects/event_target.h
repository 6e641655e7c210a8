// Where the events of an object go and what the program calls the object there, with the count of those it was told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "event_file.h"

namespace ucxl::softhca
{

struct event_target {
    std::shared_ptr<event_file> channel;
    std::uint64_t value = 0;
    std::uint32_t told  = 0; // events that the program read, of routes that are gone
    std::uint32_t kinds = 0; // of a DEVX channel: the events it wants

    event_route route(std::uint32_t object) const
    {
        if (channel == nullptr || !channel->open()) {
            return {};
        }
        event_route route = channel->route(value, object);
        route.kind |= kinds;
        return route;
    }

    // That route is taken away for good: what the program did not read, it does not get any more.
    void settle(const std::optional<event_route>& before)
    {
        if (before && channel != nullptr) {
            told += before->sent - std::min(before->sent, channel->drop(value));
        }
        channel.reset();
    }
};

} // namespace ucxl::softhca
