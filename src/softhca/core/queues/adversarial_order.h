// The adversarial order (--order adversarial): executes the WQEs of send queues in every order, and as late, as the
// specifications allow, chosen by a seed. A program that works with every seed does not depend on what a card happens
// to do, as far as the rules below go. What one seed does to a queue depends only on the seed, the number of the queue
// and how often it was looked at.
//
// What may happen, and who says so (IB: InfiniBand Architecture Specification, volume 1):
//
// 1. A doorbell is noticed late, and one for several WQEs. Nothing says when a posted WQE begins.
// 2. A read or an atomic is executed after sends, writes and key changes that were posted behind it, unless one of them
//    has a fence (IB 10.8.3.3, "Work Request Operation Ordering"; IBV_SEND_FENCE in ibv_post_send(3)). Atomics pass
//    reads; otherwise reads and atomics keep their order.
// 3. A UMR, a bind or a local invalidation is executed late. WQEs behind it on the same queue wait for it only with a
//    small fence: libmlx5 sets one on the WQE after each of its own (fm_cache of providers/mlx5/qp.c), and a key change
//    without the fence that the card asks for (umr_fence, "required fence type for UMR WQEs") passes earlier ones.
//    Other queues see the old key until then, or until its completion. In between, the key may have its new list and
//    its old context.
// 4. The data of one message reaches memory in pieces and in any order, until its completion (IB 9.5; piece_order.h).
//    A responder executes a duplicate read again (IB 9.7.5.1).
// 5. Writes to a key with relaxed ordering pass other writes (ibv_reg_mr(3): "RDMA write-after-write message order is
//    no longer guaranteed"). Writes to other keys push earlier ones, as posted writes on PCI Express do (PCI Express
//    Base Specification, "Transaction Ordering"). Sends and atomics are not passed: a completion shows all data.
// 6. Completions of a queue come in the order of posting (IB 10.8.3), at any time after the execution. So those of two
//    queues come in any order, also those of a message at the sender and at the receiver: an acknowledgement says that
//    the responder has the message, not that its program can see it (IB 9.7.5.1).
// 7. The responder is not ready for a while although a receive is posted, and the requester tries again (RNR NAK, IB
//    9.7.5.2.8), if its rnr_retry sets no limit.
// 8. After an error the later WQEs complete as flushed, and some of them were executed nevertheless (IB 10.3.1).
// 9. A WQE of a DCI passes those of other stream channels (mlx5dv_create_qp(3): "multiple concurrent streams").
// 10. A key, an alias or memory that is destroyed while WQEs are in flight is missing when they are executed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "completion.h"
#include "send_outcome.h"
#include "send_ring.h"

namespace ucxl::softhca
{

class adversarial_order
{
public:
    explicit adversarial_order(std::uint64_t seed) : _seed(seed) {}

    // Does some of what the queue can do now. Returns whether anything happened. When something can still happen,
    // host::wake_at was called. Under the lock, for a queue pair of this process that is not in an error state.
    bool run(environment& device, qp_record& qp, std::uint32_t qpn);

    // Whether a CQE is held back. Then host::wake_at was called, and release_some() will write it.
    bool holds_back(environment& device, std::uint32_t cqn);

    // Writes some of the CQEs that were held back: by this process, and in the CQs of the queue pair.
    void release_some(environment& device, const qp_record& qp);

private:
    enum class stage : std::uint8_t {
        posted,   // not executed, or in part
        executed, // its completion is missing
        failed,
    };

    // How a WQE may pass others.
    enum class kind : std::uint8_t {
        message, // sends, writes, and what changes nothing
        relaxed_write,
        read,
        atomic,
        key_change,
    };

    // A WQE that the device has read and not completed.
    struct flight {
        adversarial_order::stage stage = stage::posted;
        adversarial_order::kind kind   = kind::message;
        prm::wqe_fence fence           = prm::wqe_fence::none;
        std::uint8_t reluctance        = 0;     // how often it is chosen in vain
        bool may_be_refused            = false; // an RNR NAK is still possible
        prm::cqe_syndrome syndrome     = prm::cqe_syndrome::local_qp_operation;
        wqe_progress progress;
        std::uint64_t seed    = 0; // of its pieces
        std::uint64_t length  = 0; // of its data
        std::uint64_t channel = 0; // of a DCI, as stream_bit()
        executed_send sent;
        completion cqe;
        posted_send wqe;
    };

    static constexpr std::size_t capacity  = 16;  // WQEs in flight on a queue
    static constexpr std::size_t busy      = 512; // queues with WQEs in flight
    static constexpr std::size_t most_held = 64;  // CQEs held back by this process

    // The WQEs in flight of one queue, from the oldest on.
    struct queue {
        std::uint32_t qpn   = 0;
        std::uint32_t token = 0; // in_flight of its send_queue_state, as long as this is valid
        std::uint8_t late   = 0; // how often it is looked at before anything happens
        std::size_t first   = 0;
        std::size_t count   = 0;
        std::array<flight, capacity> ring;

        flight& at(std::size_t number) { return ring[(first + number) % capacity]; }
    };

    enum class action : std::uint8_t {
        admit,
        attempt,
        retire,
    };

    struct possible {
        action what;
        std::size_t number = 0; // of the WQE in flight
    };

    // What a queue can do now.
    struct choices {
        std::array<possible, capacity + 2> list;
        std::size_t count = 0;

        void add(action what, std::size_t number = 0) { list[count++] = {what, number}; }
    };

    queue* open(environment& device, qp_record& qp, std::uint32_t qpn);
    std::uint64_t choose(std::uint32_t qpn, std::uint64_t count);
    std::uint64_t choose_for_cq(std::uint32_t cqn, std::uint64_t count);
    static void wake_later(environment& device, queue& own, bool soon);
    choices possible_now(environment& device, qp_record& qp, queue& own);
    static std::uint16_t end_of(const qp_record& qp, queue& own);
    static bool may_pass(const flight& earlier, const flight& later, const card& card);
    static bool may_attempt(environment& device, queue& own, std::size_t number, std::uint64_t now_ns);
    void perform(environment& device, qp_record& qp, queue& own, const possible& chosen);
    void admit(environment& device, qp_record& qp, queue& own);
    static kind kind_of(environment& device, const send_request& request);
    bool hesitate(environment& device, const qp_record& qp, queue& own, flight& chosen);
    void attempt(environment& device, qp_record& qp, queue& own, std::size_t number);
    void finish_earlier(environment& device, qp_record& qp, queue& own, std::size_t number);
    void retire(environment& device, qp_record& qp, queue& own);

    std::uint64_t _seed;
    std::uint32_t _tokens = 0;
    std::array<std::uint64_t, max_qps> _choices{}; // made for each queue pair
    std::array<std::uint16_t, max_qps> _places{};  // of each queue pair in _queues, plus 1; 0 for none
    std::array<std::unique_ptr<queue>, busy> _queues; // made when they are needed: one has some 20 KB
    std::array<std::uint64_t, max_cqs> _cq_choices{};
    std::array<std::uint32_t, most_held> _held{}; // CQs
    std::size_t _num_held = 0;
};

} // namespace ucxl::softhca
