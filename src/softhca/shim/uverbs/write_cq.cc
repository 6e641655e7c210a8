// CREATE_COMP_CHANNEL, RESIZE_CQ and MODIFY_CQ.
#include <rdma/mlx5-abi.h>

#include <bit>

#include "call.h"
#include "prm/cq.h"
#include "softhca/shim/objects/queue_memory.h"
#include "softhca/shim/objects/verbs_objects.h"
#include "softhca/shim/sysfs/device_caps.h"
#include "write_commands.h"

namespace ucxl::softhca
{

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
        user_memory buffer;
        if (const int error = user_memory::pin(call.file, driver.buf_addr, entries * queue->entry_bytes,
                                               IB_UVERBS_ACCESS_LOCAL_WRITE, buffer);
            error != 0) {
            return error;
        }
        mailbox<prm::modify_cq_in> in(prm::command::modify_cq);
        in.set(prm::modify_cq_in::op_mod, resize_modifier);
        in.set(prm::modify_cq_in::cqn, queue->cqn);
        in.set(in.at(prm::modify_cq_in::cqc), prm::cqc::log_cq_size, log2_of(entries));
        in.set(prm::modify_cq_in::cq_umem_valid, 1);
        in.set(prm::modify_cq_in::cq_umem_id, buffer.id());
        if (const int error = call.file.run(in); error != 0) {
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
    mailbox<prm::modify_cq_in> in(prm::command::modify_cq);
    in.set(prm::modify_cq_in::cqn, queue->cqn);
    in.set(prm::modify_cq_in::modify_field_select,
           std::to_underlying(prm::cq_modify::cq_period) | std::to_underlying(prm::cq_modify::cq_max_count));
    const auto context = in.at(prm::modify_cq_in::cqc);
    in.set(context, prm::cqc::cq_period, request.attr.cq_period);
    in.set(context, prm::cqc::cq_max_count, request.attr.cq_count);
    return call.file.run(in);
}

} // namespace ucxl::softhca
