// One call of a method: the attributes that the program gave, and the object that the method makes.
//
// Attributes are checked against the method's specification before the method runs: required ones are present, none is
// too short, handles name objects of the right kind, and bytes after the known part are zero. Only this class reads and
// writes memory of the program, so an invalid pointer is EFAULT.
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

// Bytes from the program: at an address, or in the attribute itself when they are few.
struct user_input {
    std::uint64_t data = 0;
    std::size_t length = 0;
    bool in_place      = false; // `data` has the bytes
};

// Where the program wants an answer.
struct user_output {
    std::uint64_t address       = 0;
    std::size_t length          = 0;
    std::uint64_t flags_address = 0; // of the attribute's flags, which tell that something was written; 0 for none
    std::uint16_t flags         = 0;
};

class uverbs_call
{
public:
    explicit uverbs_call(device_file& opened) : file(opened) {}
    ~uverbs_call();
    uverbs_call(const uverbs_call&)            = delete;
    uverbs_call& operator=(const uverbs_call&) = delete;

    // Reads the attributes from the program: 0 or an errno.
    int take(const method_spec& method, std::uint64_t attributes, unsigned count);

    // Takes a command of the write interface instead.
    void take_write(const user_input& input, const user_output& output, const user_input& uhw_input,
                    const user_output& uhw_output);

    bool has(std::uint16_t id) const { return find(id) != nullptr; }
    std::size_t length(std::uint16_t id) const;

    // Reads an input attribute. A value shorter than `Value` is filled with zeros; an absent one leaves `value`
    // unchanged.
    template <typename Value>
    int read(std::uint16_t id, Value& value)
    {
        return read_bytes(id, &value, sizeof(value));
    }
    // Reads flags; only `allowed` may be set.
    int read_flags(std::uint16_t id, std::uint64_t allowed, std::uint32_t& flags);
    int read_bytes(std::uint16_t id, void* to, std::size_t length);
    int read_all(std::uint16_t id, std::vector<std::byte>& bytes);

    // Writes an output attribute: as much of the value as there is room for.
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

    // Finds an object by a handle outside the attributes: 0, ENOENT or EINVAL.
    template <typename Object>
    int find_object(std::uint32_t handle, Object*& found)
    {
        uobject* object = nullptr;
        const int error = lookup(handle, Object::own_kind, object);
        found           = static_cast<Object*>(object);
        return error;
    }
    int lookup(std::uint32_t handle, object_kind kind, uobject*& found) const;

    // The channel of a descriptor attribute: 0, or EBADF when it is not of that format and context. An absent attribute
    // leaves `channel` unchanged.
    int channel_of(std::uint16_t id, event_format format, std::shared_ptr<event_file>& channel) const;

    // Registers the object that the method made. It stays when the whole call succeeds.
    std::uint32_t new_handle();
    void create(std::unique_ptr<uobject> object);
    int destroy(uobject& object);    // 0, or an errno and the object stays
    void destroyed(uobject& object); // after destroy() of the object itself, once its values were read

    // Makes an event channel, whose reading end is a new descriptor of the program: 0 or an errno. With a value it gets
    // the events of the device, with that value.
    int create_channel(event_format format, std::optional<std::uint64_t> device_events = std::nullopt);
    const std::shared_ptr<event_file>& made_channel() const { return _made_channel; }

    // Called after the method: keeps the object that it made, or releases it after an error.
    int finish(int error);

    // The write interface: bytes after the known part of the request must be zero.
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
        user_input input;
        user_output output;
        uobject* object = nullptr;
    };

    const given* find(std::uint16_t id) const;
    int take_one(const method_spec& method, const ib_uverbs_attr& attribute, std::uint64_t address);
    int take_input(const ib_uverbs_attr& attribute, given& taken);
    int check_zero_behind(const user_input& input, std::size_t known) const;
    int take_object(const ib_uverbs_attr& attribute, std::uint64_t address, given& taken);
    int fetch(const user_input& input, std::size_t offset, void* to, std::size_t length) const;

    std::vector<given> _given;
    std::optional<std::uint32_t> _handle;
    std::unique_ptr<uobject> _made;
    std::shared_ptr<event_file> _made_channel;
};

} // namespace ucxl::softhca
