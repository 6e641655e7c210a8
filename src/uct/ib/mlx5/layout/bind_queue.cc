#include "bind_queue.h"

#include <algorithm>
#include <format>
#include <utility>

#include "capabilities.h"
#include "prm/wqe.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::chrono::seconds patience{30};
constexpr std::chrono::milliseconds between_questions{10};
constexpr unsigned polls_between_looks = 4096;

constexpr std::uint32_t inline_bytes = 832; // makes room for requests of nearly the longest length

// Of a send queue, which the device measures in blocks: max_qp_wr counts them. A request of ours takes at most as many.
constexpr std::uint32_t blocks_of_a_request = 16;

// A request of an RC queue pair holds at least the control and address segments and the inline data.
constexpr std::size_t longest_request(std::size_t inline_room)
{
    return std::min(max_request_bytes, (32 + inline_room) / 64 * 64);
}

// Null if the queue pair takes none.
mlx5dv_qp_ex* raw_requests_of(ibv_qp* qp)
{
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    mlx5dv_qp_ex* const raw   = extended == nullptr ? nullptr : mlx5dv_qp_ex_from_ibv_qp_ex(extended);
    return raw == nullptr || raw->wr_raw_wqe == nullptr ? nullptr : raw;
}

std::unexpected<error> takes_no_raw_requests()
{
    return fail(errc::unsupported, "the queue pair was not created for raw work requests");
}

// libmlx5 writes the first raw request that has no room over one that waits, or to address 0. For a memory window of
// more than 2 GiB it looks for room and then refuses to bind it, so this posts nothing either way.
bool has_room(ibv_qp* qp)
{
    ibv_mw window{};
    window.context = qp->context;
    window.pd      = qp->pd;
    window.type    = IBV_MW_TYPE_2;
    ibv_send_wr too_large{};
    too_large.opcode                   = IBV_WR_BIND_MW;
    too_large.bind_mw.mw               = &window;
    too_large.bind_mw.bind_info.length = std::uint64_t{1} << 32;
    ibv_send_wr* refused               = nullptr;
    return ibv_post_send(qp, &too_large, &refused) != ENOMEM;
}

// Whether an address of the link layer (LID) is not enough: with RoCE there is none, and the ports of virtual functions
// may ask for more (IBV_QPF_GRH_REQUIRED, ibv_modify_qp(3)).
bool needs_global_address(const ibv_port_attr& port)
{
    return port.link_layer != IBV_LINK_LAYER_INFINIBAND || (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
}

} // namespace

std::unexpected<error> device_has_failed()
{
    return fail(errc::io_error, "the device has failed for good; close what uses it and open it again");
}

void make_signaled(request_bytes& request)
{
    const prm::view<prm::wqe_control_segment> control(std::span(request.bytes).first<prm::wqe_unit_bytes>());
    control.put<prm::wqe_completion::always>(prm::wqe_control_segment::completion);
}

std::string words_of(const ibv_wc& done)
{
    return std::format("{} (vendor syndrome 0x{:x})", ibv_wc_status_str(done.status), done.vendor_err);
}

// Of the request that completed with this wr_id: the first one that failed.
std::string needs_at(std::span<const request_bytes> requests, std::uint64_t number)
{
    return number < requests.size() ? needs_of(requests[number]) : std::string("unknown");
}

result<void> post_raw(ibv_qp* qp, std::span<const request_bytes> requests, work_ids ids)
{
    mlx5dv_qp_ex* const raw = raw_requests_of(qp);
    if (raw == nullptr) {
        return takes_no_raw_requests();
    }
    const auto no_room = [&] {
        return fail(errc::no_resource, std::format("no room for {} requests in the send queue", requests.size()));
    };
    if (!has_room(qp)) {
        return no_room();
    }
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(extended);
    for (const request_bytes& request : requests) {
        extended->wr_id    = std::exchange(ids.first, ids.first + ids.step);
        extended->wr_flags = 0;
        mlx5dv_wr_raw_wqe(raw, request.bytes.data());
    }
    if (const int error = ibv_wr_complete(extended); error != 0) {
        return error == ENOMEM ? no_room() : fail_errno("posting bind requests", error);
    }
    return {};
}

result<void> check_room(ibv_qp* qp)
{
    if (raw_requests_of(qp) == nullptr) {
        return takes_no_raw_requests();
    }
    ibv_qp_attr attr{};
    ibv_qp_init_attr made{};
    if (const int error = ibv_query_qp(qp, &attr, IBV_QP_CAP, &made); error != 0) {
        return fail_errno("the queue pair of the caller", error);
    }
    if (made.qp_type != IBV_QPT_RC) {
        return fail(errc::unsupported, "qp is no reliable connection (IBV_QPT_RC)");
    }
    if (made.cap.max_inline_data < inline_bytes) {
        return fail(errc::unsupported, std::format("qp was created with max_inline_data {}, the least is {}",
                                                   made.cap.max_inline_data, inline_bytes));
    }
    return {};
}

result<bind_queue> bind_queue::open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth, bool atomics)
{
    bind_queue queue;
    queue._pd      = pd;
    queue._port    = port;
    queue._atomics = atomics;
    ibv_device_attr device{};
    if (const int error = ibv_query_device(pd->context, &device); error != 0) {
        return fail_errno("the limits of the bind queue", error);
    }
    const auto blocks = static_cast<std::uint32_t>(std::max(device.max_qp_wr, 1));
    queue._depth      = std::clamp(blocks / blocks_of_a_request, 1U, depth);
    UCXL_TRY(queue.make());
    return queue;
}

result<void> bind_queue::make()
{
    // A queue pair that has failed stays until there is another one: requests on it fail.
    cq_owner cq(ibv_create_cq(_pd->context, static_cast<int>(_depth), nullptr, nullptr, 0));
    if (cq == nullptr) {
        return fail_errno("a completion queue for binding");
    }
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type             = IBV_QPT_RC;
    wanted.send_cq             = cq.get();
    wanted.recv_cq             = cq.get();
    wanted.cap.max_send_wr     = _depth;
    wanted.cap.max_send_sge    = 1;
    wanted.cap.max_inline_data = inline_bytes;
    wanted.pd                  = _pd;
    wanted.comp_mask           = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags      = IBV_QP_EX_WITH_RDMA_WRITE | (_atomics ? IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD : 0);
    mlx5dv_qp_init_attr raw{};
    raw.comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    raw.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE;
    raw.create_flags   = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE; // which indirect keys do not have
    qp_owner qp(mlx5dv_create_qp(_pd->context, &wanted, &raw));
    if (qp == nullptr) {
        return fail_errno("a queue pair for binding");
    }
    UCXL_TRY(connect(qp.get()));
    _qp          = std::move(qp); // ends the old one, which uses the old completion queue
    _cq          = std::move(cq);
    _max_request = longest_request(wanted.cap.max_inline_data);
    _is_lost     = false;
    return {};
}

result<void> bind_queue::connect(ibv_qp* qp) const
{
    ibv_port_attr port{};
    if (const int error = ibv_query_port(_pd->context, _port, &port); error != 0) {
        return fail_errno("the port of the bind queue", error);
    }
    if (port.state != IBV_PORT_ACTIVE) {
        // It may come up later.
        return fail(errc::io_error, std::format("port {} is not active, and the bind queue is connected through it "
                                                "(state {})",
                                                _port, ibv_port_state_str(port.state)));
    }
    ibv_qp_attr attr{};
    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = _port;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    attr.qp_access_flags |= _atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0; // the kernel refuses it where there are none
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0) {
        return fail_errno("the bind queue to INIT", error);
    }
    attr                    = {};
    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = port.active_mtu;
    attr.dest_qp_num        = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer      = 12;
    attr.ah_attr.port_num   = _port;
    attr.ah_attr.dlid       = port.lid;
    if (needs_global_address(port)) {
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.hop_limit = 1;
        ibv_gid& address           = attr.ah_attr.grh.dgid;
        if (ibv_query_gid(_pd->context, _port, 0, &address) != 0) {
            return fail_errno("the address of the bind queue's port");
        }
        if (std::ranges::all_of(address.raw, [](std::uint8_t byte) { return byte == 0; })) {
            return fail(errc::unsupported,
                        std::format("port {} has no address (GID): RoCE may be off for this function "
                                    "of the card",
                                    _port));
        }
    }
    error = ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0) {
        return fail_errno("the bind queue to RTR", error);
    }
    attr               = {};
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = 14;
    attr.retry_cnt     = 7;
    attr.rnr_retry     = 7;
    attr.max_rd_atomic = 1;
    constexpr int ready =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    error = ibv_modify_qp(qp, &attr, ready);
    return error == 0 ? result<void>() : fail_errno("the bind queue to RTS", error);
}

result<void> bind_queue::renew()
{
    if (has_failed()) {
        return device_has_failed();
    }
    return _is_lost ? make() : result<void>();
}

result<void> bind_queue::post(std::span<request_bytes> requests)
{
    const bool was_lost = _is_lost;
    UCXL_TRY(renew());
    if (was_lost) {
        for (request_bytes& request : requests) {
            const prm::view<prm::wqe_control_segment> control(std::span(request.bytes).first<prm::wqe_unit_bytes>());
            (void)control.set(prm::wqe_control_segment::qpn, qpn() & 0xffffff);
        }
    }
    make_signaled(requests.back());
    return post_raw(_qp.get(), requests, {.first = 0, .step = 1});
}

result<void> bind_queue::keep_waiting(clock::time_point since)
{
    if (has_failed()) {
        return device_has_failed();
    }
    const auto now = clock::now();
    if (now - since > patience) {
        return fail(errc::timed_out, "a bind request did not complete");
    }
    // A failed device tells only those who listen to its events, and a library must not listen.
    if (now - std::max(since, _asked) > between_questions) {
        _asked = now;
        if (!answers_commands(_pd->context)) {
            give_up();
            return device_has_failed();
        }
    }
    return {};
}

result<ibv_wc> bind_queue::wait()
{
    clock::time_point begin{}; // when it turned out that it takes long
    ibv_wc completion{};
    for (unsigned polls = 1;; ++polls) {
        const int found = ibv_poll_cq(_cq.get(), 1, &completion);
        if (found > 0) {
            return completion;
        }
        if (found < 0) {
            return fail_errno("polling for bind requests", -found);
        }
        if (polls % polls_between_looks == 0) {
            begin = begin == clock::time_point{} ? clock::now() : begin;
            UCXL_TRY(keep_waiting(begin));
        }
    }
}

// The rest of a failed batch was flushed or cannot be identified. A new queue holds none of it.
result<ibv_wc> bind_queue::finish(const result<void>& posted)
{
    result<ibv_wc> done = posted ? wait() : std::unexpected(posted.error());
    if ((done && done->status == IBV_WC_SUCCESS) || has_failed()) {
        return done;
    }
    if (auto again = make(); !again) {
        _is_lost = true;
        return fail(again.error().code,
                    std::format("{}, and no new queue: {}", done ? "a request failed" : done.error().message,
                                again.error().message));
    }
    return done;
}

result<void> bind_queue::execute(std::span<request_bytes> requests)
{
    if (has_failed()) {
        return device_has_failed();
    }
    while (!requests.empty()) {
        const auto batch = requests.first(std::min<std::size_t>(requests.size(), _depth));
        const auto done  = UCXL_TRY(finish(post(batch)));
        if (done.status != IBV_WC_SUCCESS) {
            return fail(errc::io_error,
                        std::format("a bind request ({}) failed: {}", needs_at(batch, done.wr_id), words_of(done)));
        }
        requests = requests.subspan(batch.size());
    }
    return {};
}

bool bind_queue::note(const ibv_wc& done, std::string_view what)
{
    const bool is_done = done.status == IBV_WC_SUCCESS;
    if (!is_done) {
        _refusal = std::format("{}: {}", what, words_of(done));
    }
    return is_done;
}

result<bool> bind_queue::attempt(std::span<request_bytes> requests)
{
    const ibv_wc done = UCXL_TRY(finish(post(requests)));
    return note(done, needs_at(requests, done.wr_id));
}

result<bool> bind_queue::attempt(void (*fill)(ibv_qp_ex*, const ibv_sge&, std::uint64_t, std::uint32_t, std::uint64_t),
                                 const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey, std::uint64_t operand)
{
    UCXL_TRY(renew());
    ibv_qp_ex* const qp = ibv_qp_to_qp_ex(_qp.get());
    ibv_wr_start(qp);
    qp->wr_id    = 0;
    qp->wr_flags = IBV_SEND_SIGNALED;
    fill(qp, local, remote, rkey, operand);
    const int error   = ibv_wr_complete(qp);
    const ibv_wc done = UCXL_TRY(finish(error == 0 ? result<void>() : fail_errno("posting to the bind queue", error)));
    return note(done, "use");
}

result<bool> bind_queue::attempt_write(const ibv_sge& from, std::uint64_t to, std::uint32_t rkey)
{
    const auto fill = [](ibv_qp_ex* qp, const ibv_sge& local, std::uint64_t remote, std::uint32_t key, std::uint64_t) {
        ibv_wr_rdma_write(qp, key, remote);
        ibv_wr_set_sge(qp, local.lkey, local.addr, local.length);
    };
    return attempt(fill, from, to, rkey, 0);
}

result<bool> bind_queue::attempt_add(const ibv_sge& result, std::uint64_t to, std::uint32_t rkey, std::uint64_t addend)
{
    const auto fill = [](ibv_qp_ex* qp, const ibv_sge& local, std::uint64_t remote, std::uint32_t key,
                         std::uint64_t operand) {
        ibv_wr_atomic_fetch_add(qp, key, remote, operand);
        ibv_wr_set_sge(qp, local.lkey, local.addr, local.length);
    };
    return attempt(fill, result, to, rkey, addend);
}

} // namespace ucxl::mlx5
