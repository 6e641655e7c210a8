// What `bench transfer` cannot be faster than: two processes that move the same cache lines (footprint.h) and do
// nothing else: no library, no layout, no protocol, no check.
//
//     queue        one process copies into a ring of slots in memory of both, the other one out of it, both at the
//                  same time: the limit where neither process reaches the other's memory
//     short_queue  the same with few slots
//     direct       the receiver copies in one pass, when a flag says so
//     pass         one process copies alone: the limit of what it does while the other one sleeps
//
// Each of them plain (memcpy for long runs of lines) and streaming. The last two (one_pass.h) are for tests;
// mapped_side measures them in memory of the library. The kernel's copies between processes (process_vm_readv, XPMEM)
// are not among them.
#pragma once

#include "footprint.h"
#include "one_pass.h"
#include "sides.h"

#include <cstdint>
#include <vector>

namespace ucxl::bench
{

class limit_side : public side
{
public:
    explicit limit_side(bool is_first) : _is_first(is_first), _pass(is_first) {}

    void prepare(const layout_case& of, const side_memory& memory) override;
    void share(std::span<std::byte> both) override;

    void send_packed() override { queue_in(_packed, _memory.packed_source.data(), long_queue); }
    void receive_packed() override { queue_out(_packed, _memory.packed_target.data(), copy_kind::plain, long_queue); }
    void send_strided() override { queue_in(_strided, _memory.source.data(), long_queue); }
    void receive_strided() override { queue_out(_strided, _memory.target.data(), copy_kind::plain, long_queue); }
    bool moves_strided() const override { return false; }
    bool measures(limit) const override { return true; }
    void send_limit(const limit_way& way) override;
    void receive_limit(const limit_way& way) override;
    void pass(const limit_way& way) override { _pass.copy(way); }

private:
    // As many slots as UCX's posix and sysv transports have, and so few that they stay in a core's second-level cache.
    // Which one is faster is a matter of the machine: the long one where a line that lies dirty in the other core's
    // cache costs most (64 KB: 8 slots took 17 us, 64 took 6, 256 took 2.6), the short one where two long queues and
    // the data fill the last cache (1 MB: 32 slots took 175 us, 256 took 300).
    static constexpr std::size_t long_queue = 256, short_queue = 32;
    static constexpr std::size_t length_of(limit by) { return by == limit::short_queue ? short_queue : long_queue; }

    // What is moved through the queue at one end, part by part.
    struct parts {
        std::vector<line_plan> in, out;
    };
    struct ring;

    void queue_in(const parts& source, const std::byte* from, std::size_t num_slots);
    void queue_out(const parts& target, std::byte* to, copy_kind kind, std::size_t num_slots);

    bool _is_first;
    ring *_out = nullptr, *_in = nullptr;
    one_pass _pass;
    parts _strided, _packed;
    side_memory _memory;
    std::uint64_t _sent = 0, _received = 0, _free = 0; // _free: what the other one had taken when this one last looked
};

} // namespace ucxl::bench
