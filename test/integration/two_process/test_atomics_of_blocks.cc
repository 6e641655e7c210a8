// Remote atomics on windows of several blocks: the target does them in the memory that the window shows.
#include "remote_words.h"
#include "scenario.h"
#include "transports.h"

#include <atomic>
#include <thread>

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

namespace
{

constexpr std::uint64_t gap = 0x6761706761706761;

// Words with gaps behind each of them, and a window over the words.
class spread_words
{
public:
    spread_words(session& in, const std::array<std::uint64_t, num_words>& words)
    {
        for (const std::uint64_t word : words) {
            _memory.insert(_memory.end(), {word, gap, gap});
        }
        const auto layout =
            ucx_layout::layout::create_strided(sizeof(std::uint64_t), {{num_words, 3 * sizeof(std::uint64_t)}});
        check(layout.has_value(), "ucp_layout_create failed");
        auto made = ucx_layout::window::map(in.context(), *layout, _memory.data());
        check(made.has_value(), "ucp_layout_map failed");
        _window.emplace(std::move(*made));
    }

    bytes key(session& in) const
    {
        bytes packed;
        append_key(packed, in.context(), _window->memh(), _window->address());
        return packed;
    }

    std::uint64_t& operator[](std::size_t i) { return _memory[3 * i]; }

    void check_equal(std::span<const std::byte> wanted) const
    {
        check(wanted.size() == num_words * sizeof(std::uint64_t), "no words to compare with");
        for (std::size_t i = 0; i < num_words; ++i) {
            std::uint64_t word;
            std::memcpy(&word, wanted.data() + i * sizeof(word), sizeof(word));
            check(_memory[3 * i] == word, "word {} is {:x}, not {:x}", i, _memory[3 * i], word);
            check(_memory[3 * i + 1] == gap && _memory[3 * i + 2] == gap, "the gap behind word {} was written", i);
        }
    }

    void unmap() { _window.reset(); }

private:
    std::vector<std::uint64_t> _memory;
    std::optional<ucx_layout::window> _window;
};

void every_operation(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session in(arguments, context);
    auto words = initial_words();
    std::optional<spread_words> target;
    if (arguments.plays(1)) {
        target.emplace(in, words);
    }
    const bytes key                  = in.exchange(target ? target->key(in) : bytes{});
    std::span<const std::byte> given = key;
    if (arguments.plays(0)) {
        const remote_key remote(in.endpoint(), given);
        apply(in, remote, words);
    }
    in.barrier();
    in.close();
    const bytes result = in.exchange(std::as_bytes(std::span(words)));
    if (target) {
        target->check_equal(result);
    }
}

// The target's own threads add to the words that the peer adds to: nothing is lost.
void contended(const peer_arguments& arguments)
{
    constexpr std::uint64_t turns = 20000;
    const context_handle context(arguments);
    session in(arguments, context);
    if (arguments.plays(1)) {
        spread_words target(in, {});
        std::uint64_t own_turns = 0;
        std::jthread other([&](const std::stop_token& end) {
            for (; !end.stop_requested(); ++own_turns) {
                std::atomic_ref(target[0]).fetch_add(1);
                std::atomic_ref(target[1]).fetch_add(1);
            }
        });
        in.exchange(target.key(in));
        in.barrier();
        other.request_stop();
        other.join();
        in.close();
        check(target[0] == turns + own_turns && target[1] == turns + own_turns, "{} and {} additions instead of {}",
              target[0], target[1], turns + own_turns);
        return;
    }
    const bytes key                  = in.exchange({});
    std::span<const std::byte> given = key;
    {
        const remote_key remote(in.endpoint(), given);
        remote_words<std::uint64_t> words(in, remote);
        for (std::uint64_t i = 0; i < turns; ++i) {
            words.add_without_waiting(0, 1);
            words.add_without_waiting(1, 1);
        }
        in.flush();
    }
    in.barrier();
    in.close();
}

// Words that lie across blocks, or not aligned, or in a window that is gone, are refused: the target says so and goes
// on, its memory stays as it was, and who wanted the old value gets an error.
void refused(const peer_arguments& arguments)
{
    constexpr std::size_t number = 8;
    constexpr std::size_t stride = 3; // in half words
    const context_handle context(arguments);
    session in(arguments, context);
    if (arguments.plays(1)) {
        const std::vector<std::uint32_t> initial(number * stride + 1, 7);
        auto memory       = initial;
        const auto layout = ucx_layout::layout::create_strided(4, {{number, 4 * stride}});
        check(layout.has_value(), "ucp_layout_create failed");
        auto halves    = ucx_layout::window::map(in.context(), *layout, memory.data());
        auto unaligned = ucx_layout::window::map(in.context(), *layout, reinterpret_cast<std::byte*>(&memory[1]) + 2);
        check(halves.has_value() && unaligned.has_value(), "ucp_layout_map failed");
        bytes keys;
        append_key(keys, in.context(), halves->memh(), halves->address());
        append_key(keys, in.context(), unaligned->memh(), unaligned->address());
        spread_words gone(in, {});
        const bytes key = gone.key(in);
        keys.insert(keys.end(), key.begin(), key.end());
        gone.unmap();
        in.exchange(keys);
        in.barrier();
        check(memory == initial, "memory was written");
        in.barrier();
        in.close();
        memory[stride] -= 5;
        check(memory == initial, "a word in one block was not operated on");
        return;
    }
    const bytes keys                 = in.exchange({});
    std::span<const std::byte> given = keys;
    {
        const remote_key halves(in.endpoint(), given);
        const remote_key unaligned(in.endpoint(), given);
        const remote_key gone(in.endpoint(), given);
        for (const remote_key* each : {&halves, &unaligned, &gone}) {
            remote_words<std::uint64_t> words(in, *each);
            std::uint64_t reply = 7;
            check(words.try_fetch(UCP_ATOMIC_OP_ADD, 1, 5, reply) != UCS_OK,
                  "an operation that was refused was UCS_OK");
            words.post(UCP_ATOMIC_OP_ADD, 0, 5);
        }
        remote_words<std::uint32_t> words(in, unaligned);
        std::uint32_t reply = 7;
        check(words.try_fetch(UCP_ATOMIC_OP_SWAP, 2, 5, reply) != UCS_OK, "an operation that was refused was UCS_OK");
        in.barrier();
        remote_words<std::uint32_t>(in, halves).post(UCP_ATOMIC_OP_ADD, 1, 5);
    }
    in.barrier();
    in.close();
}

const scenario every_operation_on_blocks("atomics_of_blocks.every_operation", every_operation);
const scenario contended_words("atomics_of_blocks.contended", contended);
const scenario refused_words("atomics_of_blocks.refused", refused);

class remote_atomics_of_blocks : public testing::TestWithParam<setting>
{
};

TEST_P(remote_atomics_of_blocks, every_operation_changes_the_word_and_nothing_else)
{
    EXPECT_PAIR(config_for(GetParam(), "atomics_of_blocks.every_operation", 1));
}

TEST_P(remote_atomics_of_blocks, none_is_lost_when_the_target_adds_too)
{
    EXPECT_PAIR(config_for(GetParam(), "atomics_of_blocks.contended", 1));
}

TEST_P(remote_atomics_of_blocks, split_and_unaligned_and_stale_words_are_refused)
{
    auto config               = config_for(GetParam(), "atomics_of_blocks.refused", 1);
    config.expected[0].output = "ERROR refused by a peer: 8 bytes at 0x[0-9a-f]* .*";
    config.expected[1].output = "ERROR atomic of a peer: 8 bytes at 0x[0-9a-f]* are not inside one block of the layout";
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, remote_atomics_of_blocks,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "sysv", "tcp"})),
                                          both_protocols()),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
