// Completion queues and their channels.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <bit>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "prm/cq.h"
#include "queue_memory.h"
#include "softhca/shim/objects/verbs.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t known_create_flags =
    IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
constexpr std::uint32_t known_driver_flags = MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD |
                                             MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
                                             MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;

struct cq_request {
    std::uint32_t entries     = 0; // as requested, then as made
    std::uint32_t vector      = 0;
    std::uint32_t flags       = 0;
    std::uint32_t uar         = 0;
    std::uint64_t user_handle = 0;
    mlx5_ib_create_cq driver{};
};

// The number of entries of a queue: a power of two, one more than usable.
int round_entries(device_file& file, std::uint32_t asked, std::uint32_t& entries)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const std::uint64_t most = std::uint64_t{1} << caps.general().get(prm::hca_cap::log_max_cq_sz);
    if (asked > most || std::bit_ceil(std::uint64_t{asked} + 1) > most) {
        return EINVAL;
    }
    entries = std::bit_ceil(asked + 1);
    return 0;
}

int check_driver_part(const mlx5_ib_create_cq& driver)
{
    if ((driver.flags & ~known_driver_flags) != 0 || (driver.cqe_size != 64 && driver.cqe_size != 128) ||
        driver.reserved0 != 0 || driver.reserved1 != 0) {
        return EINVAL;
    }
    if ((driver.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0 && driver.cqe_size != 128) {
        return EOPNOTSUPP;
    }
    const bool unknown = driver.cqe_comp_en != 0 || (driver.flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS) != 0;
    return unknown ? EOPNOTSUPP : 0;
}

int read_request(uverbs_call& call, cq_request& request)
{
    if (const int error = call.read(UVERBS_ATTR_CREATE_CQ_CQE, request.entries); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, request.vector); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, request.user_handle); error != 0) {
        return error;
    }
    if (const int error = call.read_flags(UVERBS_ATTR_CREATE_CQ_FLAGS, known_create_flags, request.flags); error != 0) {
        return error;
    }
    if (request.vector >= completion_vectors) {
        return EINVAL;
    }
    if (call.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_cq, flags)) {
        return EINVAL;
    }
    if (const int error = call.read(UVERBS_ATTR_UHW_IN, request.driver); error != 0) {
        return error;
    }
    if (const int error = check_driver_part(request.driver); error != 0) {
        return error;
    }
    if ((request.driver.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) != 0) {
        request.uar = request.driver.uar_page_index;
    } else if (call.has(MLX5_IB_ATTR_CREATE_CQ_UAR_INDEX)) {
        return call.read(MLX5_IB_ATTR_CREATE_CQ_UAR_INDEX, request.uar);
    } else {
        return EINVAL;
    }
    return 0;
}

prm::cqe_size entry_size(const mlx5_ib_create_cq& driver)
{
    if (driver.cqe_size == 64) {
        return prm::cqe_size::bytes_64;
    }
    const bool padded = (driver.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0;
    return padded ? prm::cqe_size::bytes_128_padded : prm::cqe_size::bytes_128;
}

int create_on_device(device_file& file, const cq_request& request, std::unique_ptr<cq_object>& made)
{
    pinned_memory buffer;
    pinned_memory doorbell;
    const std::uint64_t bytes = std::uint64_t{request.entries} * request.driver.cqe_size;
    if (const int error =
            pinned_memory::pin(file, request.driver.buf_addr, bytes, IB_UVERBS_ACCESS_LOCAL_WRITE, buffer);
        error != 0) {
        return error;
    }
    if (const int error = pinned_memory::pin(file, request.driver.db_addr, doorbell_record_bytes,
                                             IB_UVERBS_ACCESS_LOCAL_WRITE, doorbell);
        error != 0) {
        return error;
    }
    mailbox<prm::create_cq_in> input(prm::command::create_cq);
    const auto context = input.at(prm::create_cq_in::cqc);
    input.set(context, prm::cqc::cqe_sz, entry_size(request.driver));
    input.set(context, prm::cqc::log_cq_size, log2_of(request.entries));
    input.set(context, prm::cqc::uar_page, request.uar);
    input.set(context, prm::cqc::c_eqn, request.vector);
    input.set(context, prm::cqc::oi, (request.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0 ? 1 : 0);
    input.set(context, prm::cqc::dbr_umem_valid, 1);
    input.set(context, prm::cqc::dbr_umem_id, doorbell.id());
    input.set(prm::create_cq_in::cq_umem_valid, 1);
    input.set(prm::create_cq_in::cq_umem_id, buffer.id());
    prm::storage<prm::create_cq_out> output;
    if (const int error = file.run(input, output); error != 0) {
        return error;
    }
    made              = std::make_unique<cq_object>(file, (*output).get(prm::create_cq_out::cqn));
    made->buffer      = std::move(buffer);
    made->doorbell    = std::move(doorbell);
    made->entries     = request.entries;
    made->entry_bytes = request.driver.cqe_size;
    return 0;
}

int create_cq(uverbs_call& call)
{
    cq_request request;
    if (const int error = read_request(call, request); error != 0) {
        return error;
    }
    event_target completions{.channel = {}, .value = request.user_handle};
    event_target errors{.channel = call.file.async_events, .value = request.user_handle};
    if (const int error =
            call.channel_of(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, event_format::completion, completions.channel);
        error != 0) {
        return error;
    }
    if (const int error = call.channel_of(UVERBS_ATTR_CREATE_CQ_EVENT_FD, event_format::async, errors.channel);
        error != 0) {
        return error;
    }
    if (const int error = round_entries(call.file, request.entries, request.entries); error != 0) {
        return error;
    }
    std::unique_ptr<cq_object> made;
    if (const int error = create_on_device(call.file, request, made); error != 0) {
        return error;
    }
    made->completions = std::move(completions);
    made->errors      = std::move(errors);
    made->route_events();
    const std::uint32_t cqn    = made->cqn;
    const std::uint32_t usable = made->entries - 1;
    call.create(std::move(made));
    if (const int error = call.write(UVERBS_ATTR_CREATE_CQ_RESP_CQE, usable); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_UHW_OUT, cqn);
}

int destroy_cq(uverbs_call& call)
{
    auto* const queue = call.object<cq_object>(UVERBS_ATTR_DESTROY_CQ_HANDLE);
    if (const int error = queue->destroy(); error != 0) {
        return error;
    }
    const ib_uverbs_destroy_cq_resp response{.comp_events_reported  = queue->completions.told,
                                             .async_events_reported = queue->errors.told};
    call.destroyed(*queue);
    return call.write(UVERBS_ATTR_DESTROY_CQ_RESP, response);
}

constexpr std::array create_attributes{
    new_handle(UVERBS_ATTR_CREATE_CQ_HANDLE),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_CQE),
    input<std::uint64_t>(UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
    descriptor(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, presence::optional),
    input<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
    flags(UVERBS_ATTR_CREATE_CQ_FLAGS),
    output<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE),
    descriptor(UVERBS_ATTR_CREATE_CQ_EVENT_FD, presence::optional),
    input<std::uint32_t>(MLX5_IB_ATTR_CREATE_CQ_UAR_INDEX, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array destroy_attributes{
    handle(UVERBS_ATTR_DESTROY_CQ_HANDLE, object_kind::cq),
    output<ib_uverbs_destroy_cq_resp>(UVERBS_ATTR_DESTROY_CQ_RESP),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, create_attributes, create_cq},
    method_spec{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, destroy_attributes, destroy_cq},
};

} // namespace

std::span<const method_spec> cq_methods()
{
    return methods;
}

namespace
{

constexpr std::uint32_t moderation      = 1;     // IB_CQ_MODERATE
constexpr std::uint32_t most_period     = 0xfff; // microseconds
constexpr std::uint16_t resize_modifier = 1;

} // namespace

int write_create_comp_channel(uverbs_call& call)
{
    ib_uverbs_create_comp_channel request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    if (const int error = call.create_channel(event_format::completion); error != 0) {
        return error;
    }
    const auto fd = static_cast<std::uint32_t>(call.made_channel()->channel().reader);
    return call.respond(ib_uverbs_create_comp_channel_resp{.fd = fd});
}

int write_resize_cq(uverbs_call& call)
{
    ib_uverbs_resize_cq request{};
    mlx5_ib_resize_cq driver{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_UHW_IN, driver); error != 0) {
        return error;
    }
    cq_object* queue = nullptr;
    if (const int error = call.find_object(request.cq_handle, queue); error != 0) {
        return error;
    }
    device_caps caps;
    if (const int error = caps.query(call.file, prm::cap_page::general); error != 0) {
        return error;
    }
    if (caps.general().get(prm::hca_cap::cq_resize) == 0) {
        return EOPNOTSUPP;
    }
    const std::uint64_t most    = std::uint64_t{1} << caps.general().get(prm::hca_cap::log_max_cq_sz);
    const std::uint64_t entries = std::bit_ceil(std::uint64_t{request.cqe} + 1);
    if (request.cqe < 1 || entries > most + 1 || driver.reserved0 != 0 || driver.reserved1 != 0 ||
        driver.cqe_size != queue->entry_bytes) {
        return EINVAL;
    }
    if (entries != queue->entries) {
        pinned_memory buffer;
        if (const int error = pinned_memory::pin(call.file, driver.buf_addr, entries * queue->entry_bytes,
                                                 IB_UVERBS_ACCESS_LOCAL_WRITE, buffer);
            error != 0) {
            return error;
        }
        mailbox<prm::modify_cq_in> input(prm::command::modify_cq);
        input.set(prm::modify_cq_in::op_mod, resize_modifier);
        input.set(prm::modify_cq_in::cqn, queue->cqn);
        input.set(input.at(prm::modify_cq_in::cqc), prm::cqc::log_cq_size, log2_of(entries));
        input.set(prm::modify_cq_in::cq_umem_valid, 1);
        input.set(prm::modify_cq_in::cq_umem_id, buffer.id());
        if (const int error = call.file.run(input); error != 0) {
            return error;
        }
        queue->buffer  = std::move(buffer);
        queue->entries = static_cast<std::uint32_t>(entries);
    }
    ib_uverbs_resize_cq_resp response{};
    response.cqe = queue->entries - 1;
    return call.respond(response);
}

int write_modify_cq(uverbs_call& call)
{
    ib_uverbs_ex_modify_cq request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    if (request.attr_mask == 0 || request.reserved != 0) {
        return EINVAL;
    }
    if (request.attr_mask > moderation) {
        return EOPNOTSUPP;
    }
    cq_object* queue = nullptr;
    if (const int error = call.find_object(request.cq_handle, queue); error != 0) {
        return error;
    }
    device_caps caps;
    if (const int error = caps.query(call.file, prm::cap_page::general); error != 0) {
        return error;
    }
    if (caps.general().get(prm::hca_cap::cq_moderation) == 0) {
        return EOPNOTSUPP;
    }
    if (request.attr.cq_period > most_period) {
        return EINVAL;
    }
    mailbox<prm::modify_cq_in> input(prm::command::modify_cq);
    input.set(prm::modify_cq_in::cqn, queue->cqn);
    input.set(prm::modify_cq_in::modify_field_select,
              std::to_underlying(prm::cq_modify::cq_period) | std::to_underlying(prm::cq_modify::cq_max_count));
    const auto context = input.at(prm::modify_cq_in::cqc);
    input.set(context, prm::cqc::cq_period, request.attr.cq_period);
    input.set(context, prm::cqc::cq_max_count, request.attr.cq_count);
    return call.file.run(input);
}

} // namespace ucxl::softhca
