// What became of a request at the other side.
#pragma once

#include <cstdint>

#include "prm/cqe.h"
#include "prm/eq.h"

namespace ucxl::softhca
{

struct answer {
    enum class kind : std::uint8_t {
        done,
        lost,      // nobody answers: no such queue pair, not connected to us, or its process has ended
        not_ready, // no receive was posted
        part_done, // the turn is used up: it goes on where it stopped
        refused,   // the request completes with `syndrome`
    };

    kind what                  = kind::done;
    prm::cqe_syndrome syndrome = prm::cqe_syndrome::local_qp_operation;
    bool own_fault             = false;                       // of the requester: the other side never learns of it
    bool peer_fails            = false;                       // the other side's queue pair goes to the state error
    prm::event_type peer_event = prm::event_type::completion; // and its owner is told so; `completion`: not told
};

// The requester's own mistake.
constexpr answer own_fault(prm::cqe_syndrome syndrome)
{
    return {.what = answer::kind::refused, .syndrome = syndrome, .own_fault = true};
}

// The other side refuses, and its queue pair fails.
constexpr answer refusal(prm::cqe_syndrome syndrome, prm::event_type told = prm::event_type::completion)
{
    return {.what = answer::kind::refused, .syndrome = syndrome, .peer_fails = true, .peer_event = told};
}

constexpr answer next_turn()
{
    return {.what = answer::kind::part_done};
}

constexpr answer nobody_answers()
{
    return {.what = answer::kind::lost};
}

} // namespace ucxl::softhca
