#include "lay_shm.h"
#include "shared_pass.h"

#include "uct/layout/base/atomic_word.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/peer/ep.h"
#include "uct/layout/peer/iface.h"
#include "uct/layout/peer/rkey.h"

namespace ucxl
{

namespace
{

// UCP adds the bandwidths of lay_shm and lay_cma, though a window has a key of one of them only. The sum is less than
// that of UCX's shared memory, so messages of windows that are priced as fast to copy (copy/iface.cc) stay eager. The
// overhead keeps small messages on the eager protocols, which are faster for them.
constexpr abi::option config_table[] = {
    {"", "", nullptr, offsetof(host_interface_config, super), abi::option_type::iface_options},
    {"BW", "5GBs", "Bandwidth as reported to UCP, which plans protocols with it",
     offsetof(host_interface_config, bandwidth), abi::option_type::bandwidth},
    {"OVERHEAD", "2us", "CPU time to start an operation as reported to UCP", offsetof(host_interface_config, overhead),
     abi::option_type::price},
    {"LATENCY", "50ns", "Latency of an operation as reported to UCP", offsetof(host_interface_config, latency),
     abi::option_type::price}};

ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr)
{
    query_host_interface(iface, attr);
    attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_CPU;
    constexpr std::uint64_t posts = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                                    UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
    constexpr std::uint64_t fetches = posts | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    attr->cap.atomic32.op_flags     = posts;
    attr->cap.atomic64.op_flags     = posts;
    attr->cap.atomic32.fop_flags    = fetches;
    attr->cap.atomic64.fop_flags    = fetches;
    return UCS_OK;
}

constexpr const char* taken_away = "are of memory that was taken away meanwhile";

// Of a window that is not usable now.
const char* reason_of_refusal(const imported_window& window)
{
    if (!is_published(window)) {
        return "are of a remote window that is gone";
    }
    const reader_section section;
    return has_lost_memory(sources_of(window)) ? taken_away
                                               : "are of a remote window whose memory cannot be mapped at the moment";
}

struct mapped_access {
    static constexpr const char* name = "lay_shm";

    static const char* refusal_of(const imported_window& window)
    {
        return is_usable_now(window) ? nullptr : reason_of_refusal(window);
    }
    static std::optional<shm_key> offer_of(const imported_window& window, const void* buffer, std::size_t length)
    {
        return offer_to_share(window, buffer, length);
    }

    static const char* put(const imported_window& window, std::uint64_t offset, const transfer_side& source,
                           std::size_t length, const std::optional<shm_key>& offer)
    {
        return move(window, offset, source, length, pass_direction::to_owner, offer);
    }

    static const char* get(const imported_window& window, std::uint64_t offset, const transfer_side& target,
                           std::size_t length, const std::optional<shm_key>& offer)
    {
        return move(window, offset, target, length, pass_direction::from_owner, offer);
    }

private:
    static const char* move(const imported_window& window, std::uint64_t offset, const transfer_side& local,
                            std::size_t length, pass_direction direction, const std::optional<shm_key>& offer)
    {
        const mapped_sources& sources = sources_of(window);
        const mapped_pass pass{mapped_side(window, sources, offset), local, direction, &sources};
        const bool is_done = offer && pass.is_divisible() ? share_pass(pass, window, offset, *offer, length)
                                                          : move_alone(pass, window.key.length, length);
        return is_done ? nullptr : has_lost_memory(sources) ? taken_away : card_memory_failed;
    }
};

unsigned progress(uct_iface_h iface)
{
    return take_part_in_passes(reinterpret_cast<host_interface*>(iface)->seen_passes);
}

// UCP switches the progress of an interface without active messages on with the first operation that it starts by it,
// and off with its last endpoint. But an owner takes part in what others start, so only opening and closing count.
void progress_switch(uct_iface_h, unsigned)
{
}

void iface_close(uct_iface_h iface)
{
    abi::disable_progress(iface);
    close_host_interface(iface);
}

// Calls use(word) for a word of a remote window. Returns false and reports a failure if the address holds no usable
// word.
template <typename Use>
bool with_word(uct_rkey_t rkey, std::uint64_t address, std::size_t length, bool silent, Use&& use)
{
    const imported_window& window = window_of(rkey);
    const char* reason            = "are not inside the remote window";
    if (is_inside(window, address, length)) {
        if (!is_usable_now(window)) {
            reason = reason_of_refusal(window);
        } else {
            const reader_section section;
            const mapped_sources& sources = sources_of(window);
            if (std::byte* const word =
                    word_in(*window.described, sources.bases, address - window.key.address, length, reason)) {
                use(word);
                if (!has_lost_memory(sources)) [[likely]] {
                    return true;
                }
                reason = taken_away;
            }
        }
    }
    report_failure({failure_kind::remote_atomic, "lay_shm atomic", address, length, reason, silent});
    return false;
}

// An operation without a result cannot fail: UCP would end the process (its protocol has no abort), and there is no
// completion. It reports the failure and changes nothing.
template <typename Word>
ucs_status_t post(uct_ep_h, unsigned operation, Word value, std::uint64_t remote, uct_rkey_t rkey)
{
    with_word(rkey, remote, sizeof(Word), true,
              [&](std::byte* word) { apply(word, static_cast<uct_atomic_op_t>(operation), value); });
    return UCS_OK;
}

// An operation with a result fails through its completion, so it must return "in progress" first.
template <typename Word>
ucs_status_t finish(bool is_done, Word* result, uct_completion_t* completion)
{
    if (is_done) {
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
    const bool is_done = with_word(rkey, remote, sizeof(Word), false, [&](std::byte* word) {
        *result = apply(word, static_cast<uct_atomic_op_t>(operation), value);
    });
    return finish(is_done, result, completion);
}

template <typename Word>
ucs_status_t compare_and_swap(uct_ep_h, Word compare, Word swap, std::uint64_t remote, uct_rkey_t rkey, Word* result,
                              uct_completion_t* completion)
{
    const bool is_done = with_word(rkey, remote, sizeof(Word), false,
                                   [&](std::byte* word) { *result = apply(word, UCT_ATOMIC_OP_CSWAP, compare, swap); });
    return finish(is_done, result, completion);
}

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    host_endpoint<mapped_access>::fill(ops);
    host_interface_ops(ops);
    ops.iface_progress         = progress;
    ops.iface_progress_enable  = progress_switch;
    ops.iface_progress_disable = progress_switch;
    ops.iface_close            = iface_close;
    ops.ep_atomic32_post       = post<std::uint32_t>;
    ops.ep_atomic64_post       = post<std::uint64_t>;
    ops.ep_atomic32_fetch      = fetch<std::uint32_t>;
    ops.ep_atomic64_fetch      = fetch<std::uint64_t>;
    ops.ep_atomic_cswap32      = compare_and_swap<std::uint32_t>;
    ops.ep_atomic_cswap64      = compare_and_swap<std::uint64_t>;
    ops.iface_query            = iface_query;
    return ops;
}

ucs_status_t iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                        const uct_iface_config_t* config, uct_iface_h* iface)
{
    static uct_iface_ops_t ops = make_ops();
    const auto status          = open_host_interface(ops, md, worker, params, config, iface);
    if (status == UCS_OK) {
        abi::enable_progress(*iface);
    }
    return status;
}

} // namespace

constinit abi::transport lay_shm_tl({
    .name          = "lay_shm",
    .query_devices = query_host_devices,
    .iface_open    = iface_open,
    .iface_options = {"lay_shm transport", "LAY_SHM_", config_table, sizeof(host_interface_config)},
});

} // namespace ucxl
