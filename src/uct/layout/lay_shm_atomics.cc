// Atomics of lay_shm, by the CPU in the mapped memory.
#include "atomic_word.h"
#include "lay_shm_ep.h"
#include "refusal.h"
#include "shm_rkey.h"

namespace ucxl
{

namespace
{

// Null, and it is logged, if there is no word that can be operated on.
std::byte* word_of(uct_rkey_t rkey, std::uint64_t address, std::size_t length)
{
    const imported_window& in = window_of(rkey);
    const char* why           = "are not inside the remote window";
    std::byte* word           = nullptr;
    if (is_inside(in, address, length)) {
        word = word_in(*in.described, in.bases, address - in.key.address, length, why);
    }
    if (word == nullptr) {
        report_refusal("lay_shm atomic", reinterpret_cast<const void*>(address), length, why);
    }
    return word;
}

// An operation without a result cannot fail in UCP, which would end the process: it is logged, and nothing changes.
template <typename Word>
ucs_status_t post(uct_ep_h, unsigned operation, Word value, std::uint64_t remote, uct_rkey_t rkey)
{
    if (std::byte* word = word_of(rkey, remote, sizeof(Word))) {
        apply(word, static_cast<uct_atomic_op_t>(operation), value);
    }
    return UCS_OK;
}

// The result of one that cannot be done is 0, as where the target does it (remote_atomics.h).
template <typename Word, typename Operation>
ucs_status_t fetch(uct_ep_h, Operation operation, Word value, Word* result, std::uint64_t remote, uct_rkey_t rkey,
                   uct_completion_t*)
{
    std::byte* const word = word_of(rkey, remote, sizeof(Word));
    *result               = word != nullptr ? apply(word, static_cast<uct_atomic_op_t>(operation), value) : Word{0};
    return UCS_OK;
}

template <typename Word>
ucs_status_t compare_and_swap(uct_ep_h, Word compare, Word swap, std::uint64_t remote, uct_rkey_t rkey, Word* result,
                              uct_completion_t*)
{
    std::byte* const word = word_of(rkey, remote, sizeof(Word));
    *result               = word != nullptr ? apply(word, UCT_ATOMIC_OP_CSWAP, compare, swap) : Word{0};
    return UCS_OK;
}

} // namespace

void lay_shm_atomic_ops(uct_iface_ops_t& ops)
{
    ops.ep_atomic32_post  = post<std::uint32_t>;
    ops.ep_atomic64_post  = post<std::uint64_t>;
    ops.ep_atomic32_fetch = fetch<std::uint32_t>;
    ops.ep_atomic64_fetch = fetch<std::uint64_t>;
    ops.ep_atomic_cswap32 = compare_and_swap<std::uint32_t>;
    ops.ep_atomic_cswap64 = compare_and_swap<std::uint64_t>;
}

} // namespace ucxl
