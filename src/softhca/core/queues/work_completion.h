// CQEs of WQEs as libmlx5 and UCX read them, with and without an error.
#pragma once

#include <cstdint>

#include "completion.h"
#include "receive_queue.h"

namespace ucxl::softhca
{

// Fills in the CQE of a send, except its length and inline data, which only reads and atomics have.
void describe_send(completion& cqe, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode,
                   std::uint16_t index);

// Fills in the CQE of a receive, except the immediate value and inline data.
void describe_receive(completion& cqe, const qp_record& qp, std::uint32_t qpn, prm::cqe_opcode opcode,
                      std::uint16_t index, std::uint32_t bytes);

// Writes the CQE and takes the step, the step also when the CQ is lost. Returns false then: the queue pair cannot
// continue.
bool complete_failed_send(environment& device, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode,
                          std::uint16_t index, prm::cqe_syndrome syndrome, const queue_step& step = {});

bool complete_failed_receive(environment& device, const qp_record& qp, std::uint32_t qpn, const posted_receive& taken,
                             prm::cqe_syndrome syndrome);

// How many of `bytes` go to the CQE instead of memory: none or all. `limit` is that of the queue pair.
prm::cqe_format inline_format(const environment& device, std::uint32_t cqn, prm::scatter_to_cqe limit,
                              std::uint64_t bytes);

// The place of the inline data in the CQE.
std::byte* inline_place(completion& cqe, prm::cqe_format format);

} // namespace ucxl::softhca
