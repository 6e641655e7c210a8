// Completions of work requests as libmlx5 and UCX read them, and of those that failed.
#pragma once

#include <cstdint>

#include "completion.h"
#include "receive_queue.h"

namespace ucxl::softhca
{

// A requester's completion up to its length and inline data, which only reads and atomics have.
void describe_send(completion& what, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode,
                   std::uint16_t index);

// A responder's completion up to immediate value and inline data.
void describe_receive(completion& what, const qp_record& qp, std::uint32_t qpn, prm::cqe_opcode opcode,
                      std::uint16_t index, std::uint32_t bytes);

// The queue moves on with them by `step`, also where the completion queue is lost: false then, and the queue pair
// cannot go on.
bool complete_failed_send(environment& device, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode,
                          std::uint16_t index, prm::cqe_syndrome syndrome, const queue_step& step = {});

bool complete_failed_receive(environment& device, const qp_record& qp, std::uint32_t qpn, const posted_receive& taken,
                             prm::cqe_syndrome syndrome);

// How many of `bytes` go into the completion instead of memory: none or all of them. `limit` is the queue pair's.
prm::cqe_format inline_format(const environment& device, std::uint32_t cqn, prm::scatter_to_cqe limit,
                              std::uint64_t bytes);

// Where in the completion they go.
std::byte* inline_place(completion& what, prm::cqe_format format);

} // namespace ucxl::softhca
