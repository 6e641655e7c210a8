// Messages between two peers beside UCX, over a socket pair: addresses, remote keys, barriers.
//
// A channel without a descriptor is a loopback, for scenarios in which one process plays both roles.
#pragma once

#include "support/check.h"

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace ucxl::two_process
{

using bytes = std::vector<std::byte>;
using test::check;
using test::check_ok;

// Every peer finds its ends of the socket pairs at these descriptors, one for each of its threads.
inline constexpr int first_channel_fd = 20; // process::first_descriptor
inline constexpr int num_channels     = 2;

class channel_pairs
{
public:
    channel_pairs();
    ~channel_pairs();
    channel_pairs(const channel_pairs&)            = delete;
    channel_pairs& operator=(const channel_pairs&) = delete;

    std::vector<int> ends(int role) const;

private:
    std::array<std::array<int, num_channels>, 2> _ends; // by role
};

class channel
{
public:
    static constexpr int loopback = -1;

    explicit channel(int fd) : _fd(fd) {}

    int fd() const { return _fd; }
    // Messages are short (addresses, keys) and fit the socket's buffer. Throws when the other peer is gone.
    void send(std::span<const std::byte> message);
    // Returns nothing while no whole message has arrived. Throws when the other peer is gone.
    std::optional<bytes> try_receive();

private:
    bool read_available();

    int _fd;
    bytes _partial;
    std::deque<bytes> _messages;
};

} // namespace ucxl::two_process
