// The records of all objects of a device, in memory that all its processes share. They are plain data without pointers,
// because each process maps the memory at another address. They are read and written under the lock of host.h. An
// all-zero record is free.
#pragma once

#include <array>
#include <cstdint>

#include "host.h"
#include "prm/mkey.h"
#include "prm/qpc.h"

namespace ucxl::softhca
{

// The index of a function (VHCA, port, verbs device) in the fabric.
using function_id = std::uint16_t;

enum class life : std::uint8_t {
    free = 0,
    live = 1,
};

// The owner of an object. It is written last when an object is made and first when it is destroyed, so that a process
// which dies in between leaves either no object or a whole one.
struct ownership {
    softhca::life life       = life::free;
    std::uint8_t incarnation = 0; // of the function, see device_failure.h
    client_id client         = 0;
    function_id function     = 0;
    std::uint16_t uid        = 0; // the DEVX context, 0 for the kernel
};

struct client_record {
    ownership owner;
    std::int32_t process     = 0;
    std::uint32_t generation = 0; // counts the processes that had this index
    std::uint64_t start_time = 0; // of the process: process ids are reused
};

// An event channel that a process made through a device file. It is told what concerns the whole device.
struct channel_record {
    ownership owner;
    bool gets_device_events = false; // a channel of asynchronous events
    event_route route;
};

enum class device_condition : std::uint8_t {
    working,
    failed,  // the firmware gave up; contexts are still there
    removed, // from the PCI bus
};

// With a zero behind it, as the kernel limits it (IFNAMSIZ).
using netdev_name = std::array<char, 16>;

struct function_record {
    ownership owner; // live when the fabric has that function
    std::uint16_t vhca_id      = 0;
    std::uint16_t lid          = 0;
    std::uint64_t port_guid    = 0;
    std::uint64_t node_guid    = 0;
    std::uint64_t image_guid   = 0; // the same for all functions of a device
    std::uint32_t device       = 0; // functions of one device share MEMIC and may use each other's keys
    device_condition condition = device_condition::working;
    std::uint8_t incarnation   = 0; // counts how often contexts were cut off; older ones stay dead
    bool port_up               = true;
    netdev_name netdev{}; // the network interface that belongs to the port; empty: none
};

struct pd_record {
    ownership owner;
    std::uint32_t users = 0; // objects that refer to it
};

// It counts the packets that a rule of flow steering sends to it. There are no such rules, so it stays 0.
struct flow_counter_record {
    ownership owner;
    std::uint32_t users = 0;
};

struct uar_record {
    ownership owner;
    std::uint32_t users = 0;
};

struct umem_record {
    ownership owner;
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
    std::uint32_t access  = 0; // IB_ACCESS_* as given
    std::uint32_t users   = 0;
};

// A range of memory of a process, such as the buffer of a queue.
struct process_memory {
    client_id client      = 0;
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
};

// The kind of memory that a key refers to.
enum class mkey_backing : std::uint8_t {
    none,       // not bound yet
    process,    // memory of `direct_client`; host_address is the address of start_addr
    memic,      // host_address as in space::memic
    klm,        // translation entries: KLMs
    ksm,        // translation entries of 2^log_entity_size bytes each
    repeat,     // translation entries: one repeat block
    alias,      // a key of another function, target_mkey
    all_memory, // physical address mode: all addresses of `direct_client` (the reserved lkey)
};

inline constexpr std::size_t access_key_bytes = 32;

struct mkey_record {
    ownership owner;
    std::uint8_t variant         = 0; // the low byte of the key
    mkey_backing backing         = mkey_backing::none;
    prm::mkey_access_mode mode   = prm::mkey_access_mode::mtt;
    bool free                    = false; // the state "free": not usable until a UMR binds it
    bool umr_en                  = false;
    bool local_read              = false;
    bool local_write             = false;
    bool remote_read             = false;
    bool remote_write            = false;
    bool remote_atomic           = false;
    bool remote_invalidate       = false; // en_rinval
    bool length64                = false; // len is not checked
    bool relaxed_writes          = false; // relaxed_ordering_write
    bool shared_with_vhca        = false; // ALLOW_OTHER_VHCA_ACCESS was given
    std::uint8_t log_entity_size = 0;
    std::uint32_t pd             = 0;
    std::uint32_t qpn            = prm::any_qpn;
    std::uint64_t start_addr     = 0;
    std::uint64_t len            = 0;
    client_id direct_client      = 0;
    std::uint64_t host_address   = 0;
    std::uint32_t umem           = 0; // 0 for none
    std::uint32_t entries_first  = 0; // index in the translation table, in 16-byte entries
    std::uint32_t entries_room   = 0; // allocated
    std::uint32_t entries_used   = 0;
    std::uint32_t target_mkey    = 0;
    std::uint16_t target_vhca    = 0;
    std::array<std::uint8_t, access_key_bytes> access_key{};
};

enum class cq_arm : std::uint8_t {
    none,
    any_completion,
    solicited_only,
};

struct cq_record {
    ownership owner;
    process_memory buffer;
    process_memory doorbell;          // prm::cq_doorbell_record
    std::uint32_t umem           = 0; // of the buffer; the next one is of the doorbell record
    std::uint32_t doorbell_umem  = 0;
    std::uint32_t uar            = 0;
    std::uint32_t eqn            = 0;
    std::uint8_t log_size        = 0; // of entries
    std::uint8_t entry_size      = 64;
    bool overrun_ignore          = false;
    bool collapsed               = false; // always entry 0
    bool overflowed              = false;
    cq_arm armed                 = cq_arm::none;
    std::uint8_t arm_sequence    = 0;
    bool event_fired             = false; // for the arm request with that sequence number
    std::uint32_t producer       = 0;     // entries written since the CQ was created
    std::uint32_t consumer_seen  = 0;     // as last read from the doorbell record
    std::uint32_t solicited_upto = 0;     // `producer` after the last solicited or error entry
    std::uint32_t users          = 0;     // queue pairs
    event_route completion_events;
    event_route error_events;
    std::array<std::uint8_t, 64> context{}; // the cqc of CREATE_CQ, for QUERY_CQ
    bool holds = false;                     // of the adversarial order: `held` is to be written before any other entry
    std::array<std::byte, 128> held{};
};

// A receive queue shared by queue pairs: SRQ or RMP.
struct srq_record {
    ownership owner;
    process_memory buffer;
    process_memory doorbell; // prm::srq_doorbell_record
    std::uint32_t umem          = 0;
    std::uint32_t doorbell_umem = 0;
    std::uint8_t log_size       = 0;
    std::uint8_t log_stride     = 4;
    bool linked                 = true; // each entry names the next one and CQEs name entries; otherwise used in order
    bool headed                 = true; // entries begin with prm::wqe_srq_next_segment, linked or not
    bool is_rmp                 = false;
    bool failed                 = false;
    std::uint16_t consumed      = 0; // receives taken, modulo 2^16, compared with the doorbell record
    std::uint16_t next          = 0; // index of the next entry to take
    std::uint16_t limit         = 0; // fewer receives left: one event, then it is 0 again
    std::uint32_t pd            = 0;
    std::uint32_t users         = 0;
    std::uint32_t user_index    = 0;
    event_route events;
};

struct receive_queue_state {
    std::uint8_t log_size   = 0;
    std::uint8_t log_stride = 4;
    bool present            = false;
    std::uint16_t consumed  = 0;
    std::uint64_t offset    = 0; // in the buffer
};

// The step of a queue that is taken together with the CQE of its entry.
struct queue_step {
    enum class kind : std::uint8_t {
        none,
        sends,           // of queue pair `number`
        receives,        // of queue pair `number`
        shared_receives, // of shared receive queue `number`
    };

    kind queue             = kind::none;
    std::uint32_t number   = 0;
    std::uint16_t consumed = 0; // the counter after the step
    std::uint16_t next     = 0; // of a shared queue: the entry after the step
};

// The CQE being written. After its writer died, the next holder of the lock finds in the CQE's last byte whether it was
// written, and then completes the step.
struct completion_journal {
    std::uint32_t cqn      = 0; // 0: none
    std::uint32_t producer = 0; // of the CQ before the CQE
    queue_step step;
};

// What the requester is waiting for.
enum class requester_wait : std::uint8_t {
    none,
    rnr,       // the peer has no receive posted
    transport, // the peer did not answer
    delay,     // --fault delay
    turn,      // others get the lock, then it continues
};

// How far a WQE came that could not be executed at once.
struct wqe_progress {
    requester_wait waiting    = requester_wait::none;
    std::uint8_t rnr_left     = 0;
    std::uint8_t tries_left   = 0;
    std::uint64_t retry_at_ns = 0;
    std::uint64_t moved       = 0; // bytes that earlier turns moved
};

struct send_queue_state {
    std::uint8_t log_size  = 0; // of 64-byte blocks
    bool present           = false;
    std::uint16_t consumed = 0; // blocks executed, modulo 2^16
    std::uint16_t rung     = 0; // the last producer counter seen
    // The producer counter in the doorbell record is that of before the queue pair was reset: UCX leaves it there until
    // it posts again, and the device looks at the record without a doorbell, which a card does not do.
    bool is_record_old       = false;
    std::uint16_t old_record = 0;
    std::uint64_t offset     = 0;
    wqe_progress progress{};     // of the current WQE
    std::uint32_t psn       = 0; // of the next packet
    std::uint32_t in_flight = 0; // of the adversarial order: identifies the WQEs in flight, 0 for none
};

struct qp_path {
    std::uint16_t remote_lid   = 0;
    std::uint32_t remote_qpn   = 0;
    std::uint8_t service_level = 0;
    std::uint8_t port          = 1;
    std::uint8_t mtu           = 0; // prm::path_mtu
    bool has_grh               = false;
    std::array<std::uint8_t, 16> remote_gid{};
};

// What dynamic connections (DC) add to a queue pair. Initiators (DCI) have the service dci. Targets (DCT) are kept in
// the table of queue pairs, because both have numbers of one space, and are no queue pairs to any command: they have no
// queues of their own. An active target has the state rtr, a drained one the state reset.
struct dc_state {
    bool target                   = false;
    bool armed                    = false; // of a target: the next violation of the access key sends an event
    std::uint8_t log_streams      = 0;     // of an initiator: its stream channels
    std::uint8_t log_errored      = 0;     // of an initiator: so many channels in error fail all of it
    std::uint32_t violations      = 0;     // of a target: requests with a wrong access key
    std::uint64_t access_key      = 0;     // of a target
    std::uint64_t errored_streams = 0;     // of an initiator: a bit for each channel in error
};

struct qp_record {
    ownership owner;
    prm::qp_state state     = prm::qp_state::reset;
    prm::qp_service service = prm::qp_service::rc;
    process_memory buffer;
    process_memory doorbell; // prm::qp_doorbell_record
    std::uint32_t umem          = 0;
    std::uint32_t doorbell_umem = 0;
    std::uint32_t uar           = 0;
    std::uint32_t pd            = 0;
    std::uint32_t send_cq       = 0;
    std::uint32_t receive_cq    = 0;
    std::uint32_t srq           = 0; // number of the shared receive queue, 0 for none
    std::uint32_t user_index    = 0;
    std::uint32_t qkey          = 0;
    send_queue_state send;
    receive_queue_state receive;
    qp_path path;
    std::uint32_t expected_psn    = 0; // of the next packet it receives
    std::uint32_t message         = 0; // MSN
    std::uint8_t retry_count      = 0;
    std::uint8_t rnr_retry        = 0;
    std::uint8_t min_rnr_timer    = 0;
    std::uint8_t ack_timeout      = 0;
    std::uint8_t max_reads_out    = 0; // as requester: 2^log_sra_max, 0 for none
    std::uint8_t max_reads_in     = 0; // as responder
    bool remote_read              = false;
    bool remote_write             = false;
    bool remote_atomic            = false;
    bool privileged               = false; // may use the reserved lkey
    bool signal_all               = false;
    bool last_receive_told        = false; // IBV_EVENT_QP_LAST_WQE_REACHED was sent
    bool communication_told       = false;
    std::uint16_t multicast_users = 0;
    dc_state dc;
    event_route events;
    std::array<std::uint8_t, 232> context{}; // the qpc as created and modified; of a target the dctc
};

} // namespace ucxl::softhca
