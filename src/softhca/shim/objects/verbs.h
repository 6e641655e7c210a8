// The objects of verbs, as the kernel's part keeps them.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "dc_target.h"
#include "device_file.h"
#include "event_file.h"
#include "pinned_memory.h"
#include "prm/qpc.h"
#include "uobject.h"

namespace ucxl::softhca
{

class pd_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::pd;

    pd_object(device_file& opened, std::uint32_t number) : uobject(own_kind), file(opened), pdn(number) {}

    device_file& file;
    const std::uint32_t pdn;

private:
    int release() override;
};

class dm_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::dm;

    dm_object(device_file& opened, std::uint64_t place, std::uint64_t bytes)
        : uobject(own_kind), file(opened), offset(place), length(bytes)
    {
    }

    device_file& file;
    const std::uint64_t offset; // in device memory
    const std::uint64_t length;

private:
    int release() override;
};

// A memory region or a memory window.
class key_object final : public uobject
{
public:
    key_object(object_kind kind, device_file& opened, pd_object& pd, std::uint32_t key)
        : uobject(kind), file(opened), domain(&pd), mkey(key)
    {
    }

    bool is_key() const override { return true; }

    device_file& file;
    reference<pd_object> domain;
    reference<dm_object> device_memory;
    pinned_memory memory;
    std::uint32_t mkey; // with its variant byte
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
    std::uint64_t iova    = 0;
    std::uint32_t access  = 0;

private:
    int release() override;
};

class cq_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::cq;

    cq_object(device_file& opened, std::uint32_t number) : uobject(own_kind), file(opened), cqn(number) {}

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    const std::uint32_t cqn;
    pinned_memory buffer;
    pinned_memory doorbell;
    event_target completions;
    event_target errors;
    std::uint32_t entries     = 0;
    std::uint32_t entry_bytes = 0;

private:
    int release() override;
};

class srq_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::srq;

    srq_object(device_file& opened, pd_object& pd, std::uint32_t number)
        : uobject(own_kind), file(opened), domain(&pd), srqn(number)
    {
    }

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    reference<pd_object> domain;
    const std::uint32_t srqn;
    pinned_memory buffer;
    pinned_memory doorbell;
    event_target events;
    std::uint32_t entries  = 0;
    std::uint32_t max_sges = 0;

private:
    int release() override;
};

class qp_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::qp;

    qp_object(device_file& opened, pd_object& pd, std::uint32_t number)
        : uobject(own_kind), file(opened), domain(&pd), qpn(number)
    {
    }

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    reference<pd_object> domain;
    reference<cq_object> send_cq;
    reference<cq_object> receive_cq;
    reference<srq_object> srq;
    std::uint32_t qpn; // of a DC target 0 before its state is RTR
    pinned_memory buffer;
    pinned_memory doorbell;
    event_target events;
    std::unique_ptr<dc_target> target; // of a DC target, which is no queue pair to the device
    prm::qp_service service = prm::qp_service::rc;
    ib_uverbs_qp_cap limits{};
    bool signal_all               = false;
    std::uint32_t state           = 0; // IBV_QPS_*
    std::uint32_t port            = 0;
    std::uint32_t access          = 0; // as last requested, with or without responder resources
    std::uint32_t responder_reads = 0; // max_dest_rd_atomic

private:
    int release() override;
    int release_target();
};

} // namespace ucxl::softhca
