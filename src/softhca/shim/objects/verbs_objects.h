// The objects of verbs, as the kernel's part keeps them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "device_file.h"
#include "event_target.h"
#include "uobject.h"

namespace ucxl::softhca
{

// Memory of the program that the device may use: a UMEM.
class user_memory
{
public:
    user_memory() = default;
    user_memory(user_memory&& other) noexcept : _file(other._file), _id(std::exchange(other._id, 0)) {}
    user_memory& operator=(user_memory&& other) noexcept
    {
        std::swap(_file, other._file);
        std::swap(_id, other._id);
        return *this;
    }
    ~user_memory() { reset(); }

    // 0 or an errno: EFAULT where the program does not have that memory.
    // `uid` is whose it is: the kernel's, or that of the context where the program has its number.
    static int pin(device_file& file, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                   user_memory& pinned, std::uint16_t uid = 0);

    std::uint32_t id() const { return _id; }
    int release(); // 0 or an errno: EBUSY while an object of the device uses it
    void reset() { (void)release(); }

private:
    device_file* _file = nullptr;
    std::uint32_t _id  = 0;
};

class pd_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::pd;

    pd_object(device_file& of, std::uint32_t number) : uobject(own_kind), file(of), pdn(number) {}

    device_file& file;
    const std::uint32_t pdn;

private:
    int release() override;
};

class dm_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::dm;

    dm_object(device_file& of, std::uint64_t at, std::uint64_t bytes)
        : uobject(own_kind), file(of), offset(at), length(bytes)
    {
    }

    device_file& file;
    const std::uint64_t offset; // in the device's memory
    const std::uint64_t length;

private:
    int release() override;
};

// A memory region or a memory window.
class key_object final : public uobject
{
public:
    key_object(object_kind kind, device_file& of, pd_object& pd, std::uint32_t key)
        : uobject(kind), file(of), domain(&pd), mkey(key)
    {
    }

    device_file& file;
    reference<pd_object> domain;
    reference<dm_object> device_memory;
    user_memory memory;
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

    cq_object(device_file& of, std::uint32_t number) : uobject(own_kind), file(of), cqn(number) {}

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    const std::uint32_t cqn;
    user_memory buffer;
    user_memory doorbell;
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

    srq_object(device_file& of, pd_object& pd, std::uint32_t number)
        : uobject(own_kind), file(of), domain(&pd), srqn(number)
    {
    }

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    reference<pd_object> domain;
    const std::uint32_t srqn;
    user_memory buffer;
    user_memory doorbell;
    event_target events;
    std::uint32_t entries  = 0;
    std::uint32_t max_sges = 0;

private:
    int release() override;
};

} // namespace ucxl::softhca
