// An object that a program made through a device file and names by a handle: the base of protection domains, keys,
// queues.
//
// Invariant: the object exists on the device as long as this does. `users` counts the objects that refer to it; it is
// not released while there are any.
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
    any_devx, // in a specification: objects that DEVX can query and modify
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

    // Releases the object on the device: 0, or an errno and nothing has changed.
    int destroy() { return users != 0 ? EBUSY : release(); }

    // Whether it is a memory key of the device, or an alias of one.
    virtual bool is_key() const { return false; }

    // The channel has no reader any more: stops its events.
    virtual void forget_channel(const event_file&) {}

    unsigned users       = 0;
    std::uint32_t handle = 0;
    std::uint64_t serial = 0; // the order in which objects of a device file were made

private:
    virtual int release() = 0;

    object_kind _kind;
};

// A counted reference to another object.
template <typename Object>
class reference
{
public:
    reference() = default;
    explicit reference(Object* object) : _object(object)
    {
        if (_object != nullptr) {
            _object->users++;
        }
    }
    ~reference() { reset(); }
    reference(const reference&)            = delete;
    reference& operator=(const reference&) = delete;

    Object* get() const { return _object; }
    Object* operator->() const { return _object; }
    explicit operator bool() const { return _object != nullptr; }

    void reset(Object* object = nullptr)
    {
        if (object != nullptr) {
            object->users++;
        }
        if (_object != nullptr) {
            _object->users--;
        }
        _object = object;
    }

private:
    Object* _object = nullptr;
};

} // namespace ucxl::softhca
