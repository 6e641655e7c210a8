// Queue pairs: CREATE and DESTROY. MODIFY and QUERY are in qp_attributes.cc.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <bit>
#include <cstddef>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "prm/qp.h"
#include "queue_memory.h"
#include "softhca/shim/objects/verbs.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint64_t send_block_bytes = 64;
constexpr std::uint64_t segment_bytes    = 16;
constexpr unsigned log_segment_bytes     = 4;
constexpr std::uint32_t no_bfreg         = 1U << 31;

constexpr std::uint32_t known_create_flags = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
                                             IB_UVERBS_QP_CREATE_SCATTER_FCS | IB_UVERBS_QP_CREATE_CVLAN_STRIPPING |
                                             IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING | IB_UVERBS_QP_CREATE_SQ_SIG_ALL;

// Flags of the driver. Scattering to CQEs may be requested and is not done.
constexpr std::uint32_t known_driver_flags = MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE |
                                             MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX |
                                             MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM;

constexpr std::uint32_t dc_flags = MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI;

struct qp_request {
    std::uint64_t user_handle = 0;
    std::uint64_t type        = 0;
    std::uint32_t flags       = 0;
    ib_uverbs_qp_cap limits{};
    mlx5_ib_create_qp driver{};
    pd_object* pd         = nullptr;
    cq_object* send_cq    = nullptr;
    cq_object* receive_cq = nullptr;
    srq_object* srq       = nullptr;

    bool is_target() const { return (driver.flags & dc_flags) == MLX5_QP_FLAG_TYPE_DCT; }
    bool has_receive_queue() const { return srq == nullptr && limits.max_recv_wr != 0; }
};

// Queue pairs of the driver are the two ends of dynamic connections.
int service_of(const qp_request& request, prm::qp_service& service)
{
    const std::uint32_t dc = request.driver.flags & dc_flags;
    switch (request.type) {
    case IB_UVERBS_QPT_RC:
        service = prm::qp_service::rc;
        return 0;
    case IB_UVERBS_QPT_UC:
        service = prm::qp_service::uc;
        return 0;
    case IB_UVERBS_QPT_UD:
        service = prm::qp_service::ud;
        return 0;
    case IB_UVERBS_QPT_RAW_PACKET:
    case IB_UVERBS_QPT_XRC_INI:
    case IB_UVERBS_QPT_XRC_TGT:
        return EOPNOTSUPP;
    case IB_UVERBS_QPT_DRIVER:
        service = prm::qp_service::dci;
        return dc == MLX5_QP_FLAG_TYPE_DCT || dc == MLX5_QP_FLAG_TYPE_DCI ? 0 : EINVAL;
    default:
        return EINVAL;
    }
}

int read_core_part(uverbs_call& call, qp_request& request)
{
    if (const int error = call.read(UVERBS_ATTR_CREATE_QP_TYPE, request.type); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_QP_USER_HANDLE, request.user_handle); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_QP_CAP, request.limits); error != 0) {
        return error;
    }
    if (const int error = call.read_flags(UVERBS_ATTR_CREATE_QP_FLAGS, known_create_flags, request.flags); error != 0) {
        return error;
    }
    request.pd         = call.object<pd_object>(UVERBS_ATTR_CREATE_QP_PD_HANDLE);
    request.send_cq    = call.object<cq_object>(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
    request.receive_cq = call.object<cq_object>(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
    request.srq        = call.object<srq_object>(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
    if (call.has(UVERBS_ATTR_CREATE_QP_SOURCE_QPN) ||
        (request.flags & ~std::uint32_t{IB_UVERBS_QP_CREATE_SQ_SIG_ALL}) != 0) {
        return EOPNOTSUPP;
    }
    return request.pd == nullptr || request.send_cq == nullptr || request.receive_cq == nullptr ? EINVAL : 0;
}

int read_driver_part(uverbs_call& call, qp_request& request)
{
    if (call.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_qp, sq_buf_addr)) {
        return EINVAL;
    }
    if (const int error = call.read_growing(UVERBS_ATTR_UHW_IN, &request.driver, sizeof(request.driver)); error != 0) {
        return error;
    }
    const mlx5_ib_create_qp& driver = request.driver;
    if ((driver.flags & ~known_driver_flags) != 0 || driver.reserved != 0) {
        return EINVAL;
    }
    // The program names doorbell pages by their numbers, because it allocates them one by one.
    if (request.is_target()) {
        return 0; // it has no queues
    }
    const bool good_page  = (driver.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) != 0;
    const bool good_sends = driver.sq_wqe_count == 0 || std::has_single_bit(driver.sq_wqe_count);
    const bool good_receives =
        !request.has_receive_queue() || (std::has_single_bit(driver.rq_wqe_count) &&
                                         driver.rq_wqe_shift >= log_segment_bytes && driver.rq_wqe_shift < 32);
    return good_page && good_sends && good_receives ? 0 : EINVAL;
}

// A target receives from a shared receive queue, and an initiator receives nothing.
int check_dynamic(const qp_request& request)
{
    if (request.is_target()) {
        return request.srq == nullptr ? EINVAL : 0;
    }
    return request.limits.max_recv_wr != 0 || request.limits.max_recv_sge != 0 ? EINVAL : 0;
}

int check_limits(device_file& file, const qp_request& request)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const std::uint32_t most          = 1U << caps.general().get(prm::hca_cap::log_max_qp_sz);
    const std::uint32_t receive_bytes = caps.general().get(prm::hca_cap::max_wqe_sz_rq);
    if (request.driver.sq_wqe_count > most || request.limits.max_recv_wr > most) {
        return EINVAL;
    }
    const bool too_long =
        request.has_receive_queue() &&
        (request.driver.rq_wqe_count > most || std::uint64_t{1} << request.driver.rq_wqe_shift > receive_bytes);
    return too_long ? EINVAL : 0;
}

void set_queues(mailbox<prm::create_qp_in>& input, const qp_request& request)
{
    const auto context = input.at(prm::create_qp_in::qpc);
    if (request.driver.sq_wqe_count != 0) {
        input.set(context, prm::qpc::log_sq_size, log2_of(request.driver.sq_wqe_count));
    } else {
        input.set(context, prm::qpc::no_sq, 1);
    }
    if (request.srq != nullptr) {
        input.set(context, prm::qpc::rq_type, prm::receive_queue_type::shared_rmp_xrq);
        input.set(context, prm::qpc::srqn_rmpn_xrqn, request.srq->srqn);
    } else if (request.has_receive_queue()) {
        input.set(context, prm::qpc::rq_type, prm::receive_queue_type::regular);
        input.set(context, prm::qpc::log_rq_size, log2_of(request.driver.rq_wqe_count));
        input.set(context, prm::qpc::log_rq_stride, request.driver.rq_wqe_shift - log_segment_bytes);
    } else {
        input.set(context, prm::qpc::rq_type, prm::receive_queue_type::zero_size);
    }
    if ((request.driver.flags & MLX5_QP_FLAG_DCI_STREAM) != 0) {
        input.set(context, prm::qpc::log_num_dci_stream_channels, request.driver.dci_streams.log_num_concurent);
        input.set(context, prm::qpc::log_num_dci_errored_streams, request.driver.dci_streams.log_num_errored);
    }
    input.set(context, prm::qpc::cqn_snd, request.send_cq->cqn);
    input.set(context, prm::qpc::cqn_rcv, request.receive_cq->cqn);
}

int pin_queues(device_file& file, const qp_request& request, pinned_memory& buffer, pinned_memory& doorbell)
{
    const std::uint64_t receives =
        request.has_receive_queue() ? std::uint64_t{request.driver.rq_wqe_count} << request.driver.rq_wqe_shift : 0;
    const std::uint64_t bytes = receives + send_block_bytes * request.driver.sq_wqe_count;
    if (bytes == 0) {
        return 0;
    }
    if (const int error = pinned_memory::pin(file, request.driver.buf_addr, bytes, 0, buffer); error != 0) {
        return error;
    }
    return pinned_memory::pin(file, request.driver.db_addr, doorbell_record_bytes, 0, doorbell);
}

int create_on_device(device_file& file, const qp_request& request, prm::qp_service service,
                     std::unique_ptr<qp_object>& made)
{
    pinned_memory buffer;
    pinned_memory doorbell;
    if (const int error = pin_queues(file, request, buffer, doorbell); error != 0) {
        return error;
    }
    mailbox<prm::create_qp_in> input(prm::command::create_qp);
    const auto context = input.at(prm::create_qp_in::qpc);
    set_queues(input, request);
    input.set(context, prm::qpc::st, service);
    input.set(context, prm::qpc::pm_state, prm::path_migration::migrated);
    input.set(context, prm::qpc::wq_signature, (request.driver.flags & MLX5_QP_FLAG_SIGNATURE) != 0 ? 1 : 0);
    input.set(context, prm::qpc::pd, request.pd->pdn);
    input.set(context, prm::qpc::uar_page, request.driver.bfreg_index);
    input.set(context, prm::qpc::user_index, request.driver.uidx);
    if (buffer.id() != 0) {
        input.set(context, prm::qpc::dbr_umem_valid, 1);
        input.set(context, prm::qpc::dbr_umem_id, doorbell.id());
        input.set(prm::create_qp_in::wq_umem_valid, 1);
        input.set(prm::create_qp_in::wq_umem_id, buffer.id());
    }
    prm::storage<prm::create_qp_out> output;
    if (const int error = file.run(input, output); error != 0) {
        return error;
    }
    made             = std::make_unique<qp_object>(file, *request.pd, (*output).get(prm::create_qp_out::qpn));
    made->buffer     = std::move(buffer);
    made->doorbell   = std::move(doorbell);
    made->service    = service;
    made->signal_all = (request.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0;
    made->send_cq.reset(request.send_cq);
    made->receive_cq.reset(request.receive_cq);
    made->srq.reset(request.srq);
    return 0;
}

// The device learns of a target when its state becomes RTR (qp_attributes.cc).
std::unique_ptr<qp_object> make_target(device_file& file, const qp_request& request)
{
    auto made          = std::make_unique<qp_object>(file, *request.pd, 0);
    made->service      = prm::qp_service::dci;
    made->target       = std::make_unique<dc_target>();
    auto& input        = made->target->command;
    const auto context = input.at(prm::create_dct_in::dct_context);
    input.set(context, prm::dctc::pd, request.pd->pdn);
    input.set(context, prm::dctc::srqn_xrqn, request.srq->srqn);
    input.set(context, prm::dctc::cqn, request.receive_cq->cqn);
    input.set(context, prm::dctc::dc_access_key, request.driver.access_key);
    input.set(context, prm::dctc::user_index, request.driver.uidx);
    made->receive_cq.reset(request.receive_cq);
    made->send_cq.reset(request.send_cq);
    made->srq.reset(request.srq);
    return made;
}

ib_uverbs_qp_cap actual_limits(const qp_request& request)
{
    ib_uverbs_qp_cap limits = request.limits;
    limits.max_recv_wr      = 0;
    limits.max_recv_sge     = 0;
    if (request.has_receive_queue()) {
        limits.max_recv_wr  = request.driver.rq_wqe_count;
        limits.max_recv_sge = static_cast<std::uint32_t>((1ULL << request.driver.rq_wqe_shift) / segment_bytes);
    }
    return limits;
}

int create_qp(uverbs_call& call)
{
    qp_request request;
    prm::qp_service service{};
    if (const int error = read_core_part(call, request); error != 0) {
        return error;
    }
    if (const int error = read_driver_part(call, request); error != 0) {
        return error;
    }
    if (const int error = service_of(request, service); error != 0) {
        return error;
    }
    if (const int error = service == prm::qp_service::dci ? check_dynamic(request) : 0; error != 0) {
        return error;
    }
    event_target events{.channel = call.file.async_events, .value = request.user_handle};
    if (const int error = call.channel_of(UVERBS_ATTR_CREATE_QP_EVENT_FD, event_format::async, events.channel);
        error != 0) {
        return error;
    }
    if (const int error = check_limits(call.file, request); error != 0) {
        return error;
    }
    std::unique_ptr<qp_object> made;
    if (request.is_target()) {
        made = make_target(call.file, request);
    } else if (const int error = create_on_device(call.file, request, service, made); error != 0) {
        return error;
    }
    made->limits = actual_limits(request);
    made->events = std::move(events);
    made->route_events();
    const ib_uverbs_qp_cap limits = made->limits;
    const std::uint32_t qpn       = made->qpn;
    call.create(std::move(made));
    if (const int error = call.write(UVERBS_ATTR_CREATE_QP_RESP_CAP, limits); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qpn); error != 0) {
        return error;
    }
    mlx5_ib_create_qp_resp driver{};
    driver.bfreg_index = no_bfreg;
    return call.write(UVERBS_ATTR_UHW_OUT, driver);
}

int destroy_qp(uverbs_call& call)
{
    auto* const queue_pair = call.object<qp_object>(UVERBS_ATTR_DESTROY_QP_HANDLE);
    if (const int error = queue_pair->destroy(); error != 0) {
        return error;
    }
    const ib_uverbs_destroy_qp_resp response{.events_reported = queue_pair->events.told};
    call.destroyed(*queue_pair);
    return call.write(UVERBS_ATTR_DESTROY_QP_RESP, response);
}

constexpr std::array create_attributes{
    new_handle(UVERBS_ATTR_CREATE_QP_HANDLE),
    handle(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, object_kind::none, presence::optional),
    handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, object_kind::pd, presence::optional),
    handle(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, object_kind::srq, presence::optional),
    handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, object_kind::cq, presence::optional),
    handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, object_kind::cq, presence::optional),
    handle(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, object_kind::none, presence::optional),
    input<std::uint64_t>(UVERBS_ATTR_CREATE_QP_USER_HANDLE),
    input<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_CAP),
    constant(UVERBS_ATTR_CREATE_QP_TYPE),
    flags(UVERBS_ATTR_CREATE_QP_FLAGS),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, presence::optional),
    descriptor(UVERBS_ATTR_CREATE_QP_EVENT_FD, presence::optional),
    output<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_RESP_CAP),
    output<std::uint32_t>(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM),
    driver_input,
    driver_output,
};

constexpr std::array destroy_attributes{
    handle(UVERBS_ATTR_DESTROY_QP_HANDLE, object_kind::qp),
    output<ib_uverbs_destroy_qp_resp>(UVERBS_ATTR_DESTROY_QP_RESP),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, create_attributes, create_qp},
    method_spec{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, destroy_attributes, destroy_qp},
};

} // namespace

std::span<const method_spec> qp_methods()
{
    return methods;
}

// The device has no multicast groups.
int write_attach_mcast(uverbs_call& call)
{
    ib_uverbs_attach_mcast request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    qp_object* queue_pair = nullptr;
    const int error       = call.find_object(request.qp_handle, queue_pair);
    return error != 0 ? error : EOPNOTSUPP;
}

int write_detach_mcast(uverbs_call& call)
{
    return write_attach_mcast(call);
}

} // namespace ucxl::softhca
