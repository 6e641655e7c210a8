// The three ways to move a pattern between the two processes. Both processes make each call at the same time.
//
// A ping-pong of tag messages: the second process answers every message with one of its own, and receives are posted
// before their message is sent. With windows the buffers are windows. With packing they are ordinary buffers, packed
// before the send and unpacked after the receive. Nothing else differs.
#pragma once

#include "examples/common/ucx_link.h"
#include "payload.h"

#include <memory>

namespace examples
{

// Memory, windows and packed buffers of one pattern in one process.
class exchange
{
public:
    exchange(team& both, ucx_link& link, const pattern& pattern);
    exchange(const exchange&)            = delete;
    exchange& operator=(const exchange&) = delete;

    memory_set& send_memory() { return _send_memory; }
    memory_set& receive_memory() { return _receive_memory; }
    std::size_t length_bytes() const { return _send_window.length(); }
    std::size_t blocks() const { return _blocks; } // of the sender, neighbours merged
    // What the CPU of this process moved through the windows so far.
    std::uint64_t copied_bytes() const;

    void ping_pong_windows(unsigned iterations);
    void ping_pong_packed(unsigned iterations);
    // The first process writes into the second process's window with ucp_put_nbx.
    void put_windows(unsigned iterations);

private:
    struct buffers {
        void* send;
        void* receive;
    };
    template <typename before_send, typename after_receive>
    void ping_pong(unsigned iterations, buffers use, before_send&& prepare, after_receive&& deliver);

    team& _team;
    ucx_link& _link;
    const pattern& _pattern;
    unsigned _peer;
    memory_set _send_memory, _receive_memory;
    ucx_layout::window _send_window, _receive_window;
    std::size_t _blocks           = 0;
    std::uint64_t _earlier_copies = 0; // a window may be one that was used before
    std::unique_ptr<std::byte[]> _packed_send, _packed_receive;
    std::uint64_t _remote_address = 0;
    std::unique_ptr<ucp_rkey, ucx_destroy<ucp_rkey_destroy>> _remote_key;
};

} // namespace examples
