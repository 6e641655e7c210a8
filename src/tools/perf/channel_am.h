// Active messages. An eager one is put in its place inside the callback: by the method when it wants plain bytes, else
// by ucp_am_recv_data_nbx(), which stock UCX 1.18 does only there for messages of several fragments. A rendezvous is
// only noted by the callback and received from the main loop, into the next slot.
#pragma once

#include "channel.h"

#include <deque>
#include <vector>

namespace ucxl::perf
{

class am_channel : public channel
{
public:
    am_channel(session& with, method& how, unsigned slots);
    ~am_channel() override;

    ucs_status_ptr_t send(const wire_buffer& buffer) override;
    void begin_receive(std::uint64_t count) override;
    void receive() override;

private:
    struct arrival {
        void* data;                         // to be received, or NULL: is in its place
        bool started             = false;   // the receive
        ucs_status_ptr_t request = nullptr; // of the receive, NULL when it is complete
    };

    static ucs_status_t on_message(void* arg, const void* header, std::size_t header_length, void* data,
                                   std::size_t length, const ucp_am_recv_param_t* param);
    ucs_status_t place(void* data, std::size_t length, bool is_rendezvous);
    void start_rendezvous();
    ucs_status_ptr_t receive_into(const wire_buffer& buffer, void* data);
    unsigned slot_of(std::uint64_t message) const { return static_cast<unsigned>(message % _slots); }

    session& _with;
    method& _how;
    unsigned _slots;
    std::deque<arrival> _arrivals; // arrived and not yet handed out, in order
    std::uint64_t _received  = 0;  // handed out
    std::uint64_t _looked_at = 0;  // those handed out, and of _arrivals those whose receive has begun
    ucs_status_t _failed     = UCS_OK;
};

} // namespace ucxl::perf
