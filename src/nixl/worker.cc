#include "worker.h"

#include "active_messages.h"
#include "kernel_copies.h"
#include "log.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <random>
#include <ranges>

namespace ucxl::nixl
{

namespace
{

using clock = std::chrono::steady_clock;

constexpr int rounds_of_progress  = 32;
constexpr auto time_to_disconnect = std::chrono::seconds(1);
constexpr auto time_between_looks = std::chrono::milliseconds(10); // at the processes of peers

// UCP is not told how long a packed key or an address is, and follows the numbers in it: a key has 64 keys of domains
// of 255 bytes at most. Behind the bytes of a peer there are zeros for all that, so that nothing else is read.
constexpr std::size_t longest_packed = 32768;

std::string padded(std::string packed)
{
    packed.resize(packed.size() + longest_packed);
    return packed;
}

std::uint64_t random_number()
{
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
}

void note_failure(void* to, ucp_ep_h /*endpoint*/, ucs_status_t status)
{
    auto& failed             = *static_cast<peer*>(to);
    failed.failure           = status;
    failed.has_lost_endpoint = true;
}

struct sent_message {
    std::string bytes;
    message_status status;
};

void end_message(void* request, ucs_status_t status, void* sent)
{
    const std::unique_ptr<sent_message> ended(static_cast<sent_message*>(sent));
    ended->status->store(status, std::memory_order_relaxed);
    ucx()->request_free(request);
}

} // namespace

std::unique_ptr<worker> worker::create(std::string agent)
{
    std::unique_ptr<worker> made(new worker(std::move(agent)));
    return ucx() != nullptr && made->start() ? std::move(made) : nullptr;
}

bool worker::start()
{
    const auto& ucp = *ucx();
    _instance       = random_number();
    ucp_params_t params{};
    params.field_mask          = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features            = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    params.name                = "nixl";
    ucp_config_t* const config = config_with_kernel_copies();
    // libucp_layout's own function stands before UCX's: contexts that it makes have windows.
    const auto initialised = ucp_init(&params, config, &_context);
    if (config != nullptr) {
        ucp.config_release(config);
    }
    if (initialised != UCS_OK) {
        log_error("ucp_init failed ({})", static_cast<int>(initialised));
        return false;
    }
    ucp_layout_context_attr_t attr{};
    if (const auto status = ucp_layout_context_query(_context, &attr); status != UCS_OK) {
        log_error("this UCX has no windows ({}); is UCX_TLS set without lay_copy?", static_cast<int>(status));
        return false;
    }
    ucp_worker_params_t worker_params{};
    worker_params.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const auto status = ucp.worker_create(_context, &worker_params, &_worker); status != UCS_OK) {
        log_error("ucp_worker_create failed ({})", static_cast<int>(status));
        return false;
    }
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    if (!set_handler(message_id, &worker::receive) || !set_handler(data_id, &worker::receive_data) ||
        ucp.worker_get_address(_worker, &address, &length) != UCS_OK) {
        log_error("the UCP worker has no active messages, or no address");
        return false;
    }
    _connection = encode(connection_info{.instance = _instance,
                                         .process  = process_identity::own(),
                                         .address  = std::string(reinterpret_cast<const char*>(address), length)});
    ucp.worker_release_address(_worker, address);
    return true;
}

bool worker::set_handler(unsigned id, ucp_am_recv_callback_t call)
{
    const auto handler = handler_of(id, call, this);
    return ucx()->set_am_handler(_worker, &handler) == UCS_OK;
}

worker::~worker()
{
    const std::scoped_lock guard(_lock);
    const auto& ucp = *ucx();
    for (const auto& [name, each] : _peers) {
        close(each);
    }
    const auto limit = clock::now() + time_to_disconnect;
    while (_worker != nullptr && !_closing.empty() && clock::now() < limit) {
        ucp.worker_progress(_worker);
        reap_closing();
    }
    for (transfer* const each : _transfers) {
        // Their keys belong to the worker of UCX.
        each->running.clear();
        each->unfinished.clear();
    }
    if (_worker != nullptr) {
        ucp.worker_destroy(_worker);
    }
    // UCX has used them until now, and they need the context.
    for (transfer* const each : _transfers) {
        each->owner  = nullptr;
        each->buffer = {};
    }
    _released.clear();
    _shown.clear();
    _regions.clear();
    if (_context != nullptr) {
        ucp.cleanup(_context);
    }
}

// Without an endpoint.
std::shared_ptr<peer> worker::peer_of(const connection_info& info) const
{
    auto made      = std::make_shared<peer>();
    made->instance = info.instance;
    if (may_share_memory(process_identity::own(), info.process)) {
        watched_process process(info.process.pid); // its number may be that of another one by now
        if (process.start_time() == info.process.start_time && process.is_alive()) {
            made->process = std::move(process);
        }
    }
    return made;
}

// All that were made, as those to neighbors are never closed.
std::vector<std::shared_ptr<peer>> worker::peers_with_endpoint_to(std::uint64_t instance) const
{
    std::vector<std::shared_ptr<peer>> found;
    const auto add = [&](const std::shared_ptr<peer>& each) {
        if (each->instance == instance && each->endpoint != nullptr) {
            found.push_back(each);
        }
    };
    std::ranges::for_each(_peers | std::views::values, add);
    std::ranges::for_each(_left, add);
    return found;
}

ucs_status_t worker::create_endpoint(peer& made, const connection_info& info, bool is_neighbor)
{
    made.ordinal              = peers_with_endpoint_to(info.instance).size() + 1;
    made.is_joined            = !is_neighbor; // with error handling, UCX looks its endpoints up
    const std::string address = padded(info.address);
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address         = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode        = is_neighbor ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb  = note_failure;
    params.err_handler.arg = &made;
    return ucx()->ep_create(_worker, &params, &made.endpoint);
}

ucs_status_t worker::connect(const std::string& agent, std::string_view connection)
{
    const auto info = decode_connection(connection);
    if (!info) {
        log_error("the metadata of agent \"{}\" are not of this version of this backend, or were changed", agent);
        return UCS_ERR_INVALID_PARAM;
    }
    auto made  = peer_of(*info);
    made->name = agent;
    const std::scoped_lock guard(_lock);
    if (_peers.contains(agent)) {
        return UCS_ERR_ALREADY_EXISTS;
    }
    // Answers name their sender by its instance, which others may have seen.
    if (connected_as(info->instance) != nullptr) {
        log_error("the metadata of agent \"{}\" is that of another one, which is connected", agent);
        return UCS_ERR_ALREADY_EXISTS;
    }
    if (made->process) {
        // If UCX takes the first message of an agent that was killed, and has an endpoint here to it already, it looks
        // for other ways to the agent, and ends the process when it has found them. So what has come is taken before.
        progress_messages();
    }
    if (auto left = made->process ? peer_left_as(info->instance) : nullptr) {
        left->name    = agent;
        left->process = std::move(made->process);
        left->failure = UCS_OK;
        made          = std::move(left);
    }
    const bool is_new = made->endpoint == nullptr;
    if (is_new) {
        if (const auto status = create_endpoint(*made, *info, made->process.has_value()); status != UCS_OK) {
            return status;
        }
    }
    made->has_shared_memory   = made->process && has_transport(made->endpoint, "lay_shm");
    made->is_copied_by_kernel = made->process && can_kernel_copy(made->endpoint, info->process.pid);
    _peers.emplace(agent, made);
    if (is_new && made->process) {
        greet(*made);
    }
    return UCS_OK;
}

bool worker::is_connected(const std::string& agent) const
{
    const std::scoped_lock guard(_lock);
    return agent == _agent || _peers.contains(agent);
}

ucs_status_t worker::disconnect(const std::string& agent)
{
    const std::scoped_lock guard(_lock);
    const auto found = _peers.find(agent);
    if (found == _peers.end()) {
        return UCS_ERR_NO_ELEM;
    }
    close(found->second);
    _shown.drop_agent(found->second->instance);
    _peers.erase(found);
    return UCS_OK;
}

// Whoever still moves bytes of it fails. Its owner lets go of them: by one message, because of many the last ones would
// wait for room, and what waits is lost when the endpoint or the worker ends. It may be handled after the request for a
// window of the next connection, which has a higher number.
void worker::forget_windows_of(peer& ended)
{
    if (!ended.windows.empty() && ended.endpoint != nullptr && ended.failure == UCS_OK) {
        send(ended, {.kind = message_kind::drop_all, .window = _last_number});
    }
    for (const auto& each : ended.windows) {
        each->key.reset();
        each->status = UCS_ERR_NOT_CONNECTED;
    }
    ended.windows.clear();
    ended.failure = UCS_ERR_NOT_CONNECTED;
}

std::shared_ptr<peer> worker::connected_as(std::uint64_t instance) const
{
    const auto found =
        std::ranges::find_if(_peers, [&](const auto& each) { return each.second->instance == instance; });
    return found != _peers.end() ? found->second : nullptr;
}

// Null if there is none whose endpoint works, or if a transfer still uses it.
std::shared_ptr<peer> worker::peer_left_as(std::uint64_t instance)
{
    const auto found = std::ranges::find_if(_left, [&](const auto& each) {
        return each->instance == instance && each.use_count() == 1 && !each->has_lost_endpoint;
    });
    if (found == _left.end()) {
        return nullptr;
    }
    auto left = std::move(*found);
    _left.erase(found);
    return left;
}

// The error handler may be called until the endpoint is closed, so the peer stays until then.
//
// Without UCP's error handling, an endpoint cannot be closed at once (ucp.h: UCP_EP_CLOSE_FLAG_FORCE), and messages of
// the other process name it by its address, which UCX believes. So it stays until the worker ends.
void worker::close(const std::shared_ptr<peer>& ended)
{
    forget_windows_of(*ended);
    if (ended->process) {
        if (!std::ranges::contains(_left, ended)) {
            _left.push_back(ended);
        }
        return;
    }
    if (ended->endpoint == nullptr) {
        return; // a transfer that never ended has closed it
    }
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags        = UCP_EP_CLOSE_FLAG_FORCE;
    const auto call    = ucx()->ep_close(std::exchange(ended->endpoint, nullptr), &param);
    if (UCS_PTR_IS_PTR(call)) {
        _closing.emplace_back(ended, call);
    }
}

void worker::reap_closing()
{
    std::erase_if(_closing, [](const auto& each) {
        if (ucx()->request_status(each.second) == UCS_INPROGRESS) {
            return false;
        }
        ucx()->request_free(each.second);
        return true;
    });
}

std::shared_ptr<region> worker::add_region(void* address, std::size_t length, sharing how)
{
    const std::scoped_lock guard(_lock);
    auto made = std::make_shared<region>(++_last_number, address, length, how);
    _regions.emplace(made->info().id, made);
    return made;
}

ucs_status_t worker::end_region(const std::shared_ptr<region>& ended)
{
    const std::scoped_lock guard(_lock);
    const auto dropped = _shown.drop_region(ended->info().id);
    _regions.erase(ended->info().id);
    // What other agents have begun still uses it.
    const auto is_used = [&] { return !std::ranges::all_of(dropped, [](const auto& each) { return each.expired(); }); };
    const auto limit   = clock::now() + time_to_disconnect;
    while (is_used() && clock::now() < limit) {
        progress_messages();
    }
    if (is_used()) {
        log_error("another agent has begun to move bytes of deregistered memory and does not go on; they may still be "
                  "moved");
        _unended.push_back(ended);
        return UCS_ERR_BUSY;
    }
    ended->end();
    return UCS_OK;
}

std::size_t worker::num_shown() const
{
    const std::scoped_lock guard(_lock);
    return _shown.size();
}

ucs_status_t worker::receive(void* self, const void* /*header*/, std::size_t /*header_length*/, void* data,
                             std::size_t length, const ucp_am_recv_param_t* param)
{
    auto& receiver = *static_cast<worker*>(self);
    try {
        // Of a rendezvous nothing is there yet but the sender's word how long it is.
        const bool is_there = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
        auto content        = is_there ? decode({static_cast<const char*>(data), length}) : std::nullopt;
        if (!content) {
            log_error("{} bytes that are no message were received", length);
        } else if (content->kind == message_kind::greeting) {
            receiver.handle_greeting(*content);
        } else if (content->kind != message_kind::show && content->kind != message_kind::fetch) {
            receiver._received.push_back(std::move(*content));
        } else if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
            // Now, because UCX ends an endpoint that nobody here has made when its connection fails.
            receiver.answer(*content, param->reply_ep);
        }
    } catch (const std::bad_alloc&) {
        log_error("no memory for a message of {} bytes", length);
    }
    return UCS_OK;
}

void worker::start_sending(ucp_ep_h to, message content, const message_status& status, std::uint32_t flags)
{
    content.sender = _instance;
    auto sent      = std::make_unique<sent_message>(encode(content), status);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.cb.send      = end_message;
    param.user_data    = sent.get();
    param.flags        = UCP_AM_SEND_FLAG_EAGER | flags;
    const auto call    = ucx()->am_send(to, message_id, nullptr, 0, sent->bytes.data(), sent->bytes.size(), &param);
    if (UCS_PTR_IS_PTR(call)) {
        sent.release();
    } else {
        status->store(UCS_PTR_STATUS(call), std::memory_order_relaxed);
    }
}

message_status worker::send(ucp_ep_h to, message content)
{
    auto status = std::make_shared<std::atomic<ucs_status_t>>(UCS_INPROGRESS);
    start_sending(to, std::move(content), status, UCP_AM_SEND_FLAG_REPLY);
    return status;
}

message_status worker::send(peer& to, message content)
{
    if (to.is_joined) {
        return send(to.endpoint, std::move(content));
    }
    auto status = std::make_shared<std::atomic<ucs_status_t>>(UCS_INPROGRESS);
    to.waiting.emplace_back(std::move(content), status);
    return status;
}

void worker::answer(const message& asked, ucp_ep_h to)
{
    if (asked.kind == message_kind::show) {
        send(to, _shown.show(asked, _regions, _context));
    } else {
        send_fetched(asked, to);
    }
}

// It is short, so that it is one piece: UCX names the endpoint of the receiver in each piece of a longer message.
void worker::greet(const peer& to)
{
    start_sending(to.endpoint, {.kind = message_kind::greeting, .piece = to.ordinal, .bytes = _connection},
                  std::make_shared<std::atomic<ucs_status_t>>(UCS_INPROGRESS), 0);
}

void worker::handle_greeting(const message& greeting)
{
    const auto info = decode_connection(greeting.bytes);
    if (!info || info->instance != greeting.sender) {
        log_error("an agent connected with metadata that are not its own");
        return;
    }
    if (!may_share_memory(process_identity::own(), info->process)) {
        return; // endpoints between hosts need none
    }
    if (peers_with_endpoint_to(info->instance).size() < greeting.piece) {
        make_endpoint_back(*info);
    }
    for (const auto& each : peers_with_endpoint_to(info->instance)) {
        if (each->ordinal <= greeting.piece) {
            join(*each);
        }
    }
}

// It watches no process: that takes a descriptor, and the endpoint stays after the end of the process.
void worker::make_endpoint_back(const connection_info& info)
{
    if (has_ended(info.process)) {
        return;
    }
    const auto made = _left.emplace_back(std::make_shared<peer>());
    made->instance  = info.instance;
    if (const auto status = create_endpoint(*made, info, true); status != UCS_OK) {
        _left.pop_back();
        log_error("no endpoint to an agent that has connected ({})", static_cast<int>(status));
        return;
    }
    greet(*made);
}

void worker::join(peer& greeted)
{
    greeted.is_joined = true;
    for (auto& [content, status] : std::exchange(greeted.waiting, {})) {
        start_sending(greeted.endpoint, std::move(content), status, UCP_AM_SEND_FLAG_REPLY);
    }
}

void worker::handle(const message& content)
{
    switch (content.kind) {
    case message_kind::shown:
        handle_shown(content);
        break;
    case message_kind::drop:
        _shown.drop(content.sender, content.window);
        break;
    case message_kind::drop_all:
        _shown.drop_up_to(content.sender, content.window);
        break;
    case message_kind::moved:
        handle_moved(content);
        break;
    case message_kind::show:
    case message_kind::fetch:
    case message_kind::greeting:
        break; // answered when they came
    case message_kind::notice: {
        const std::scoped_lock guard(_notices_lock);
        _notices.emplace_back(content.name, content.bytes);
        break;
    }
    }
}

void worker::handle_shown(const message& answer)
{
    const auto owner = connected_as(answer.sender);
    if (owner == nullptr) {
        return; // disconnected meanwhile
    }
    const auto& windows = owner->windows;
    const auto found    = std::ranges::find(windows, answer.window, &remote_window::number);
    if (found == windows.end() || (*found)->status != UCS_INPROGRESS) {
        return;
    }
    remote_window& shown = **found;
    auto status          = told_end(answer.status);
    if (status == UCS_OK && answer.length != shown.layout->packed_length()) {
        status = UCS_ERR_INVALID_PARAM;
    }
    if (status == UCS_OK) {
        const std::string key = padded(answer.bytes);
        ucp_rkey_h unpacked   = nullptr;
        status                = ucx()->ep_rkey_unpack(owner->endpoint, key.data(), &unpacked);
        if (status == UCS_OK) {
            shown.key = remote_key(unpacked, ucx()->rkey_destroy);
        }
    }
    shown.way     = answer.way;
    shown.address = answer.address;
    shown.status  = status;
}

ucs_status_t worker::send_notice(const std::string& agent, const std::string& text)
{
    if (agent == _agent) {
        const std::scoped_lock guard(_notices_lock);
        _notices.emplace_back(agent, text);
        return UCS_OK;
    }
    const std::scoped_lock guard(_lock);
    const auto found = _peers.find(agent);
    if (found == _peers.end()) {
        return UCS_ERR_NO_ELEM;
    }
    if (found->second->failure != UCS_OK) {
        return found->second->failure;
    }
    const auto sent   = send(*found->second, {.kind = message_kind::notice, .name = _agent, .bytes = text});
    const auto status = sent->load(std::memory_order_relaxed);
    return status == UCS_INPROGRESS ? UCS_OK : status;
}

worker::notices worker::take_notices()
{
    if (const std::unique_lock guard(_lock, std::try_to_lock); guard.owns_lock()) {
        progress_locked();
    }
    const std::scoped_lock guard(_notices_lock);
    return std::exchange(_notices, {});
}

void worker::look_for_ended_neighbors()
{
    const auto now = clock::now();
    if (now - _last_look < time_between_looks) {
        return;
    }
    _last_look = now;
    for (const auto& [name, each] : _peers) {
        if (each->failure == UCS_OK && each->process && each->process->has_ended()) {
            each->failure = UCS_ERR_CONNECTION_RESET;
            each->waiting.clear();
        }
    }
    // To watch one takes a descriptor. A new connection brings its own.
    for (const auto& each : _left) {
        if (each.use_count() == 1) { // no transfer asks
            each->process.reset();
        }
    }
}

bool worker::progress()
{
    const std::scoped_lock guard(_lock);
    return progress_locked();
}

bool worker::progress_locked()
{
    const bool is_busy = progress_messages();
    reap_closing();
    reap_released();
    look_for_ended_neighbors();
    return progress_transfers() || is_busy;
}

bool worker::progress_messages()
{
    bool is_busy = false;
    for (int i = 0; i < rounds_of_progress && ucx()->worker_progress(_worker) != 0; ++i) {
        is_busy = true;
    }
    for (const auto& each : std::exchange(_received, {})) {
        handle(each);
        is_busy = true;
    }
    return is_busy;
}

} // namespace ucxl::nixl
