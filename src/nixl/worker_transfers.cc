#include "worker.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <sched.h>

namespace ucxl::nixl
{

namespace
{

using clock = std::chrono::steady_clock;
using ucx_layout::result;

// What is copied by one call of UCX. The lock of the worker is held that long where the call copies by itself.
constexpr std::uint64_t piece_length = 4U << 20;
// What is sent as one message.
constexpr std::uint64_t message_length = 16U << 20;
constexpr std::size_t max_running      = 4; // pieces
// A transfer up to this length is begun by the post itself, if nobody else uses the worker: that is over before
// another thread would have looked.
constexpr std::uint64_t max_posted_length = 256U << 10;
constexpr std::size_t max_windows         = 64; // of one peer, without those in use
constexpr auto time_to_end                = std::chrono::seconds(1);

std::uint64_t silent_failures()
{
    ucp_layout_failure_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
    return ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &attr) == UCS_OK ? attr.silent : 0;
}

// Takes what has ended out of the list; the first error, else UCS_OK.
ucs_status_t reap(std::vector<std::shared_ptr<piece>>& running)
{
    ucs_status_t failure = UCS_OK;
    std::erase_if(running, [&](const auto& each) {
        if (each->call != nullptr) {
            const auto status = ucx()->request_status(each->call);
            if (status == UCS_INPROGRESS) {
                return false;
            }
            each->note(status);
            ucx()->request_free(std::exchange(each->call, nullptr));
        }
        if (!each->has_ended()) {
            return false;
        }
        failure = failure == UCS_OK ? each->failure : failure;
        return true;
    });
    return failure;
}

// What UCX returned for an operation: running, or ended with a status.
void note_begun(piece& made, ucs_status_ptr_t call)
{
    if (UCS_PTR_IS_PTR(call)) {
        made.call = call;
    } else {
        made.note(UCS_PTR_STATUS(call));
    }
}

bool are_registered(const local_blocks& blocks)
{
    return std::ranges::all_of(blocks.regions, [](const auto& each) { return each->is_registered(); });
}

} // namespace

result<local_blocks> worker::blocks_of(const described_list& list) const
{
    local_blocks made{.layout = list.layout, .regions = {}, .bases = {}};
    for (const auto id : list.regions) {
        const auto found = _regions.find(id);
        if (found == _regions.end()) {
            return std::unexpected(UCS_ERR_NO_ELEM);
        }
        made.regions.push_back(found->second);
        made.bases.push_back(found->second->address());
    }
    return made;
}

// As one buffer for UCX: contiguous bytes are one already.
ucs_status_t worker::show_locally(transfer& xfer, const described_list& list)
{
    if (list.num_blocks == 1) {
        xfer.buffer.address = static_cast<std::byte*>(xfer.local.bases.front()) + list.first_offset;
        if (xfer.target->process) {
            xfer.buffer.handle = map_memory(_context, xfer.buffer.address, xfer.length);
        }
        return UCS_OK;
    }
    auto window = ucx_layout::window::map(_context, *xfer.local.layout,
                                          std::vector<const void*>(xfer.local.bases.begin(), xfer.local.bases.end()));
    if (!window) {
        return window.error();
    }
    xfer.buffer.address = window->address();
    xfer.buffer.window.emplace(std::move(*window));
    return UCS_OK;
}

// A window that the peer has shown already, or is asked to show now.
std::shared_ptr<remote_window> worker::window_of(peer& at, described_list list)
{
    const auto found = std::ranges::find_if(at.windows, [&](const auto& each) {
        return each->layout->get() == list.layout->get() && each->regions == list.regions &&
               (each->status == UCS_OK || each->status == UCS_INPROGRESS);
    });
    if (found != at.windows.end()) {
        at.windows.splice(at.windows.begin(), at.windows, found);
        return at.windows.front();
    }
    const auto attr = list.layout->query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH | UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH);
    message asked{.kind    = message_kind::show,
                  .window  = ++_last_number,
                  .length  = attr->packed_length,
                  .process = process_identity::own(),
                  .regions = list.regions,
                  .bytes   = std::string(attr->serialized_length, '\0')};
    list.layout->serialize(std::as_writable_bytes(std::span(asked.bytes)));
    at.windows.push_front(std::make_shared<remote_window>(
        remote_window{.layout = list.layout, .regions = std::move(list.regions), .number = asked.window}));
    send(at, std::move(asked));
    forget_old_windows(at);
    return at.windows.front();
}

void worker::forget_old_windows(peer& at)
{
    std::size_t unused = 0;
    std::erase_if(at.windows, [&](const auto& each) {
        if (each.use_count() > 1 || each->status == UCS_INPROGRESS || ++unused <= max_windows) {
            return false;
        }
        send(at, {.kind = message_kind::drop, .window = each->number});
        return true;
    });
}

result<transfer_ptr> worker::prepare(direction way, block_list local, const std::string& agent, block_list remote)
{
    const std::uint64_t length = local.length();
    if (length != remote.length()) {
        return std::unexpected(UCS_ERR_INVALID_PARAM);
    }
    result<described_list> here, there;
    if (length != 0) {
        here  = _lists.describe(std::move(local));
        there = _lists.describe(std::move(remote));
        if (!here || !there) {
            return std::unexpected(here ? there.error() : here.error());
        }
    }
    const std::scoped_lock guard(_lock);
    transfer_ptr made(new transfer);
    made->way    = way;
    made->length = length;
    if (agent != _agent) {
        const auto found = _peers.find(agent);
        if (found == _peers.end()) {
            return std::unexpected(UCS_ERR_NO_ELEM);
        }
        if (found->second->failure != UCS_OK) {
            return std::unexpected(found->second->failure);
        }
        made->target = found->second;
    }
    if (made->length != 0) {
        auto blocks = blocks_of(*here);
        if (!blocks) {
            return std::unexpected(blocks.error());
        }
        made->local = std::move(*blocks);
        const auto status =
            made->target != nullptr ? prepare_remote(*made, *here, std::move(*there)) : prepare_own(*made, *there);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
    }
    _transfers.insert(made.get());
    made->owner = this;
    return made;
}

ucs_status_t worker::prepare_remote(transfer& xfer, const described_list& local, described_list remote)
{
    const auto status = show_locally(xfer, local);
    if (status == UCS_OK) {
        xfer.remote = window_of(*xfer.target, std::move(remote));
    }
    return status;
}

ucs_status_t worker::prepare_own(transfer& xfer, const described_list& remote)
{
    auto blocks = blocks_of(remote);
    if (!blocks) {
        return blocks.error();
    }
    xfer.own = std::move(*blocks);
    auto one = ucx_layout::plan::create(*xfer.local.layout);
    auto two = ucx_layout::plan::create(*xfer.own->layout);
    if (!one || !two) {
        return one ? two.error() : one.error();
    }
    xfer.local_plan.emplace(std::move(*one));
    xfer.own_plan.emplace(std::move(*two));
    return UCS_OK;
}

ucs_status_t worker::post(transfer& xfer, std::optional<std::string> notice)
{
    if (xfer.status.load(std::memory_order_acquire) == UCS_INPROGRESS) {
        return UCS_ERR_BUSY;
    }
    xfer.notice = std::move(notice);
    xfer.status.store(UCS_INPROGRESS, std::memory_order_relaxed);
    {
        const std::scoped_lock guard(_posted_lock);
        _posted.push_back(&xfer);
    }
    if (xfer.length <= max_posted_length) {
        if (const std::unique_lock guard(_lock, std::try_to_lock); guard.owns_lock()) {
            progress_locked();
        }
    }
    return xfer.status.load(std::memory_order_acquire);
}

ucs_status_t worker::check(transfer& xfer)
{
    if (xfer.status.load(std::memory_order_acquire) == UCS_INPROGRESS) {
        if (const std::unique_lock guard(_lock, std::try_to_lock); guard.owns_lock()) {
            progress_locked();
        } else {
            sched_yield(); // somebody else works on it
        }
    }
    return xfer.status.load(std::memory_order_acquire);
}

// UCX never ends an operation with a process of this host that has ended, and nobody moves its bytes any more.
void worker::leave_unfinished(transfer& xfer)
{
    if (!xfer.target->process || !xfer.target->process->has_ended()) {
        return;
    }
    for (auto& each : std::exchange(xfer.running, {})) {
        if (each->call != nullptr) {
            ucx()->request_free(std::exchange(each->call, nullptr));
        }
        xfer.unfinished.push_back(std::move(each));
    }
}

ucs_status_t worker::end(transfer& xfer)
{
    const std::scoped_lock guard(_lock);
    return end_locked(xfer);
}

ucs_status_t worker::end_locked(transfer& xfer)
{
    {
        const std::scoped_lock posted_guard(_posted_lock);
        std::erase(_posted, &xfer);
    }
    // What UCX has begun reads or writes memory of the program, which it may free after the call.
    const auto begun = clock::now();
    while (!xfer.running.empty() && clock::now() < begun + 2 * time_to_end) {
        progress_messages();
        reap(xfer.running);
        if (clock::now() > begun + time_to_end) {
            if (!xfer.target->process) {
                close(xfer.target); // ends all operations
            }
            await_no_answers(xfer.running);
            leave_unfinished(xfer);
        }
    }
    if (!xfer.running.empty()) {
        xfer.failure = UCS_ERR_CANCELED; // its answers are not awaited
        return UCS_ERR_BUSY;
    }
    std::erase(_active, &xfer);
    return UCS_OK;
}

// Whether UCX has nothing of it any more. Else the worker keeps it until then.
bool worker::release(transfer& xfer)
{
    const std::scoped_lock guard(_lock);
    const auto ended = end_locked(xfer);
    std::erase(_active, &xfer);
    if (ended != UCS_OK || !xfer.unfinished.empty()) {
        _released.emplace_back(&xfer);
        return false;
    }
    _transfers.erase(&xfer);
    xfer.buffer = {};
    return true;
}

void worker::reap_released()
{
    std::erase_if(_released, [this](const auto& each) {
        reap(each->running);
        const bool has_ended = each->running.empty() && each->unfinished.empty();
        if (has_ended) {
            _transfers.erase(each.get());
        }
        return has_ended;
    });
}

std::size_t worker::num_released() const
{
    const std::scoped_lock guard(_lock);
    return _released.size();
}

void release_transfer::operator()(transfer* xfer) const
{
    if (xfer->owner != nullptr && !xfer->owner->is_of_this_process()) {
        return; // the parent's
    }
    if (xfer->owner == nullptr || xfer->owner->release(*xfer)) {
        delete xfer;
    }
}

bool worker::progress_transfers()
{
    std::vector<transfer*> posted;
    {
        const std::scoped_lock guard(_posted_lock);
        posted.swap(_posted);
    }
    for (transfer* const each : posted) {
        begin(*each);
        _active.push_back(each);
    }
    bool is_busy = !posted.empty();
    for (transfer* const each : _active) {
        is_busy = step(*each) || is_busy;
    }
    std::erase_if(_active, [](const transfer* each) { return each->at == transfer::stage::idle; });
    return is_busy;
}

void worker::begin(transfer& xfer)
{
    xfer.started                = 0;
    xfer.failure                = UCS_OK;
    xfer.silent_failures_before = silent_failures();
    if (xfer.length == 0) {
        start_notice(xfer);
    } else {
        xfer.at = xfer.target != nullptr ? transfer::stage::waiting : transfer::stage::moving;
    }
}

bool worker::step(transfer& xfer)
{
    switch (xfer.at) {
    case transfer::stage::idle:
        return false;
    case transfer::stage::waiting:
        return wait_for_window(xfer);
    case transfer::stage::moving:
        return xfer.target != nullptr ? move(xfer) : move_here(xfer);
    case transfer::stage::flushing:
        return flush(xfer);
    case transfer::stage::notifying:
        return notify(xfer);
    }
    return false;
}

bool worker::wait_for_window(transfer& xfer)
{
    if (!are_registered(xfer.local)) {
        finish(xfer, UCS_ERR_NO_ELEM);
    } else if (xfer.target->failure != UCS_OK) {
        finish(xfer, xfer.target->failure);
    } else if (xfer.remote->status == UCS_OK) {
        xfer.at = transfer::stage::moving;
        return move(xfer);
    } else if (xfer.remote->status != UCS_INPROGRESS) {
        finish(xfer, xfer.remote->status);
    } else {
        return false;
    }
    return true;
}

bool worker::is_one_sided(const transfer& xfer) const
{
    switch (xfer.remote->way) {
    case reach::messages:
        break;
    case reach::neighbors:
        return xfer.target->has_shared_memory;
    case reach::everywhere:
        return true;
    case reach::kernel:
        return xfer.target->is_copied_by_kernel;
    }
    return false;
}

void worker::put_or_get(transfer& xfer, piece& made)
{
    ucp_request_param_t param{};
    if (xfer.buffer.memh() != nullptr) {
        param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        param.memh         = xfer.buffer.memh();
    }
    made.key                   = xfer.remote->key;
    void* const local          = static_cast<std::byte*>(xfer.buffer.address) + xfer.started;
    const std::uint64_t remote = xfer.remote->address + xfer.started;
    note_begun(made, xfer.way == direction::write
                         ? ucx()->put(xfer.target->endpoint, local, made.length, remote, made.key.get(), &param)
                         : ucx()->get(xfer.target->endpoint, local, made.length, remote, made.key.get(), &param));
}

void worker::start_piece(transfer& xfer)
{
    const auto made = std::make_shared<piece>();
    made->offset    = xfer.started;
    made->length    = std::min(is_one_sided(xfer) ? piece_length : message_length, xfer.length - xfer.started);
    if (is_one_sided(xfer)) {
        put_or_get(xfer, *made);
    } else if (xfer.way == direction::write) {
        send_piece(xfer, made);
    } else {
        fetch_piece(xfer, made);
    }
    xfer.started += made->length;
    xfer.running.push_back(made);
}

bool worker::move(transfer& xfer)
{
    const std::size_t running = xfer.running.size();
    const auto ended          = reap(xfer.running);
    xfer.failure              = xfer.failure == UCS_OK ? ended : xfer.failure;
    if (xfer.target->failure != UCS_OK) {
        xfer.failure = xfer.failure == UCS_OK ? xfer.target->failure : xfer.failure;
        await_no_answers(xfer.running);
        leave_unfinished(xfer);
    }
    if (xfer.failure == UCS_OK && xfer.started < xfer.length && xfer.running.size() < max_running) {
        start_piece(xfer);
        return true;
    }
    if (xfer.running.empty()) {
        if (xfer.failure != UCS_OK) {
            finish(xfer, xfer.failure);
        } else if (xfer.started == xfer.length) {
            start_flush(xfer);
        }
        return true;
    }
    return xfer.running.size() != running;
}

// Within the agent.
bool worker::move_here(transfer& xfer)
{
    if (!are_registered(xfer.local) || !are_registered(*xfer.own)) {
        finish(xfer, UCS_ERR_NO_ELEM);
        return true;
    }
    const std::uint64_t length = std::min(piece_length, xfer.length - xfer.started);
    const bool is_write        = xfer.way == direction::write;
    const auto& to             = is_write ? *xfer.own_plan : *xfer.local_plan;
    const auto& from           = is_write ? *xfer.local_plan : *xfer.own_plan;
    const auto& to_bases       = is_write ? xfer.own->bases : xfer.local.bases;
    const auto& from_bases     = is_write ? xfer.local.bases : xfer.own->bases;
    xfer.failure = to.copy(to_bases, xfer.started, from, std::vector<const void*>(from_bases.begin(), from_bases.end()),
                           xfer.started, length);
    xfer.started += length;
    if (xfer.failure != UCS_OK) {
        finish(xfer, xfer.failure);
    } else if (xfer.started == xfer.length) {
        start_notice(xfer);
    }
    return true;
}

// The bytes of a put have arrived when the endpoint was flushed; those of a get and of messages when these end.
void worker::start_flush(transfer& xfer)
{
    if (xfer.way == direction::read || !is_one_sided(xfer)) {
        start_notice(xfer);
        return;
    }
    const ucp_request_param_t param{};
    const auto made = std::make_shared<piece>();
    note_begun(*made, ucx()->ep_flush(xfer.target->endpoint, &param));
    xfer.running.push_back(made);
    xfer.at = transfer::stage::flushing;
}

bool worker::flush(transfer& xfer)
{
    const auto ended = reap(xfer.running);
    xfer.failure     = xfer.failure == UCS_OK ? ended : xfer.failure;
    if (xfer.target->failure != UCS_OK) {
        xfer.failure = xfer.failure == UCS_OK ? xfer.target->failure : xfer.failure;
        leave_unfinished(xfer);
    }
    if (!xfer.running.empty()) {
        return false;
    }
    // A target that refuses a put tells it to this process, and not to the operation.
    if (xfer.failure == UCS_OK && silent_failures() != xfer.silent_failures_before) {
        xfer.failure = UCS_ERR_INVALID_ADDR;
    }
    if (xfer.failure != UCS_OK) {
        finish(xfer, xfer.failure);
    } else {
        start_notice(xfer);
    }
    return true;
}

void worker::start_notice(transfer& xfer)
{
    if (xfer.target != nullptr && xfer.target->failure != UCS_OK) {
        finish(xfer, xfer.target->failure);
    } else if (!xfer.notice) {
        finish(xfer, UCS_OK);
    } else if (xfer.target == nullptr) {
        {
            const std::scoped_lock guard(_notices_lock);
            _notices.emplace_back(_agent, *xfer.notice);
        }
        finish(xfer, UCS_OK);
    } else {
        xfer.notice_sent = send(*xfer.target, {.kind = message_kind::notice, .name = _agent, .bytes = *xfer.notice});
        xfer.at          = transfer::stage::notifying;
        notify(xfer);
    }
}

bool worker::notify(transfer& xfer)
{
    const auto sent   = xfer.notice_sent->load(std::memory_order_relaxed);
    const auto status = sent == UCS_INPROGRESS ? xfer.target->failure : sent;
    if (sent == UCS_INPROGRESS && status == UCS_OK) {
        return false;
    }
    xfer.notice_sent.reset();
    finish(xfer, status);
    return true;
}

void worker::finish(transfer& xfer, ucs_status_t status)
{
    xfer.at = transfer::stage::idle;
    xfer.status.store(status, std::memory_order_release);
}

} // namespace ucxl::nixl
