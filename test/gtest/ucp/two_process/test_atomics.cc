// Remote atomics on memory allocated under a window of one block: stock UCX has its target do them in software, at
// the window's address.
#include "remote_key.h"
#include "scenario.h"
#include "transports.h"

#include <array>
#include <cstring>

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

namespace
{

constexpr std::size_t num_words = 64;

template <typename Word>
class remote_words
{
public:
    remote_words(session& in, const remote_key& at) : _session(in), _target(at) {}

    Word fetch(ucp_atomic_op_t what, std::size_t index, Word operand, Word reply = 0)
    {
        auto param = parameters();
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = &reply;
        run(what, index, operand, param);
        return reply;
    }

    void post(ucp_atomic_op_t what, std::size_t index, Word operand) { run(what, index, operand, parameters()); }

private:
    static ucp_request_param_t parameters()
    {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype     = ucp_dt_make_contig(sizeof(Word));
        return param;
    }

    void run(ucp_atomic_op_t what, std::size_t index, Word operand, const ucp_request_param_t& param)
    {
        const auto request = ucp_atomic_op_nbx(_session.endpoint(), what, &operand, 1,
                                               _target.address() + index * sizeof(Word), _target.get(), &param);
        check_ok(_session.wait(request), "ucp_atomic_op_nbx");
        _session.flush();
    }

    session& _session;
    const remote_key& _target;
};

// Every operation on words of its own, and the same on plain variables.
template <typename Word>
void run_atomics(session& in, const remote_key& at, std::size_t first, Word* expected)
{
    remote_words<Word> remote(in, at);
    const auto check_fetched = [](Word got, Word wanted) { check(got == wanted, "fetched {}, not {}", got, wanted); };
    std::size_t i            = first;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_ADD, i, 5), expected[i]);
    expected[i] += 5;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_ADD, i, static_cast<Word>(-7)), expected[i]);
    expected[i] = static_cast<Word>(expected[i] - 7);
    ++i;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_SWAP, i, 1234), expected[i]);
    expected[i] = 1234;
    ++i;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_CSWAP, i, expected[i], 99), expected[i]); // equal: swapped
    expected[i] = 99;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_CSWAP, i, 98, 5), expected[i]); // not equal: not swapped
    ++i;
    remote.post(UCP_ATOMIC_OP_ADD, i, 17);
    expected[i] += 17;
    ++i;
    check_fetched(remote.fetch(UCP_ATOMIC_OP_XOR, i, 0x0ff0), expected[i]);
    expected[i] ^= 0x0ff0;
    remote.post(UCP_ATOMIC_OP_OR, i, 0x8001);
    expected[i] |= 0x8001;
    remote.post(UCP_ATOMIC_OP_AND, i, 0xff01);
    expected[i] &= 0xff01;
}

std::array<std::uint64_t, num_words> initial_words()
{
    std::array<std::uint64_t, num_words> words;
    for (std::size_t i = 0; i < num_words; ++i) {
        words[i] = 0x0123456700000000u + i * 1000;
    }
    return words;
}

// 64-bit words in the first half of the window, 32-bit words in the second.
void apply(session& in, const remote_key& at, std::array<std::uint64_t, num_words>& words)
{
    run_atomics<std::uint64_t>(in, at, 0, words.data());
    std::array<std::uint32_t, 2 * num_words> halves;
    std::memcpy(halves.data(), words.data(), sizeof(words));
    run_atomics<std::uint32_t>(in, at, num_words, halves.data());
    std::memcpy(words.data(), halves.data(), sizeof(words));
}

ucx_layout::window allocate_words(session& in)
{
    const auto layout = ucx_layout::layout::contig(num_words, {.length = sizeof(std::uint64_t), .layout = nullptr});
    check(layout.has_value(), "ucp_layout_create failed");
    auto window = ucx_layout::window::allocate(in.context(), *layout);
    check(window.has_value(), "ucp_layout_map with ALLOCATE failed");
    return std::move(*window);
}

void atomics(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session in(arguments, context);
    auto words = initial_words();
    if (arguments.plays(1)) {
        const auto window = allocate_words(in);
        void* base        = nullptr;
        check_ok(window.bases({&base, 1}), "ucp_layout_mem_query");
        std::memcpy(base, words.data(), sizeof(words));
        bytes key;
        append_key(key, in.context(), window.memh(), window.address());
        in.exchange(key);
        in.barrier();
        in.close();
        check_ok(window.bases({&base, 1}), "ucp_layout_mem_query");
        const bytes wanted = in.exchange({});
        check(wanted.size() == sizeof(words), "no words to compare with");
        check(std::memcmp(base, wanted.data(), sizeof(words)) == 0,
              "the words are not what the operations make of them");
        check(std::memcmp(window.address(), base, sizeof(words)) == 0, "the window does not show its memory");
        return;
    }
    const bytes key                  = in.exchange({});
    std::span<const std::byte> given = key;
    {
        const remote_key remote(in.endpoint(), given);
        apply(in, remote, words);
    }
    in.barrier();
    in.close();
    in.exchange(std::as_bytes(std::span(words)));
}

const scenario atomic_operations("atomics", atomics);

class remote_atomics : public testing::TestWithParam<setting>
{
};

TEST_P(remote_atomics, work_on_an_allocated_window_of_one_block)
{
    EXPECT_PAIR(config_for(GetParam(), "atomics", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, remote_atomics,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "sysv", "tcp"})),
                                          both_protocols()),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
