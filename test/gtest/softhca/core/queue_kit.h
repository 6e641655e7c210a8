// Queues of the device model as records, and the side of the process that owns them. It posts and polls as libmlx5
// does, and knows nothing of the model.
//
//     queue_kit kit(machine);
//     auto cq = kit.completion_queue(process);
//     auto a  = kit.queue_pair(process, {.send_cq = &cq, .receive_cq = &cq});
//     kit.connect(a, b);
//     a.post(work_request(...));
//     a.run();
//     cq.poll()
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prm/cqe.h"
#include "prm/qpc.h"
#include "receive_segment.h"
#include "softhca/core/queues/queue_work.h"
#include "test_host.h"
#include "work_request.h"

namespace ucxl::softhca::test
{

struct polled {
    prm::storage<prm::cqe64> bytes;
    std::array<std::byte, 64> front{}; // the first half of a 128-byte CQE

    prm::cqe_opcode opcode() const { return (*bytes).get(prm::cqe64::opcode); }
    std::uint16_t counter() const { return (*bytes).get(prm::cqe64::wqe_counter); }
    std::uint32_t length() const { return (*bytes).get(prm::cqe64::byte_cnt); }
    std::uint32_t imm() const { return (*bytes).get(prm::cqe64::imm_inval_pkey); }
    std::uint32_t qpn() const { return (*bytes).get(prm::cqe64::qpn); }
    bool failed() const { return opcode() == prm::cqe_opcode::requester_error || receive_failed(); }
    bool receive_failed() const { return opcode() == prm::cqe_opcode::responder_error; }
    prm::cqe_syndrome syndrome() const;
};

struct made_cq {
    arena* memory          = nullptr;
    test_process* process  = nullptr;
    std::uint32_t number   = 0;
    std::uint32_t consumer = 0;
    bool updates_consumer  = true; // whether poll() writes the doorbell record
    std::span<std::byte> buffer{};
    std::span<std::byte> doorbell{};

    cq_record& record() const { return memory->cqs.records[number]; }
    std::optional<polled> poll();
    std::vector<polled> poll_all();
    void arm(std::uint8_t sequence, cq_arm kind = cq_arm::any_completion);
};

struct made_srq {
    arena* memory          = nullptr;
    std::uint32_t number   = 0;
    std::uint16_t producer = 0;
    std::uint16_t tail     = 0; // the linked entry to post next
    std::span<std::byte> buffer{};
    std::span<std::byte> doorbell{};

    srq_record& record() const { return memory->srqs.records[number]; }
    void post(std::span<const receive_segment> segments);
    void post(const receive_segment& segment) { post({&segment, 1}); }
    void give_back(std::uint16_t index); // appends the entry to the list of free ones
};

struct qp_options {
    made_cq* send_cq          = nullptr;
    made_cq* receive_cq       = nullptr;
    made_srq* srq             = nullptr;
    prm::qp_service service   = prm::qp_service::rc;
    std::uint8_t log_sends    = 4; // 64-byte blocks
    std::uint8_t log_receives = 4;
    std::uint8_t log_stride   = 6;
    function_id function      = 0;
    std::uint32_t pd          = 7;
};

struct made_qp {
    arena* memory                   = nullptr;
    test_process* process           = nullptr;
    std::uint32_t number            = 0;
    std::uint16_t produced          = 0;
    std::uint16_t receives_produced = 0;
    std::span<std::byte> buffer{};
    std::span<std::byte> doorbell{};
    adversarial_order* order = nullptr;

    qp_record& record() const { return memory->qps.records[number]; }

    // Returns the index that the CQE will have.
    std::uint16_t post(const work_request& request) { return post(request.bytes()); }
    std::uint16_t post(std::span<const std::byte> wqe);
    std::uint16_t post_receive(std::span<const receive_segment> segments);
    std::uint16_t post_receive(const receive_segment& segment) { return post_receive({&segment, 1}); }

    bool run(unsigned budget = 1U << 16);
    bool flush();
    environment device() const
    {
        return {.memory = *memory, .outside = *process, .self = process->id(), .order = order};
    }
    std::uint16_t lid() const { return memory->function_table[record().owner.function].lid; }

    // Sets fields of the context, as a command would have.
    void scatter(prm::scatter_to_cqe requests, prm::scatter_to_cqe responses);
};

// A DC target.
struct made_target {
    arena* memory        = nullptr;
    std::uint32_t number = 0;

    qp_record& record() const { return memory->qps.records[number]; }
    std::uint16_t lid() const { return memory->function_table[record().owner.function].lid; }
};

class queue_kit
{
public:
    explicit queue_kit(test_machine& machine) : _memory(machine.memory()) {}

    made_cq completion_queue(test_process& process, std::uint8_t log_size = 6, std::uint8_t entry_size = 64);
    made_srq shared_receive_queue(test_process& process, std::uint8_t log_size = 4, bool linked = true);

    // In the state RTS, with all remote rights, not connected.
    made_qp queue_pair(test_process& process, const qp_options& options);

    // Active, with all remote rights.
    made_target target(test_process& process, const made_cq& cq, const made_srq& srq, std::uint64_t access_key,
                       function_id function = 0);

    static void connect(made_qp& a, made_qp& b);

private:
    arena& _memory;
};

} // namespace ucxl::softhca::test
