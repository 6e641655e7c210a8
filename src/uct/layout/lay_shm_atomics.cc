// Atomics of lay_shm, by the CPU in the mapped memory.
#include "atomic_word.h"
#include "failure.h"
#include "lay_shm_ep.h"
#include "shm_rkey.h"

namespace ucxl
{

namespace
{

// Null, and it is reported, if there is no word that can be operated on.
std::byte* word_of(uct_rkey_t rkey, std::uint64_t address, std::size_t length, bool silent)
{
    const imported_window& window = window_of(rkey);
    const char* reason            = "are not inside the remote window";
    std::byte* word               = nullptr;
    if (is_inside(window, address, length)) {
        reason = "are of a remote window that is gone";
        if (is_published(window)) {
            word = word_in(*window.described, window.bases, address - window.key.address, length, reason);
        }
    }
    if (word == nullptr) {
        report_failure({failure_kind::remote_atomic, "lay_shm atomic", address, length, reason, silent});
    }
    return word;
}

// An operation without a result cannot fail: UCP would end the process (its protocol has no abort), and there is no
// completion. It is reported, and nothing changes.
template <typename Word>
ucs_status_t post(uct_ep_h, unsigned operation, Word value, std::uint64_t remote, uct_rkey_t rkey)
{
    if (std::byte* word = word_of(rkey, remote, sizeof(Word), true)) {
        apply(word, static_cast<uct_atomic_op_t>(operation), value);
    }
    return UCS_OK;
}

// An operation with a result fails through its completion, which must then come "later".
template <typename Word>
ucs_status_t finish(const std::byte* word, Word* result, uct_completion_t* completion)
{
    if (word != nullptr) {
        return UCS_OK;
    }
    *result = 0;
    if (completion == nullptr) {
        return UCS_ERR_INVALID_ADDR;
    }
    if (completion->status == UCS_OK) {
        completion->status = UCS_ERR_INVALID_ADDR;
    }
    if (--completion->count == 0) {
        completion->func(completion);
    }
    return UCS_INPROGRESS;
}

template <typename Word, typename Operation>
ucs_status_t fetch(uct_ep_h, Operation operation, Word value, Word* result, std::uint64_t remote, uct_rkey_t rkey,
                   uct_completion_t* completion)
{
    std::byte* const word = word_of(rkey, remote, sizeof(Word), false);
    if (word != nullptr) {
        *result = apply(word, static_cast<uct_atomic_op_t>(operation), value);
    }
    return finish(word, result, completion);
}

template <typename Word>
ucs_status_t compare_and_swap(uct_ep_h, Word compare, Word swap, std::uint64_t remote, uct_rkey_t rkey, Word* result,
                              uct_completion_t* completion)
{
    std::byte* const word = word_of(rkey, remote, sizeof(Word), false);
    if (word != nullptr) {
        *result = apply(word, UCT_ATOMIC_OP_CSWAP, compare, swap);
    }
    return finish(word, result, completion);
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
