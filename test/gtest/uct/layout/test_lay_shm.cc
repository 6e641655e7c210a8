// lay_shm without UCP and without a second process: its operations on imported windows.
#include "lay_shm_fixture.h"
#include "support/property.h"
#include "support/random.h"
#include "support/random_spec.h"
#include "ucs/pack/streaming_limit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

TEST_F(lay_shm, every_operation_moves_the_bytes_of_random_layouts_and_no_others)
{
    const auto draw = [](test::random& from) {
        return random_spec(from, {.max_bytes = 20000, .num_sources = 3, .overlapping = overlapping::never});
    };
    const auto check = [this](test::random& from, const spec& described) {
        shared_window target(described, from.next());
        if (target.length() == 0) {
            return;
        }
        const imported key(export_window(target.address()));
        ASSERT_TRUE(key);
        for (int i = 0; i < 8; ++i) {
            const auto offset = from.below(target.length());
            const auto length = from.below(target.length() - offset + 1);
            auto data         = random_bytes(from.next(), length);
            const auto wanted = target.gather(offset, length);
            switch (i) {
            case 0:
            case 1: {
                ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, data.data(), static_cast<unsigned>(length),
                                                   target.remote(offset), key.rkey()));
                target.scatter(offset, data);
                break;
            }
            case 2:
            case 3: {
                const auto iov = iov_of(data.data(), length);
                ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, target.remote(offset), key.rkey(), nullptr));
                target.scatter(offset, data);
                break;
            }
            default: {
                const auto iov = iov_of(data.data(), length);
                ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, target.remote(offset), key.rkey(), nullptr));
                ASSERT_EQ(data, wanted);
            }
            }
            ASSERT_TRUE(target.is_as_expected()) << " operation " << i;
        }
    };
    for_random_layouts(200, draw, check, [](const spec& described) { return !has_overlap(described); });
}

TEST_F(lay_shm, buffered_operations_pass_through_the_callbacks)
{
    shared_window target(*words_with_gaps());
    const imported key(export_window(target.address()));
    auto data         = random_bytes(5, 300);
    const auto packed = uct_ep_put_bcopy(
        ep,
        [](void* to, void* arg) {
            const auto& bytes = *static_cast<std::vector<std::byte>*>(arg);
            std::memcpy(to, bytes.data(), bytes.size());
            return bytes.size();
        },
        &data, target.remote(7), key.rkey());
    EXPECT_EQ(packed, 300);
    target.scatter(7, data);
    EXPECT_TRUE(target.is_as_expected());
    std::vector<std::byte> got(100);
    ASSERT_EQ(UCS_OK, uct_ep_get_bcopy(
                          ep, [](void* arg, const void* from, std::size_t length) { std::memcpy(arg, from, length); },
                          got.data(), got.size(), target.remote(33), key.rkey(), nullptr));
    EXPECT_EQ(got, target.gather(33, 100));
}

TEST_F(lay_shm, windows_are_copied_straight_into_windows)
{
    shared_window target(*words_with_gaps(), 1);
    shared_window source(*spec::strided(spec::block(10), {{64, 32}}), 2);
    const imported key(export_window(target.address()));
    auto iov = iov_of(source.address() + 5, 600);
    ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, target.remote(20), key.rkey(), nullptr));
    target.scatter(20, source.gather(5, 600));
    EXPECT_TRUE(target.is_as_expected());
    iov = iov_of(source.address(), 500);
    ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, target.remote(3), key.rkey(), nullptr));
    source.scatter(0, target.gather(3, 500));
    EXPECT_TRUE(source.is_as_expected());
    EXPECT_TRUE(target.is_as_expected());
}

// The owner polls, as programs do that wait for a put. Such a put is written past the caches, all but a part of its
// last line.
TEST_F(lay_shm, brings_the_last_byte_of_a_long_put_last)
{
    constexpr std::uint64_t shift = 8, block = 64 << 10, count = 32, looked_at = 64 << 10;
    const std::uint64_t usual_limit = streaming_limit();
    set_streaming_limit(min_measured_limit);
    const shared_window remote(*spec::block(count * block + 4096));
    const auto rows = spec::strided(spec::block(block), {{count, 2 * block}});
    spec_memory local(*rows, 1);
    window* const source       = must(window_registry::instance().create(
        {must(pack_plan::compile(must(build(*rows)))), {local.bases().begin(), local.bases().end()}}));
    const std::uint64_t length = source->length();
    const imported key(export_window(remote.address()));
    ASSERT_TRUE(key);
    ASSERT_GE(length, streaming_limit());
    std::byte* const end = remote.start() + shift + length;
    const auto value_of  = [](unsigned round) { return static_cast<std::byte>(1 + round % 255); };
    std::fill_n(remote.start(), shift + length, std::byte{0});
    std::atomic<unsigned> num_arrived{0}, num_early{0};
    std::jthread owner([&](const std::stop_token& is_over) {
        const std::atomic_ref last(end[-1]);
        while (!is_over.stop_requested()) {
            const std::byte value = value_of(num_arrived);
            if (last.load(std::memory_order_acquire) == value) {
                const std::reverse_iterator<const std::byte*> latest(end); // those that may still come
                num_early += !std::all_of(latest, latest + looked_at, [&](std::byte each) { return each == value; });
                ++num_arrived;
            }
        }
    });
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60); // it may get no core for long
    for (unsigned round = 0; round < 2000 && std::chrono::steady_clock::now() < give_up; ++round) {
        std::fill_n(source->binding().bases[0], 2 * length - block, value_of(round));
        const auto iov = iov_of(source->address(), length);
        ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, remote.remote(shift), key.rkey(), nullptr));
        while (num_arrived == round && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::yield();
        }
    }
    EXPECT_EQ(num_early, 0u) << "of " << num_arrived;
    window_registry::instance().destroy(source);
    set_streaming_limit(usual_limit);
}

// The completion that UCP passes to an atomic operation with a result.
struct fetch_completion {
    explicit fetch_completion(bool& ended)
        : super{.func   = [](uct_completion_t* self) { *reinterpret_cast<fetch_completion*>(self)->_ended = true; },
                .count  = 1,
                .status = UCS_OK},
          _ended(&ended)
    {
    }

    uct_completion_t super;

private:
    bool* _ended;
};

TEST_F(lay_shm, ranges_outside_the_window_change_nothing)
{
    logs().allow("lay_shm"); // only the first ones of a process are logged
    shared_window target(*words_with_gaps());
    const imported key(export_window(target.address()));
    for (const std::uint64_t address : {target.remote() - 1, target.remote(target.length() - 19), target.remote() - 20,
                                        std::uint64_t{0}, UINT64_MAX - 5}) {
        auto data         = random_bytes(4, 20);
        const auto before = data;
        auto iov          = iov_of(data.data(), data.size());
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_short(ep, data.data(), 20, address, key.rkey()));
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, address, key.rkey(), nullptr));
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, address, key.rkey()));
        EXPECT_EQ(data, before) << "no byte of something else may come instead";
        std::uint64_t old = 5;
        EXPECT_EQ(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, address, key.rkey()));
        bool has_ended = false;
        fetch_completion completion(has_ended);
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &old, address, key.rkey(), &completion.super));
        EXPECT_TRUE(has_ended);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, completion.super.status);
        EXPECT_EQ(old, 0u);
    }
    auto iov = iov_of(window_registry::instance().arena_base() + window_registry::instance().arena_length() - 64, 20);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, target.remote(), key.rkey(), nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, target.remote(), key.rkey()));
    EXPECT_TRUE(target.is_as_expected());
}

template <typename Word>
Word word_at(shared_window& window, std::uint64_t offset)
{
    const auto bytes = window.gather(offset, sizeof(Word));
    Word word;
    std::memcpy(&word, bytes.data(), sizeof(Word));
    return word;
}

template <typename Word>
Word plainly(uct_atomic_op_t operation, Word word, Word operand, Word swap)
{
    switch (operation) {
    case UCT_ATOMIC_OP_ADD:
        return static_cast<Word>(word + operand);
    case UCT_ATOMIC_OP_AND:
        return word & operand;
    case UCT_ATOMIC_OP_OR:
        return word | operand;
    case UCT_ATOMIC_OP_XOR:
        return word ^ operand;
    case UCT_ATOMIC_OP_SWAP:
        return operand;
    case UCT_ATOMIC_OP_CSWAP:
        return word == operand ? swap : word;
    case UCT_ATOMIC_OP_LAST:
        break;
    }
    return word;
}

class lay_shm_atomics : public lay_shm
{
protected:
    template <typename Word>
    ucs_status_t fetch(uct_atomic_op_t operation, Word operand, Word swap, Word& old, std::uint64_t at, uct_rkey_t key)
    {
        if constexpr (sizeof(Word) == 8) {
            return operation == UCT_ATOMIC_OP_CSWAP
                       ? uct_ep_atomic_cswap64(ep, operand, swap, at, key, &old, nullptr)
                       : uct_ep_atomic64_fetch(ep, operation, operand, &old, at, key, nullptr);
        } else {
            return operation == UCT_ATOMIC_OP_CSWAP
                       ? uct_ep_atomic_cswap32(ep, operand, swap, at, key, &old, nullptr)
                       : uct_ep_atomic32_fetch(ep, operation, operand, &old, at, key, nullptr);
        }
    }

    template <typename Word>
    ucs_status_t post(uct_atomic_op_t operation, Word operand, std::uint64_t at, uct_rkey_t key)
    {
        if constexpr (sizeof(Word) == 8) {
            return uct_ep_atomic64_post(ep, operation, operand, at, key);
        } else {
            return uct_ep_atomic32_post(ep, operation, operand, at, key);
        }
    }

    template <typename Word>
    void check_once(shared_window& target, const imported& key, test::random& from)
    {
        const auto operation = static_cast<uct_atomic_op_t>(from.below(UCT_ATOMIC_OP_LAST));
        const auto offset    = from.below(target.length() - sizeof(Word) + 1);
        const bool is_served =
            offset % 16 + sizeof(Word) <= 16 && offset / 16 * 24 % sizeof(Word) == 0 && offset % 16 % sizeof(Word) == 0;
        const Word before  = word_at<Word>(target, offset);
        const Word operand = from.one_in(2) ? before : static_cast<Word>(from.next());
        const Word swap    = static_cast<Word>(from.next());
        const bool is_post = operation < UCT_ATOMIC_OP_SWAP && from.one_in(2);
        Word old           = 1;
        const auto wanted  = is_post || is_served ? UCS_OK : UCS_ERR_INVALID_ADDR;
        ASSERT_EQ(wanted, is_post ? post<Word>(operation, operand, target.remote(offset), key.rkey())
                                  : fetch<Word>(operation, operand, swap, old, target.remote(offset), key.rkey()));
        if (!is_post) {
            ASSERT_EQ(old, is_served ? before : Word{0});
        }
        if (is_served) {
            const Word after = plainly<Word>(operation, before, operand, swap);
            target.scatter(offset, std::as_bytes(std::span(&after, 1)));
        }
        ASSERT_TRUE(target.is_as_expected()) << "operation " << operation << " at " << offset;
    }
};

TEST_F(lay_shm_atomics, change_whole_aligned_words_of_blocks_and_nothing_else)
{
    logs().allow("lay_shm atomic: "); // only the first ones of a process are logged
    test::random from(run_seed());
    shared_window target(*words_with_gaps());
    const imported key(export_window(target.address()));
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (int turn = 0; turn < 5000; ++turn) {
        SCOPED_TRACE("seed " + std::to_string(run_seed()) + " turn " + std::to_string(turn));
        from.one_in(2) ? check_once<std::uint32_t>(target, key, from) : check_once<std::uint64_t>(target, key, from);
        if (HasFatalFailure()) {
            return;
        }
    }
}

} // namespace
