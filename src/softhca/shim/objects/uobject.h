// What a program made through a device file and refers to by a handle: the base of protection domains, keys, queues.
//
// Invariant: exists on the device as long as it is here. Others that need it are counted in `users`; while there are
// any it is not released.
#pragma once

#include <cerrno>
#include <cstdint>

namespace ucxl::softhca
{

enum class object_kind : std::uint8_t {
    pd,
    mr,
    mw,
    cq,
    qp,
    srq,
    dm,
    uar,
    devx_object,
    devx_umem,
    any_devx, // in a specification: whatever DEVX can query and modify
    none,     // in a specification: objects that this device does not have
};

class event_file;

class uobject
{
public:
    explicit uobject(object_kind kind) : _kind(kind) {}
    virtual ~uobject()                 = default;
    uobject(const uobject&)            = delete;
    uobject& operator=(const uobject&) = delete;

    object_kind kind() const { return _kind; }

    // Gives back what the device has of it: 0, or an errno and nothing has changed.
    int destroy() { return users != 0 ? EBUSY : release(); }

    // That channel has no reader any more: no events to it from now on.
    virtual void forget_channel(const event_file&) {}

    unsigned users       = 0;
    std::uint32_t handle = 0;
    std::uint64_t serial = 0; // counts objects of a device file in the order they were made

private:
    virtual int release() = 0;

    object_kind _kind;
};

// One object's need of another.
template <typename Object>
class reference
{
public:
    reference() = default;
    explicit reference(Object* to) : _to(to)
    {
        if (_to != nullptr) {
            _to->users++;
        }
    }
    ~reference() { reset(); }
    reference(const reference&)            = delete;
    reference& operator=(const reference&) = delete;

    Object* get() const { return _to; }
    Object* operator->() const { return _to; }
    explicit operator bool() const { return _to != nullptr; }

    void reset(Object* to = nullptr)
    {
        if (to != nullptr) {
            to->users++;
        }
        if (_to != nullptr) {
            _to->users--;
        }
        _to = to;
    }

private:
    Object* _to = nullptr;
};

} // namespace ucxl::softhca
