// One attempt to execute a send WQE: from its beginning, or again after a wait. The order in which the WQEs of a queue
// are attempted is the caller's (requester.cc, adversarial_order.cc).
#pragma once

#include <cstdint>
#include <span>

#include "responder.h"

namespace ucxl::softhca
{

class wqe_attempt
{
public:
    // An empty `wqe` is one that is not valid. `pieces`: how the adversarial order moves its data.
    wqe_attempt(environment& device, qp_record& qp, std::uint32_t qpn, std::span<std::byte> wqe, std::uint16_t index,
                const piece_order* pieces = nullptr);

    // Begins the WQE, or goes on when the time of its wait is over. Returns done or refused; or else the WQE waits, as
    // send_queue_state says. On success the CQE has what only the responder knows.
    answer run(completion& cqe);

    const send_request& request() const { return _request; }
    std::uint32_t peer_qpn() const { return _peer_qpn; }

private:
    answer begin();
    answer try_again();
    answer execute(completion& cqe);
    answer execute_umr();
    answer execute_datagram();
    answer execute_message(completion& cqe);
    qp_record* find_responder();
    answer exchange_with(const responder& peer, completion& cqe);
    std::uint64_t longest_message() const;
    answer wait_for(const answer& result);
    void wait(requester_wait why, std::uint64_t time_ns);
    void trace();
    exchange self() const { return {_device, _qp, _qpn, _request, _pieces}; }

    environment& _device;
    qp_record& _qp;
    std::uint32_t _qpn;
    std::uint32_t _peer_qpn = 0;
    bool _understood        = false;
    bool _goes_on           = false; // continues after others had the lock
    const piece_order* _pieces;
    send_request _request;
};

} // namespace ucxl::softhca
