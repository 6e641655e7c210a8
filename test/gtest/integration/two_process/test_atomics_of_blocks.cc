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
    spread_words(session& session, const std::array<std::uint64_t, num_words>& words)
    {
        for (const std::uint64_t word : words) {
            _memory.insert(_memory.end(), {word, gap, gap});
        }
        const auto layout =
            ucx_layout::layout::create_strided(sizeof(std::uint64_t), {{num_words, 3 * sizeof(std::uint64_t)}});
        check(layout.has_value(), "ucp_layout_create failed");
        auto created = ucx_layout::window::map(session.context(), *layout, _memory.data());
        check(created.has_value(), "ucp_layout_map failed");
        _window.emplace(std::move(*created));
    }

    bytes key(session& session) const
    {
        bytes packed;
        append_key(packed, session.context(), _window->memh(), _window->address());
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
    session session(arguments, context);
    auto words = initial_words();
    std::optional<spread_words> target;
    if (arguments.plays(1)) {
        target.emplace(session, words);
    }
    const bytes key                    = session.exchange(target ? target->key(session) : bytes{});
    std::span<const std::byte> payload = key;
    if (arguments.plays(0)) {
        const remote_key remote(session.endpoint(), payload);
        apply(session, remote, words);
    }
    session.barrier();
    session.close();
    const bytes result = session.exchange(std::as_bytes(std::span(words)));
    if (target) {
        target->check_equal(result);
    }
}

// Threads of the target add to the same words as the peer: no addition is lost.
void contended(const peer_arguments& arguments)
{
    constexpr std::uint64_t turns = 20000;
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(1)) {
        spread_words target(session, {});
        std::uint64_t own_turns = 0;
        std::jthread other([&](const std::stop_token& end) {
            for (; !end.stop_requested(); ++own_turns) {
                std::atomic_ref(target[0]).fetch_add(1);
                std::atomic_ref(target[1]).fetch_add(1);
            }
        });
        session.exchange(target.key(session));
        session.barrier();
        other.request_stop();
        other.join();
        session.close();
        check(target[0] == turns + own_turns && target[1] == turns + own_turns, "{} and {} additions instead of {}",
              target[0], target[1], turns + own_turns);
        return;
    }
    const bytes key                    = session.exchange({});
    std::span<const std::byte> payload = key;
    {
        const remote_key remote(session.endpoint(), payload);
        remote_words<std::uint64_t> words(session, remote);
        for (std::uint64_t i = 0; i < turns; ++i) {
            words.add_without_waiting(0, 1);
            words.add_without_waiting(1, 1);
        }
        session.flush();
    }
    session.barrier();
    session.close();
}

// The target refuses words that lie across blocks, are not aligned, or belong to a destroyed window. It reports this
// and goes on, its memory is unchanged, and the initiator of an operation with a result gets an error.
void refused(const peer_arguments& arguments)
{
    constexpr std::size_t number = 8;
    constexpr std::size_t stride = 3; // in half words
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(1)) {
        const std::vector<std::uint32_t> initial(number * stride + 1, 7);
        auto memory       = initial;
        const auto layout = ucx_layout::layout::create_strided(4, {{number, 4 * stride}});
        check(layout.has_value(), "ucp_layout_create failed");
        auto halves = ucx_layout::window::map(session.context(), *layout, memory.data());
        auto unaligned =
            ucx_layout::window::map(session.context(), *layout, reinterpret_cast<std::byte*>(&memory[1]) + 2);
        check(halves.has_value() && unaligned.has_value(), "ucp_layout_map failed");
        bytes keys;
        append_key(keys, session.context(), halves->memh(), halves->address());
        append_key(keys, session.context(), unaligned->memh(), unaligned->address());
        const auto words = initial_words();
        spread_words gone(session, words);
        const bytes key = gone.key(session);
        keys.insert(keys.end(), key.begin(), key.end());
        gone.unmap();
        session.exchange(keys);
        session.barrier();
        check(memory == initial, "memory was written");
        gone.check_equal(std::as_bytes(std::span(words)));
        session.barrier(); // the peer may operate on a word now
        session.barrier();
        session.close();
        memory[stride] -= 5;
        check(memory == initial, "a word in one block was not operated on");
        return;
    }
    const bytes keys                   = session.exchange({});
    std::span<const std::byte> payload = keys;
    {
        const remote_key halves(session.endpoint(), payload);
        const remote_key unaligned(session.endpoint(), payload);
        const remote_key gone(session.endpoint(), payload);
        for (const remote_key* each : {&halves, &unaligned, &gone}) {
            remote_words<std::uint64_t> words(session, *each);
            std::uint64_t reply = 7;
            check(words.try_fetch(UCP_ATOMIC_OP_ADD, 1, 5, reply) != UCS_OK,
                  "an operation that was refused was UCS_OK");
            words.post(UCP_ATOMIC_OP_ADD, 0, 5);
        }
        remote_words<std::uint32_t> words(session, unaligned);
        std::uint32_t reply = 7;
        check(words.try_fetch(UCP_ATOMIC_OP_SWAP, 2, 5, reply) != UCS_OK, "an operation that was refused was UCS_OK");
        session.barrier();
        session.barrier(); // the peer has compared its memory
        remote_words<std::uint32_t>(session, halves).post(UCP_ATOMIC_OP_ADD, 1, 5);
    }
    session.barrier();
    session.close();
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
