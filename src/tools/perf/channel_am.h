// Active messages. The callback puts an eager message in its place: the method takes plain bytes, otherwise
// ucp_am_recv_data_nbx() does it. Stock UCX receives messages of several fragments only there. The callback only
// notes a rendezvous; the main loop receives it into the next slot.
#pragma once

#include "channel.h"

#include <deque>
#include <vector>

namespace ucxl::perf
{

class am_channel : public channel
{
public:
    am_channel(session& session, method& method, unsigned slots);
    ~am_channel() override;

    ucs_status_ptr_t send(const wire_buffer& buffer) override;
    void begin_receive(std::uint64_t count) override;
    void receive() override;

private:
    struct arrival {
        void* data;                         // to be received; NULL: is in its place
        bool started             = false;   // the receive has started
        ucs_status_ptr_t request = nullptr; // of the receive; NULL when it is complete
    };

    static ucs_status_t on_message(void* arg, const void* header, std::size_t header_length, void* data,
                                   std::size_t length, const ucp_am_recv_param_t* param);
    ucs_status_t place(void* data, std::size_t length, bool is_rendezvous);
    void start_rendezvous();
    ucs_status_ptr_t receive_into(const wire_buffer& buffer, void* data);
    unsigned slot_of(std::uint64_t message) const { return static_cast<unsigned>(message % _slots); }

    session& _session;
    method& _method;
    unsigned _slots;
    std::deque<arrival> _arrivals; // arrived, but not handed out yet; in order
    std::uint64_t _received  = 0;  // handed out
    std::uint64_t _looked_at = 0;  // those handed out, and those in _arrivals whose receive has started
    ucs_status_t _failed     = UCS_OK;
};

} // namespace ucxl::perf
