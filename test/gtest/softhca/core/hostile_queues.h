// Queue pairs of every service between two processes that write anything anywhere in their queues, driven by bytes. The
// machine below watches every move: what is written has to be a completion or memory under a key, what is read a queue or
// memory under a key. For the fuzz target and for seeded tests.
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
#include "softhca/core/arena.h"
#include "work_request.h"

namespace ucxl::softhca::test
{

// Bytes to decide by; zero when they are used up.
class decisions
{
public:
    explicit decisions(std::span<const std::uint8_t> bytes) : _bytes(bytes) {}

    bool at_end() const { return _bytes.empty(); }
    std::uint8_t byte();
    std::uint32_t word();
    std::uint32_t below(std::uint32_t bound) { return word() % bound; }
    void fill(std::span<std::byte> with);

private:
    std::span<const std::uint8_t> _bytes;
};

// The memory of two processes, in ranges that the model may read, or write, or neither.
class watched_memory final : public host
{
public:
    static constexpr std::size_t bytes_each = 1U << 16;

    watched_memory();

    // Of a process that is there; aligned to 64 bytes, with something forbidden before and behind it.
    std::span<std::byte> take(client_id client, std::size_t bytes, bool written);

    bool lock() override { return false; }
    void unlock() override {}
    move_status move(std::span<const piece> to, std::span<const piece> from) override;
    bool alive(client_id client) override { return client < dead.size() && !dead[client]; }
    std::uint64_t now_ns() override { return time_ns; }
    void wake_at(std::uint64_t) override {}
    void notify(client_id, event_route& route, std::uint32_t) override { ++route.sent; }
    void spend(std::uint64_t) override {}
    void trace(std::span<const char> text) override { traced += text.size(); }
    bool tracing() const override { return trace_wanted; }

    std::array<bool, 3> dead{};
    std::uint64_t time_ns = 1;
    std::uint64_t traced  = 0;
    bool trace_wanted     = false;
    std::string violation;

private:
    struct range {
        client_id client;
        std::uint64_t first;
        std::uint64_t length;
        bool written;
    };

    enum class verdict : std::uint8_t {
        fine,
        fault,
        gone,
    };

    verdict judge(const piece& asked, bool writes);

    std::vector<std::byte> _bytes;
    std::array<std::size_t, 3> _used{};
    std::vector<range> _ranges;
};

class hostile_queues
{
public:
    hostile_queues();
    ~hostile_queues();

    // Everything those bytes say, from a fresh start.
    void run(std::span<const std::uint8_t> bytes);

    const std::string& violation() const { return _violation; }

    // Of all runs: that something did go well.
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
    // Often a key and an address that belong together, in memory of the preferred process.
    receive_segment any_place(decisions& by, client_id preferred);
    std::uint32_t any_key(decisions& by);
    std::uint64_t any_address(decisions& by);
    environment process(client_id client) { return {*_memory, *_host, client}; }

    arena* _memory;
    std::unique_ptr<watched_memory> _host;
    std::unique_ptr<key_maker> _keys;
    std::vector<std::uint32_t> _known_keys;
    std::vector<std::span<std::byte>> _data;
    std::vector<queue_pair> _queue_pairs;
    std::vector<std::uint32_t> _cqs;
    std::span<std::byte> _shared_entries;
    std::span<std::byte> _shared_doorbell;
    std::string _violation;
    std::uint64_t _completions = 0;
    std::uint64_t _bytes_moved = 0;
};

} // namespace ucxl::softhca::test
