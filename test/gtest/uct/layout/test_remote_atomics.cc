// Requests for atomics as a peer may make them up, given to the handler that libucp registers for its workers. (What
// peers make with UCP's own calls is in gtest_ucp_two_process.)
#include "common/log_guard.h"
#include "common/random.h"
#include "common/ucp_pair.h"
#include "patterned_window.h"
#include "uct/abi/ucp_abi_1_18.h"
#include "uct/layout/init.h"

#include <cstring>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr window_shape shape{12, 20};
constexpr std::uint64_t nobody = 0x7fffffff; // no endpoint has this number, so nothing is answered

struct [[gnu::packed]] message {
    ucxl::abi::atomic_request header;
    std::uint64_t operand;
    std::uint64_t replacement;
};

template <typename Word>
void apply_plainly(std::byte* at, uct_atomic_op_t operation, const message& of)
{
    Word word, operand, replacement;
    std::memcpy(&word, at, sizeof(Word));
    std::memcpy(&operand, &of.operand, sizeof(Word));
    std::memcpy(&replacement, reinterpret_cast<const std::byte*>(&of.operand) + sizeof(Word), sizeof(Word));
    switch (operation) {
    case UCT_ATOMIC_OP_ADD:
        word += operand;
        break;
    case UCT_ATOMIC_OP_AND:
        word &= operand;
        break;
    case UCT_ATOMIC_OP_OR:
        word |= operand;
        break;
    case UCT_ATOMIC_OP_XOR:
        word ^= operand;
        break;
    case UCT_ATOMIC_OP_SWAP:
        word = operand;
        break;
    case UCT_ATOMIC_OP_CSWAP:
        word = word == operand ? replacement : word;
        break;
    case UCT_ATOMIC_OP_LAST:
        break;
    }
    std::memcpy(at, &word, sizeof(Word));
}

// Whether a word of the packed bytes is one that may be operated on; the memory of a patterned window is aligned.
bool is_served(std::int64_t offset, std::uint64_t window_length, std::uint64_t length)
{
    const auto from = static_cast<std::uint64_t>(offset);
    return offset >= 0 && from + length <= window_length && from % shape.block + length <= shape.block &&
           (from / shape.block * shape.stride + from % shape.block) % length == 0;
}

class remote_atomics : public ucx_test
{
protected:
    void SetUp() override
    {
        uct_layout_init();
        _pair = std::make_unique<ucp_pair>(ucp_options{.config = {}, .self = true});
    }

    void deliver(message& request, std::size_t length)
    {
        ASSERT_EQ(UCS_OK, ucp_am_handler_UCP_AM_ID_ATOMIC_REQ.cb(_pair->worker(0), &request, length, 0));
    }

private:
    std::unique_ptr<ucp_pair> _pair;
};

TEST_F(remote_atomics, made_up_requests_change_whole_aligned_words_of_blocks_and_nothing_else)
{
    // Refusals are logged, but only the first ones of a process, which other tests may have had.
    logs().allow("remote atomic: ");
    test::random random(run_seed());
    constexpr std::uint64_t length = 600;
    patterned_window window(shape, length, 3);
    auto expected = window.packed();
    for (unsigned turn = 0; turn < 20000; ++turn) {
        const std::int64_t offset = random.between(-20, length + 20);
        const std::uint8_t word   = random.one_in(2) ? 4 : 8;
        const auto operation      = static_cast<uct_atomic_op_t>(random.below(UCT_ATOMIC_OP_LAST));
        const bool is_cut         = random.one_in(8); // no operands: as if they were 0
        message request{{reinterpret_cast<std::uintptr_t>(window.address()) + static_cast<std::uint64_t>(offset),
                         nobody, 1, word, static_cast<std::uint8_t>(operation)},
                        random.below(UINT64_MAX),
                        random.below(UINT64_MAX)};
        if (is_served(offset, length, word)) {
            message seen = request;
            if (is_cut) {
                seen.operand = seen.replacement = 0;
            }
            if (operation == UCT_ATOMIC_OP_CSWAP && random.one_in(2) && !is_cut) {
                std::memcpy(&request.operand, expected.data() + offset, word);
                std::memcpy(&seen.operand, expected.data() + offset, word);
            }
            word == 4 ? apply_plainly<std::uint32_t>(expected.data() + offset, operation, seen)
                      : apply_plainly<std::uint64_t>(expected.data() + offset, operation, seen);
        }
        deliver(request, is_cut ? sizeof(request.header) : sizeof(request));
        ASSERT_EQ(window.packed(), expected) << "seed " << run_seed() << ", turn " << turn << ", offset " << offset
                                             << ", word of " << int{word} << ", operation " << operation;
        ASSERT_TRUE(window.gaps_untouched());
    }
}

TEST_F(remote_atomics, of_other_memory_are_left_to_libucp)
{
    std::uint64_t memory = 5;
    message request{{reinterpret_cast<std::uintptr_t>(&memory), nobody, 1, 8, UCT_ATOMIC_OP_ADD}, 3, 0};
    deliver(request, sizeof(request));
    EXPECT_EQ(5u, memory) << "libucp does nothing for an endpoint it does not know";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&memory), request.header.address);
}

ucs_status_t another_function(void*, void*, std::size_t, unsigned)
{
    return UCS_OK;
}

TEST(ucp_abi, only_the_known_handler_of_atomic_requests_is_known)
{
    using ucxl::abi::knows_atomic_request;
    const ucxl::abi::ucp_am_handler known{.features = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64,
                                          .cb       = ucp_atomic_req_handler,
                                          .tracer   = nullptr,
                                          .flags    = 0,
                                          .proxy_cb = another_function};
    EXPECT_TRUE(knows_atomic_request(&known));
    EXPECT_FALSE(knows_atomic_request(nullptr));
    auto other     = known;
    other.features = UCP_FEATURE_AMO32;
    EXPECT_FALSE(knows_atomic_request(&other));
    other    = known;
    other.cb = another_function;
    EXPECT_FALSE(knows_atomic_request(&other));
    other          = known;
    other.proxy_cb = nullptr;
    EXPECT_FALSE(knows_atomic_request(&other));
}

} // namespace
