// In which order a queue pair does what was posted to it (docs/needs-hardware.md, claim 13): kinds of requests behind
// other kinds, where the order can be seen afterwards, with a fence where the specifications ask for one
// (softhca/core/queues/adversarial_order.h names them). A run shows what a card did, never what it cannot do.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>

#include "key_test.h"
#include "support/verbs.h"
#include "uct/ib/mlx5/layout/capabilities.h"

namespace ucxl::test
{
namespace
{

// Words in registered memory, each in a cache line of its own.
enum word : std::uint8_t {
    target,  // what the peer has
    fresh,   // the value that a first write brings
    fresher, // and a second one
    first,   // what the first request brought back
    second,  // and the second one
    received,
    num_words
};

enum class kind : std::uint8_t {
    write,
    read,
    add,  // fetch and add 1
    send, // received into `received`
};

// Two requests, and the word that must have a certain value if the second one did not pass the first one.
struct sequence {
    const char* name;
    kind earlier;
    kind later;
    word later_source; // of a write or send
    word witness;
    std::uint64_t wanted; // more than the value that the target had
    bool needs_fence;
};

void PrintTo(const sequence& one, std::ostream* out)
{
    *out << one.name;
}

// The values are those of the target before, plus this.
constexpr std::uint64_t fresh_value   = 1000;
constexpr std::uint64_t fresher_value = 2000;

constexpr sequence sequences[] = {
    {"a_write_behind_a_write", kind::write, kind::write, fresher, target, fresher_value, false},
    {"a_read_behind_a_write", kind::write, kind::read, fresher, second, fresh_value, false},
    {"an_addition_behind_a_write", kind::write, kind::add, fresher, second, fresh_value, false},
    {"a_send_behind_a_write", kind::write, kind::send, fresher, target, fresh_value, false},
    {"a_read_behind_an_addition", kind::add, kind::read, fresher, second, 1, false},
    {"an_addition_behind_an_addition", kind::add, kind::add, fresher, second, 1, false},
    {"a_write_behind_a_read", kind::read, kind::write, fresher, first, 0, true},
    {"an_addition_behind_a_read", kind::read, kind::add, fresher, first, 0, true},
    {"a_write_behind_an_addition", kind::add, kind::write, fresher, first, 0, true},
    {"a_send_of_what_was_read", kind::read, kind::send, first, received, 0, true},
    {"a_send_of_what_was_added_to", kind::add, kind::send, first, received, 0, true},
    {"a_write_of_what_was_read", kind::read, kind::write, first, target, 0, true},
};

class card_order : public key_test, public ::testing::WithParamInterface<sequence>
{
protected:
    static constexpr std::size_t distance = 64;

    volatile std::uint64_t& value(word at) const
    {
        return *reinterpret_cast<std::uint64_t*>(&_memory->bytes[at * distance]);
    }

    ibv_sge place(word at) const { return _memory->piece(at * distance, sizeof(std::uint64_t)); }

    // The element has to stay where it is until the request is posted.
    ibv_send_wr request_of(kind what, ibv_sge& element) const
    {
        ibv_send_wr request{};
        request.sg_list    = &element;
        request.num_sge    = 1;
        request.send_flags = IBV_SEND_SIGNALED;
        const auto remote  = place(target).addr;
        const auto rkey    = _memory->mr->rkey;
        switch (what) {
        case kind::write:
            request.opcode  = IBV_WR_RDMA_WRITE;
            request.wr.rdma = {.remote_addr = remote, .rkey = rkey};
            break;
        case kind::read:
            request.opcode  = IBV_WR_RDMA_READ;
            request.wr.rdma = {.remote_addr = remote, .rkey = rkey};
            break;
        case kind::add:
            request.opcode    = IBV_WR_ATOMIC_FETCH_AND_ADD;
            request.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = rkey};
            break;
        case kind::send:
            request.opcode = IBV_WR_SEND;
            break;
        }
        return request;
    }

    static bool brings_back(kind what) { return what == kind::read || what == kind::add; }

    // Whether the second request came second. Both are posted together.
    bool keeps_order(const sequence& wanted, bool with_fence, std::uint64_t old)
    {
        for (int at = 0; at < num_words; ++at) {
            value(static_cast<word>(at)) = ~std::uint64_t{0};
        }
        value(target)          = old;
        value(fresh)           = old + fresh_value;
        value(fresher)         = old + fresher_value;
        ibv_sge elements[]     = {place(brings_back(wanted.earlier) ? first : fresh),
                                  place(brings_back(wanted.later) ? second : wanted.later_source)};
        ibv_send_wr requests[] = {request_of(wanted.earlier, elements[0]), request_of(wanted.later, elements[1])};
        requests[0].next       = &requests[1];
        requests[1].send_flags |= with_fence ? IBV_SEND_FENCE : 0;
        if (wanted.later == kind::send) {
            pair.post_receive(place(received));
        }
        ibv_send_wr* bad = nullptr;
        worked(ibv_post_send(pair.qp(), requests, &bad), "post");
        bool is_kept = true;
        if (wanted.later == kind::send) { // what it has to show, it shows at once
            EXPECT_EQ(pair.wait_for_receive().status, IBV_WC_SUCCESS);
            is_kept = value(wanted.witness) == old + wanted.wanted;
        }
        EXPECT_EQ(pair.wait().status, IBV_WC_SUCCESS);
        EXPECT_EQ(pair.wait().status, IBV_WC_SUCCESS);
        return is_kept && value(wanted.witness) == old + wanted.wanted;
    }

    std::size_t rounds_with_passing(bool with_fence, std::size_t rounds)
    {
        std::size_t passed = 0;
        for (std::size_t round = 0; round < rounds && !HasFailure(); ++round) {
            passed += keeps_order(GetParam(), with_fence, round * 10000) ? 0 : 1;
        }
        return passed;
    }

    bool is_possible() const
    {
        ibv_device_attr device{};
        worked(ibv_query_device(pair.context(), &device), "ibv_query_device");
        return device.atomic_cap != IBV_ATOMIC_NONE ||
               (GetParam().earlier != kind::add && GetParam().later != kind::add);
    }

    // Writes pass each other on a device that has relaxed order only.
    bool is_promised() const
    {
        const auto said = mlx5::query_capabilities(pair.context());
        return said.has_value() &&
               !(said->relaxed_only && GetParam().earlier == kind::write && GetParam().later == kind::write);
    }

private:
    std::unique_ptr<buffer> _memory = zeroed(num_words * distance);
};

// contrib/hw-check asks a card for more.
std::size_t wanted_rounds()
{
    const char* const wanted = std::getenv("UCXL_TEST_KEY_ROUNDS");
    return wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 300;
}

TEST_P(card_order, is_that_of_posting)
{
    if (!is_possible()) {
        GTEST_SKIP() << "the device has no atomic operations";
    }
    if (!is_promised()) {
        GTEST_SKIP() << "all memory of the device lets writes pass writes";
    }
    const std::size_t rounds = wanted_rounds();
    RecordProperty("rounds", std::to_string(rounds));
    if (GetParam().needs_fence) { // only to know: nobody says that a card passes, or that it does not
        RecordProperty("passed_without_fence", std::to_string(rounds_with_passing(false, rounds)));
    }
    EXPECT_EQ(rounds_with_passing(GetParam().needs_fence, rounds), 0U);
}

INSTANTIATE_TEST_SUITE_P(kinds, card_order, ::testing::ValuesIn(sequences),
                         [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace ucxl::test
