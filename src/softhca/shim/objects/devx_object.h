// Objects that a program makes with commands of its own (DEVX).
#pragma once

#include <cstdint>
#include <span>

#include "device_file.h"
#include "event_target.h"
#include "prm/command.h"
#include "verbs_objects.h"

namespace ucxl::softhca
{

// What a command that makes an object has to do with those that change, read and end it.
struct devx_class {
    prm::command create;
    prm::command destroy;
    std::span<const prm::command> modify;
    std::span<const prm::command> query;
};

// Null: not a command that makes an object.
const devx_class* find_devx_class(prm::command create);

// Whether a command may be sent without an object.
bool is_general_command(prm::command opcode);
bool needs_no_devx(prm::command opcode); // what any context may ask

// The words of a mailbox that name the object it is about.
struct devx_id {
    std::uint32_t number                  = 0;
    std::uint16_t type                    = 0; // of a general object
    bool operator==(const devx_id&) const = default;
};
devx_id id_in_command(prm::const_view<prm::any_input> in, std::span<const std::byte> bytes);

class devx_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::devx_object;

    devx_object(device_file& of, const devx_class& what, const devx_id& number)
        : uobject(own_kind), file(of), kind_of(what), id(number)
    {
    }

    void forget_channel(const event_file& channel) override;

    // That channel gets the event, with the cookie: 0 or an errno.
    int subscribe_channel(const std::shared_ptr<event_file>& channel, std::uint16_t type, std::uint64_t cookie);

    device_file& file;
    const devx_class& kind_of;
    const devx_id id;

private:
    int release() override;
    bool route(std::uint32_t type, const event_route& to);

    event_target _completions;
    event_target _events; // all others
};

class devx_memory final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::devx_umem;

    explicit devx_memory(user_memory&& pinned) : uobject(own_kind), memory(std::move(pinned)) {}

    user_memory memory;

private:
    int release() override { return memory.release(); }
};

} // namespace ucxl::softhca
