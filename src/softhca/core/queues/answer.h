// The result of a request at the peer.
#pragma once

#include <cstdint>

#include "prm/cqe.h"
#include "prm/eq.h"

namespace ucxl::softhca
{

struct answer {
    enum class outcome : std::uint8_t {
        done,
        lost,      // nobody answers: no such queue pair, not connected to us, or its process has ended
        not_ready, // no receive was posted
        part_done, // the turn is used up: the request continues later
        refused,   // the request completes with `syndrome`
    };

    outcome result             = outcome::done;
    prm::cqe_syndrome syndrome = prm::cqe_syndrome::local_qp_operation;
    bool own_fault             = false;                       // of the requester: the peer never learns of it
    bool peer_fails            = false;                       // the peer's queue pair changes to the state error
    prm::event_type peer_event = prm::event_type::completion; // the event for its owner; `completion`: none
};

// An error of the requester itself.
constexpr answer own_fault(prm::cqe_syndrome syndrome)
{
    return {.result = answer::outcome::refused, .syndrome = syndrome, .own_fault = true};
}

// The peer refuses, and its queue pair fails.
constexpr answer refusal(prm::cqe_syndrome syndrome, prm::event_type told = prm::event_type::completion)
{
    return {.result = answer::outcome::refused, .syndrome = syndrome, .peer_fails = true, .peer_event = told};
}

constexpr answer next_turn()
{
    return {.result = answer::outcome::part_done};
}

constexpr answer nobody_answers()
{
    return {.result = answer::outcome::lost};
}

} // namespace ucxl::softhca
