// Words in a remote window, and atomic operations of stock UCX on them. Each is compared with the same operation on a
// plain variable.
//
// Example: apply(session, key, words);    // the target has num_words words at the key, which now equal `words`
#pragma once

#include "remote_key.h"

#include <array>
#include <cstring>

namespace ucxl::two_process
{

inline constexpr std::size_t num_words = 64;

template <typename Word>
class remote_words
{
public:
    remote_words(session& session, const remote_key& key) : _session(session), _target(key) {}

    Word fetch(ucp_atomic_op_t operation, std::size_t index, Word operand, Word reply = 0)
    {
        auto param = parameters();
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = &reply;
        run(operation, index, operand, param);
        return reply;
    }

    // The status of an operation that may be refused, and its result.
    ucs_status_t try_fetch(ucp_atomic_op_t operation, std::size_t index, Word operand, Word& reply)
    {
        auto param = parameters();
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = &reply;
        return start(operation, index, operand, param);
    }

    void post(ucp_atomic_op_t operation, std::size_t index, Word operand)
    {
        run(operation, index, operand, parameters());
    }

    // Complete at the target after the next flush().
    void add_without_waiting(std::size_t index, Word operand)
    {
        const auto param   = parameters();
        const auto request = ucp_atomic_op_nbx(_session.endpoint(), UCP_ATOMIC_OP_ADD, &operand, 1,
                                               _target.address() + index * sizeof(Word), _target.get(), &param);
        check_ok(_session.wait(request), "ucp_atomic_op_nbx");
    }

private:
    static ucp_request_param_t parameters()
    {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype     = ucp_dt_make_contig(sizeof(Word));
        return param;
    }

    ucs_status_t start(ucp_atomic_op_t operation, std::size_t index, Word operand, const ucp_request_param_t& param)
    {
        const auto request = ucp_atomic_op_nbx(_session.endpoint(), operation, &operand, 1,
                                               _target.address() + index * sizeof(Word), _target.get(), &param);
        const auto status  = _session.wait(request);
        _session.flush();
        return status;
    }

    void run(ucp_atomic_op_t operation, std::size_t index, Word operand, const ucp_request_param_t& param)
    {
        check_ok(start(operation, index, operand, param), "ucp_atomic_op_nbx");
    }

    session& _session;
    const remote_key& _target;
};

// Runs every operation on its own words, and the same operations on plain variables.
template <typename Word>
void run_atomics(session& session, const remote_key& key, std::size_t first, Word* expected)
{
    remote_words<Word> remote(session, key);
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

inline std::array<std::uint64_t, num_words> initial_words()
{
    std::array<std::uint64_t, num_words> words;
    for (std::size_t i = 0; i < num_words; ++i) {
        words[i] = 0x0123456700000000u + i * 1000;
    }
    return words;
}

// 64-bit words in the first half of the window, 32-bit words in the second.
inline void apply(session& session, const remote_key& key, std::array<std::uint64_t, num_words>& words)
{
    run_atomics<std::uint64_t>(session, key, 0, words.data());
    std::array<std::uint32_t, 2 * num_words> halves;
    std::memcpy(halves.data(), words.data(), sizeof(words));
    run_atomics<std::uint32_t>(session, key, num_words, halves.data());
    std::memcpy(words.data(), halves.data(), sizeof(words));
}

} // namespace ucxl::two_process
