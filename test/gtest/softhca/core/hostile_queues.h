// Queue pairs of every service, and a DC target, between two processes that write arbitrary bytes to their queues. The
// machine watches every move: only CQEs and memory of keys may be written, and only queues and memory of keys may be
// read. For the fuzz target and seeded tests.
//
//     hostile_queues queues;
//     queues.run(bytes);
//     queues.violation()      empty, or what went wrong
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "key_maker.h"
#include "receive_segment.h"
#include "softhca/core/arena/arena.h"
#include "softhca/core/queues/adversarial_order.h"
#include "watched_memory.h"
#include "work_request.h"

namespace ucxl::softhca::test
{

class hostile_queues
{
public:
    hostile_queues();
    ~hostile_queues();

    // Executes all of the bytes on a fresh machine. The last one says whether it executes in the adversarial order.
    void run(std::span<const std::uint8_t> bytes);

    const std::string& violation() const { return _violation; }

    // Over all runs: shows that some operations succeeded.
    std::uint64_t completions() const { return _completions; }
    std::uint64_t bytes_moved() const { return _bytes_moved; }

private:
    struct queue_pair {
        std::uint32_t number;
        client_id client;
        std::span<std::byte> sends;
        std::span<std::byte> receives;
        std::span<std::byte> doorbell;
        std::uint16_t produced;
        std::uint16_t receives_produced;
    };

    void build();
    std::uint32_t make_cq(client_id client, std::uint8_t entry_size);
    std::uint32_t make_srq(client_id client);
    void make_pair(prm::qp_service service, std::uint32_t srq);
    void make_target(std::uint32_t srq);
    void connect_again();

    void step(decisions& by);
    void post_anything(queue_pair& on, decisions& by);
    void post_request(queue_pair& on, decisions& by);
    void post_receive(queue_pair& on, decisions& by);
    void scribble(queue_pair& on, decisions& by);
    void change_state(queue_pair& on, decisions& by);
    void run_all(decisions& by);
    void check();
    void append(queue_pair& to, std::span<const std::byte> wqe);
    // Often a matching key and address, in memory of the preferred process.
    receive_segment any_place(decisions& by, client_id preferred);
    std::uint32_t any_key(decisions& by);
    std::uint64_t any_address(decisions& by);
    environment process(client_id client);

    arena* _memory;
    std::unique_ptr<watched_memory> _host;
    std::unique_ptr<key_maker> _keys;
    std::vector<std::uint32_t> _known_keys;
    std::vector<std::span<std::byte>> _data;
    std::vector<queue_pair> _queue_pairs;
    std::vector<std::uint32_t> _cqs;
    std::array<std::unique_ptr<adversarial_order>, 2> _orders; // of the processes, or none
    std::uint32_t _target = 0;
    std::span<std::byte> _shared_entries;
    std::span<std::byte> _shared_doorbell;
    std::string _violation;
    std::uint64_t _completions = 0;
    std::uint64_t _bytes_moved = 0;
};

} // namespace ucxl::softhca::test
