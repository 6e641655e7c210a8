// One call of a method: the attributes a program gave, and what the method makes.
//
// Attributes were checked against the method's specification before the method sees them: required ones are there, none
// is shorter than allowed, handles are objects of the right kind. What a program wrote behind the part this side knows
// is zero. Memory of the program is read and written only here, so that a wild pointer is EFAULT.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "softhca/shim/objects/device_file.h"
#include "spec.h"

namespace ucxl::softhca
{

// Bytes that a program gives: at an address, or in the attribute itself where they are few.
struct user_input {
    std::uint64_t data = 0;
    std::size_t length = 0;
    bool in_place      = false; // `data` is the bytes
};

// Where a program wants an answer.
struct user_output {
    std::uint64_t address       = 0;
    std::size_t length          = 0;
    std::uint64_t flags_address = 0; // of the attribute's flags, to tell that something was written; 0 for none
    std::uint16_t flags         = 0;
};

class uverbs_call
{
public:
    explicit uverbs_call(device_file& of) : file(of) {}
    ~uverbs_call();
    uverbs_call(const uverbs_call&)            = delete;
    uverbs_call& operator=(const uverbs_call&) = delete;

    // Takes the attributes over from the program: 0 or an errno.
    int take(const method_spec& method, std::uint64_t attributes, unsigned count);

    // The two halves of a command of the older interface instead.
    void take_write(const user_input& in, const user_output& out, const user_input& driver_in,
                    const user_output& driver_out);

    bool has(std::uint16_t id) const { return find(id) != nullptr; }
    std::size_t length(std::uint16_t id) const;

    // Input attributes. A value shorter than `Value` is zero behind; an absent one leaves `value` alone.
    template <typename Value>
    int read(std::uint16_t id, Value& value)
    {
        return read_bytes(id, &value, sizeof(value));
    }
    // Flags of which only `allowed` may be set.
    int read_flags(std::uint16_t id, std::uint64_t allowed, std::uint32_t& flags);
    int read_bytes(std::uint16_t id, void* to, std::size_t length);
    int read_all(std::uint16_t id, std::vector<std::byte>& bytes);

    // Output attributes: as much of the value as there is room for.
    template <typename Value>
    int write(std::uint16_t id, const Value& value)
    {
        return write_bytes(id, &value, sizeof(value));
    }
    int write_bytes(std::uint16_t id, const void* from, std::size_t length);

    template <typename Object>
    Object* object(std::uint16_t id)
    {
        const given* const attribute = find(id);
        return attribute != nullptr ? static_cast<Object*>(attribute->object) : nullptr;
    }

    // An object by a handle that was not in an attribute: 0, ENOENT or EINVAL.
    template <typename Object>
    int find_object(std::uint32_t handle, Object*& found)
    {
        uobject* object = nullptr;
        const int error = lookup(handle, Object::own_kind, object);
        found           = static_cast<Object*>(object);
        return error;
    }
    int lookup(std::uint32_t handle, object_kind kind, uobject*& found) const;

    // The channel in a descriptor attribute: 0, or EBADF where it is none of that format and context. An absent one
    // leaves `channel` alone.
    int channel_of(std::uint16_t id, event_format format, std::shared_ptr<event_file>& channel) const;

    // What the method made. It stays when the whole call succeeds.
    std::uint32_t new_handle();
    void create(std::unique_ptr<uobject> object);
    int destroy(uobject& object);    // 0 or an errno, and it stays
    void destroyed(uobject& object); // of one that was destroyed already, when what it knew was taken

    // An event channel, whose reading end is a new descriptor of the program: 0 or an errno.
    int create_channel(event_format format);
    const std::shared_ptr<event_file>& made_channel() const { return _made_channel; }

    // After the method: keeps what it made, or takes it back when there is an error.
    int finish(int error);

    // The older interface: what is behind the request that this side knows has to be zero.
    template <typename Value>
    int request(Value& value)
    {
        return read_growing(UVERBS_ATTR_CORE_IN, &value, sizeof(value));
    }
    template <typename Value>
    int respond(const Value& value)
    {
        return write(UVERBS_ATTR_CORE_OUT, value);
    }
    int read_growing(std::uint16_t id, void* to, std::size_t length);

    device_file& file;

private:
    struct given {
        std::uint16_t id           = 0;
        const attribute_spec* spec = nullptr;
        user_input in;
        user_output out;
        uobject* object = nullptr;
    };

    const given* find(std::uint16_t id) const;
    int take_one(const method_spec& method, const ib_uverbs_attr& attribute, std::uint64_t address);
    int take_input(const ib_uverbs_attr& attribute, given& taken);
    int check_zero_behind(const user_input& in, std::size_t known) const;
    int take_object(const ib_uverbs_attr& attribute, std::uint64_t address, given& taken);
    int fetch(const user_input& in, std::size_t offset, void* to, std::size_t length) const;

    std::vector<given> _given;
    std::optional<std::uint32_t> _handle;
    std::unique_ptr<uobject> _made;
    std::shared_ptr<event_file> _made_channel;
};

} // namespace ucxl::softhca
