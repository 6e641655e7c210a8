// Shared receive queues.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <bit>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "prm/rq.h"
#include "queue_memory.h"
#include "softhca/shim/objects/verbs.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint64_t segment_bytes   = 16; // the link to the next entry, and each SGE
constexpr std::uint64_t min_entry_bytes = 32;
constexpr std::uint32_t attribute_size  = 1U << 0; // IB_SRQ_MAX_WR
constexpr std::uint32_t attribute_limit = 1U << 1; // IB_SRQ_LIMIT

struct srq_request {
    std::uint64_t user_handle = 0;
    std::uint64_t type        = IB_UVERBS_SRQT_BASIC;
    std::uint32_t max_wr      = 0;
    std::uint32_t max_sge     = 0;
    mlx5_ib_create_srq driver{};
};

int read_request(uverbs_call& call, srq_request& request)
{
    if (const int error = call.read(UVERBS_ATTR_CREATE_SRQ_TYPE, request.type); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, request.user_handle); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_SRQ_MAX_WR, request.max_wr); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, request.max_sge); error != 0) {
        return error;
    }
    if (request.type > IB_UVERBS_SRQT_TM) {
        return EINVAL;
    }
    if (request.type != IB_UVERBS_SRQT_BASIC) {
        return EOPNOTSUPP;
    }
    if (call.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_srq, uidx)) {
        return EINVAL;
    }
    if (const int error = call.read_growing(UVERBS_ATTR_UHW_IN, &request.driver, sizeof(request.driver)); error != 0) {
        return error;
    }
    if (request.driver.reserved0 != 0 || request.driver.reserved1 != 0) {
        return EINVAL;
    }
    return (request.driver.flags & MLX5_SRQ_FLAG_SIGNATURE) != 0 ? EOPNOTSUPP : 0;
}

int check_limits(device_file& file, const srq_request& request)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const auto general            = caps.general();
    const std::uint64_t most      = std::uint64_t{1} << general.get(prm::hca_cap::log_max_srq_sz);
    const std::uint64_t most_sges = general.get(prm::hca_cap::max_wqe_sz_rq) / segment_bytes - 1;
    return request.max_wr >= most || request.max_sge > most_sges ? EINVAL : 0;
}

int create_on_device(device_file& file, pd_object& pd, const srq_request& request, std::unique_ptr<srq_object>& made)
{
    const std::uint64_t entries     = std::bit_ceil(std::uint64_t{request.max_wr} + 1);
    const std::uint64_t entry_bytes = std::bit_ceil(std::max(min_entry_bytes, segment_bytes * (1 + request.max_sge)));
    pinned_memory buffer;
    pinned_memory doorbell;
    if (const int error = pinned_memory::pin(file, request.driver.buf_addr, entries * entry_bytes, 0, buffer);
        error != 0) {
        return error;
    }
    if (const int error = pinned_memory::pin(file, request.driver.db_addr, doorbell_record_bytes, 0, doorbell);
        error != 0) {
        return error;
    }
    mailbox<prm::create_rmp_in> input(prm::command::create_rmp);
    const auto context = input.at(prm::create_rmp_in::rmp_context);
    input.set(context, prm::rmpc::state, prm::rmp_state::ready);
    const auto queue = context.at(prm::rmpc::wq);
    input.set(queue, prm::wq::wq_type, prm::wq_type::linked_list);
    input.set(queue, prm::wq::pd, pd.pdn);
    input.set(queue, prm::wq::log_wq_stride, log2_of(entry_bytes));
    input.set(queue, prm::wq::log_wq_sz, log2_of(entries));
    input.set(queue, prm::wq::dbr_umem_valid, 1);
    input.set(queue, prm::wq::dbr_umem_id, doorbell.id());
    input.set(queue, prm::wq::wq_umem_valid, 1);
    input.set(queue, prm::wq::wq_umem_id, buffer.id());
    prm::storage<prm::create_rmp_out> output;
    if (const int error = file.run(input, output); error != 0) {
        return error;
    }
    made           = std::make_unique<srq_object>(file, pd, (*output).get(prm::create_rmp_out::rmpn));
    made->buffer   = std::move(buffer);
    made->doorbell = std::move(doorbell);
    made->entries  = static_cast<std::uint32_t>(entries);
    made->max_sges = static_cast<std::uint32_t>(entry_bytes / segment_bytes - 1);
    return 0;
}

int create_srq(uverbs_call& call)
{
    srq_request request;
    if (const int error = read_request(call, request); error != 0) {
        return error;
    }
    event_target events{.channel = call.file.async_events, .value = request.user_handle};
    if (const int error = call.channel_of(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, event_format::async, events.channel);
        error != 0) {
        return error;
    }
    if (const int error = check_limits(call.file, request); error != 0) {
        return error;
    }
    std::unique_ptr<srq_object> made;
    auto* const pd = call.object<pd_object>(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
    if (const int error = create_on_device(call.file, *pd, request, made); error != 0) {
        return error;
    }
    made->events = std::move(events);
    made->route_events();
    const std::uint32_t srqn   = made->srqn;
    const std::uint32_t usable = made->entries - 1;
    const std::uint32_t sges   = made->max_sges;
    call.create(std::move(made));
    if (const int error = call.write(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, usable); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, sges); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, srqn); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_UHW_OUT, srqn);
}

int destroy_srq(uverbs_call& call)
{
    auto* const queue = call.object<srq_object>(UVERBS_ATTR_DESTROY_SRQ_HANDLE);
    if (const int error = queue->destroy(); error != 0) {
        return error;
    }
    const ib_uverbs_destroy_srq_resp response{.events_reported = queue->events.told};
    call.destroyed(*queue);
    return call.write(UVERBS_ATTR_DESTROY_SRQ_RESP, response);
}

constexpr std::array create_attributes{
    new_handle(UVERBS_ATTR_CREATE_SRQ_HANDLE),
    handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, object_kind::pd),
    constant(UVERBS_ATTR_CREATE_SRQ_TYPE),
    input<std::uint64_t>(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_WR),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_LIMIT),
    handle(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, object_kind::none, presence::optional),
    handle(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, object_kind::cq, presence::optional),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, presence::optional),
    descriptor(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, presence::optional),
    output<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR),
    output<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE),
    output<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array destroy_attributes{
    handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE, object_kind::srq),
    output<ib_uverbs_destroy_srq_resp>(UVERBS_ATTR_DESTROY_SRQ_RESP),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, create_attributes, create_srq},
    method_spec{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, destroy_attributes, destroy_srq},
};

} // namespace

std::span<const method_spec> srq_methods()
{
    return methods;
}

int write_modify_srq(uverbs_call& call)
{
    ib_uverbs_modify_srq request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    srq_object* queue = nullptr;
    if (const int error = call.find_object(request.srq_handle, queue); error != 0) {
        return error;
    }
    // The size of a queue cannot be changed.
    if ((request.attr_mask & attribute_size) != 0) {
        return EINVAL;
    }
    if ((request.attr_mask & attribute_limit) == 0) {
        return 0;
    }
    if (request.srq_limit >= queue->entries) {
        return EINVAL;
    }
    mailbox<prm::modify_rmp_in> input(prm::command::modify_rmp);
    input.set(prm::modify_rmp_in::rmp_state, prm::rmp_state::ready);
    input.set(prm::modify_rmp_in::rmpn, queue->srqn);
    input.set(prm::modify_rmp_in::modify_bitmask, 1);
    const auto context = input.at(prm::modify_rmp_in::rmp_context);
    input.set(context, prm::rmpc::state, prm::rmp_state::ready);
    input.set(context.at(prm::rmpc::wq), prm::wq::lwm, request.srq_limit);
    return call.file.run(input);
}

int write_query_srq(uverbs_call& call)
{
    ib_uverbs_query_srq request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    srq_object* queue = nullptr;
    if (const int error = call.find_object(request.srq_handle, queue); error != 0) {
        return error;
    }
    mailbox<prm::plain_rmp_in> input(prm::command::query_rmp);
    input.set(prm::plain_rmp_in::rmpn, queue->srqn);
    prm::storage<prm::query_rmp_out> output;
    if (const int error = call.file.run(input, output); error != 0) {
        return error;
    }
    ib_uverbs_query_srq_resp response{};
    response.max_wr    = queue->entries - 1;
    response.max_sge   = queue->max_sges;
    response.srq_limit = (*output).at(prm::query_rmp_out::rmp_context).at(prm::rmpc::wq).get(prm::wq::lwm);
    return call.respond(response);
}

} // namespace ucxl::softhca
