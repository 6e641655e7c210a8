// Random streams of operations in both directions, through plain keys and layouts, compared with two arrays of bytes
// that change one byte at a time.
#include "connected_pair.h"

#include "support/random.h"

#include <deque>
#include <numeric>

namespace ucxl::softhca::test
{

namespace
{

using ucxl::test::random;
using ucxl::test::run_seed;

constexpr std::size_t area_bytes = 4096;

// The places of a key's bytes in its process's area.
struct stencil {
    std::uint32_t key   = 0;
    std::uint64_t start = 0;
    std::vector<std::uint32_t> places;
};

// A part of a stencil.
struct region {
    const stencil* shape = nullptr;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
};

struct operation {
    wqe_opcode opcode   = wqe_opcode::nop;
    bool signaled       = false;
    std::uint16_t index = 0;
    std::uint32_t imm   = 0;
    std::vector<region> local;
    std::vector<std::byte> inlined;
    region remote;
    std::uint64_t add = 0;
};

struct receive {
    std::uint16_t index = 0;
    std::vector<region> parts;
};

struct expectation {
    cqe_opcode opcode     = cqe_opcode::requester;
    std::uint16_t counter = 0;
    std::uint32_t length  = 0;
    std::uint32_t imm     = 0;
};

std::uint32_t total(const std::vector<region>& parts)
{
    return std::accumulate(parts.begin(), parts.end(), 0U,
                           [](std::uint32_t sum, const region& one) { return sum + one.length; });
}

// One end: the memory of the process, and what the oracle expects there.
struct side {
    test_process* process;
    made_qp* qp;
    made_cq* sends;
    made_cq* receives;
    std::span<std::byte> area;
    std::vector<stencil> stencils;
    std::vector<std::byte> model;
    std::deque<operation> posted;
    std::deque<receive> waiting;
    std::deque<expectation> sent;
    std::deque<expectation> received;

    std::byte& at(const region& part, std::uint32_t i) { return model[part.shape->places[part.offset + i]]; }

    std::vector<std::byte> gather(std::span<const region> parts)
    {
        std::vector<std::byte> bytes;
        for (const region& part : parts) {
            for (std::uint32_t i = 0; i < part.length; i++) {
                bytes.push_back(at(part, i));
            }
        }
        return bytes;
    }

    void scatter(std::span<const region> parts, std::span<const std::byte> bytes)
    {
        for (const region& part : parts) {
            for (std::uint32_t i = 0; i < part.length && !bytes.empty(); i++) {
                at(part, i) = bytes.front();
                bytes       = bytes.subspan(1);
            }
        }
    }
};

class send_streams : public connected_pair
{
protected:
    send_streams()
    {
        a.record().rnr_retry = b.record().rnr_retry = 7;
        prepare(ends[0], near, a, a_sends, a_receives);
        prepare(ends[1], far, b, b_sends, b_receives);
    }

    void prepare(side& end, test_process& process, made_qp& qp, made_cq& sends, made_cq& receives)
    {
        end.process  = &process;
        end.qp       = &qp;
        end.sends    = &sends;
        end.receives = &receives;
        end.area     = process.allocate(area_bytes);
        end.model.resize(area_bytes);
        for (std::size_t i = 0; i < area_bytes; i++) {
            end.area[i] = end.model[i] = static_cast<std::byte>(numbers.next());
        }
        stencil plain{make.direct(process.id(), end.area), address_of(end.area), {}};
        plain.places.resize(area_bytes);
        std::iota(plain.places.begin(), plain.places.end(), 0U);
        end.stencils = {plain, backwards(plain), interleaved(plain)};
    }

    // Pieces of 5 bytes, from the end to the front.
    stencil backwards(const stencil& plain)
    {
        stencil made;
        std::vector<translation_entry> entries;
        for (std::uint32_t at = 2000; at >= 100; at -= 19) {
            entries.push_back(klm(5, plain.key, plain.start + at));
            for (std::uint32_t i = 0; i < 5; i++) {
                made.places.push_back(at + i);
            }
        }
        made.key = make.list(entries);
        return made;
    }

    // Two columns of different width and stride, in turn.
    stencil interleaved(const stencil& plain)
    {
        stencil made;
        made.key = make.list({repeat_header(11, 100, 2), repeat_entry(20, 8, plain.key, plain.start + 2048),
                              repeat_entry(3, 3, plain.key, plain.start + 512)});
        for (std::uint32_t turn = 0; turn < 100; turn++) {
            for (std::uint32_t i = 0; i < 8; i++) {
                made.places.push_back(2048 + turn * 20 + i);
            }
            for (std::uint32_t i = 0; i < 3; i++) {
                made.places.push_back(512 + turn * 3 + i);
            }
        }
        return made;
    }

    region any_region(side& end, std::uint32_t longest)
    {
        region made{&end.stencils[numbers.below(end.stencils.size())]};
        const auto size = static_cast<std::uint32_t>(made.shape->places.size());
        made.length     = static_cast<std::uint32_t>(1 + numbers.below(longest));
        made.offset     = static_cast<std::uint32_t>(numbers.below(size - made.length + 1));
        return made;
    }

    // In memory that the same operation does not touch otherwise: overlaps have no defined order on a device.
    bool overlaps(const std::vector<region>& parts)
    {
        std::vector<std::uint32_t> places;
        for (const region& part : parts) {
            for (std::uint32_t i = 0; i < part.length; i++) {
                places.push_back(part.shape->places[part.offset + i]);
            }
        }
        std::ranges::sort(places);
        return std::ranges::adjacent_find(places) != places.end();
    }

    std::vector<region> any_list(side& end, std::uint32_t longest)
    {
        while (true) {
            std::vector<region> made;
            for (std::uint64_t i = numbers.below(4); i != 0; i--) {
                made.push_back(any_region(end, longest));
            }
            if (!overlaps(made)) {
                return made;
            }
        }
    }

    static receive_segment segment_of(const region& part)
    {
        return {part.shape->key, part.shape->start + part.offset, part.length};
    }

    void post_receive(side& end)
    {
        if (end.waiting.size() >= 14) {
            return;
        }
        receive made{0, any_list(end, 300)};
        made.parts.push_back({&end.stencils[0], 3000, 1000}); // always long enough
        if (overlaps(made.parts)) {
            return;
        }
        std::vector<receive_segment> segments;
        for (const region& part : made.parts) {
            segments.push_back(segment_of(part));
        }
        made.index = end.qp->post_receive(segments);
        end.waiting.push_back(made);
    }

    void post_send(side& end, side& peer)
    {
        if (end.posted.size() >= 3) {
            return;
        }
        constexpr wqe_opcode opcodes[]{
            wqe_opcode::send,      wqe_opcode::send_imm,  wqe_opcode::rdma_write, wqe_opcode::rdma_write_imm,
            wqe_opcode::rdma_read, wqe_opcode::atomic_fa, wqe_opcode::nop};
        operation made;
        made.opcode   = opcodes[numbers.below(std::size(opcodes))];
        made.signaled = numbers.one_in(2);
        made.imm      = static_cast<std::uint32_t>(numbers.next());
        if (made.opcode == wqe_opcode::atomic_fa) {
            made.add    = numbers.next();
            made.remote = {&peer.stencils[0], static_cast<std::uint32_t>(numbers.below(500)) * 8, 8};
            made.local.push_back({&end.stencils[0], static_cast<std::uint32_t>(numbers.below(4000)), 8});
        } else if (made.opcode != wqe_opcode::nop) {
            made.local = any_list(end, 300);
            if (made.opcode != wqe_opcode::rdma_read && numbers.one_in(3)) {
                made.inlined.resize(1 + numbers.below(60));
                std::ranges::generate(made.inlined, [&] { return static_cast<std::byte>(numbers.next()); });
            }
            made.remote       = any_region(peer, 1);
            const auto length = static_cast<std::uint32_t>(total(made.local) + made.inlined.size());
            made.remote.shape = &peer.stencils[numbers.below(peer.stencils.size())];
            const auto size   = static_cast<std::uint32_t>(made.remote.shape->places.size());
            if (length > 900 || length > size) {
                return;
            }
            made.remote.length = length;
            made.remote.offset = static_cast<std::uint32_t>(numbers.below(size - length + 1));
        }
        made.index = end.qp->post(request_of(made));
        end.posted.push_back(made);
    }

    work_request request_of(const operation& made)
    {
        work_request request(made.opcode);
        request.imm(made.imm);
        if (made.signaled) {
            request.signaled();
        }
        if (made.opcode >= wqe_opcode::rdma_write && made.opcode != wqe_opcode::send &&
            made.opcode != wqe_opcode::send_imm) {
            const receive_segment remote = segment_of(made.remote);
            request.remote(remote.at, remote.key);
        }
        if (made.opcode == wqe_opcode::atomic_fa) {
            request.fetch_add(made.add);
        }
        if (!made.inlined.empty()) {
            request.inline_data(made.inlined);
        }
        for (const region& part : made.local) {
            const receive_segment local = segment_of(part);
            request.data(local.key, local.at, local.length);
        }
        return request;
    }

    // What the device must do with it; false when it waits for a receive.
    bool model_one(side& end, side& peer, const operation& one)
    {
        auto bytes = one.inlined;
        std::ranges::copy(end.gather(one.local), std::back_inserter(bytes));
        const auto length  = static_cast<std::uint32_t>(bytes.size());
        const bool message = one.opcode == wqe_opcode::send || one.opcode == wqe_opcode::send_imm;
        if (message || one.opcode == wqe_opcode::rdma_write_imm) {
            if (peer.waiting.empty()) {
                return false;
            }
            const receive taken = peer.waiting.front();
            peer.waiting.pop_front();
            if (message) {
                peer.scatter(taken.parts, bytes);
            }
            const cqe_opcode opcode = one.opcode == wqe_opcode::send ? cqe_opcode::responder_send
                                      : message                      ? cqe_opcode::responder_send_imm
                                                                     : cqe_opcode::responder_write_imm;
            peer.received.push_back({opcode, taken.index, length, one.imm});
        }
        std::uint32_t reported = 0;
        switch (one.opcode) {
        case wqe_opcode::rdma_write:
        case wqe_opcode::rdma_write_imm:
            peer.scatter({&one.remote, 1}, bytes);
            break;
        case wqe_opcode::rdma_read:
            end.scatter(one.local, peer.gather({&one.remote, 1}));
            reported = length;
            break;
        case wqe_opcode::atomic_fa: {
            const auto old = peer.gather({&one.remote, 1});
            std::uint64_t value;
            std::memcpy(&value, old.data(), 8);
            value += one.add;
            const std::span<const std::uint64_t, 1> changed(&value, 1);
            peer.scatter({&one.remote, 1}, std::as_bytes(changed));
            end.scatter(one.local, old);
            reported = 8;
            break;
        }
        default:
            break;
        }
        if (one.signaled) {
            end.sent.push_back({cqe_opcode::requester, one.index, reported, 0});
        }
        return true;
    }

    void run(side& end, side& peer)
    {
        machine.time_ns += 10'000'000;
        end.qp->run();
        while (!end.posted.empty() && model_one(end, peer, end.posted.front())) {
            end.posted.pop_front();
        }
    }

    void expect_all(made_cq& cq, std::deque<expectation>& expected)
    {
        for (const polled& got : cq.poll_all()) {
            ASSERT_FALSE(expected.empty());
            const expectation wanted = expected.front();
            expected.pop_front();
            ASSERT_EQ(got.opcode(), wanted.opcode);
            ASSERT_EQ(got.counter(), wanted.counter);
            ASSERT_EQ(got.length(), wanted.length);
            if (wanted.opcode != cqe_opcode::requester && wanted.opcode != cqe_opcode::responder_send) {
                ASSERT_EQ(got.imm(), wanted.imm);
            }
        }
        ASSERT_TRUE(expected.empty());
    }

    void expect_model(side& end)
    {
        ASSERT_EQ(std::memcmp(end.area.data(), end.model.data(), area_bytes), 0);
        ASSERT_NO_FATAL_FAILURE(expect_all(*end.sends, end.sent));
        ASSERT_NO_FATAL_FAILURE(expect_all(*end.receives, end.received));
    }

    random numbers{run_seed()};
    std::array<side, 2> ends;
};

TEST_F(send_streams, every_byte_and_completion_is_the_models)
{
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned i = 0; i < 30'000; i++) {
        SCOPED_TRACE("seed " + std::to_string(run_seed()) + " step " + std::to_string(i));
        const std::uint64_t choice = numbers.below(2);
        side& end                  = ends[choice];
        side& peer                 = ends[1 - choice];
        switch (numbers.below(4)) {
        case 0:
            post_receive(end);
            break;
        case 1:
        case 2:
            post_send(end, peer);
            break;
        default:
            run(end, peer);
            ASSERT_NO_FATAL_FAILURE(expect_model(end));
            ASSERT_NO_FATAL_FAILURE(expect_model(peer));
            break;
        }
    }
    EXPECT_GT(machine.memory().counts.completions, 5'000u);
    EXPECT_EQ(machine.memory().counts.error_completions, 0u);
}

} // namespace

} // namespace ucxl::softhca::test
