// Objects that a program makes with its own commands (DEVX).
#pragma once

#include <cstdint>
#include <span>

#include "device_file.h"
#include "event_file.h"
#include "prm/command.h"
#include "verbs.h"

namespace ucxl::softhca
{

// The command that makes a kind of object, and those that destroy, modify and query it.
struct devx_class {
    prm::command create;
    prm::command destroy;
    std::span<const prm::command> modify;
    std::span<const prm::command> query;
};

// Null when the command does not make an object.
const devx_class* find_devx_class(prm::command create);

// Whether a command may be sent without an object.
bool is_general_command(prm::command opcode);
bool needs_no_devx(prm::command opcode); // any context may send it

// The fields of a mailbox that name its object.
struct devx_id {
    std::uint32_t number                  = 0;
    std::uint16_t type                    = 0; // of a general object
    bool operator==(const devx_id&) const = default;
};
devx_id id_in_command(prm::const_view<prm::any_input> input, std::span<const std::byte> bytes);

class devx_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::devx_object;

    devx_object(device_file& opened, const devx_class& kind, const devx_id& number)
        : uobject(own_kind), file(opened), kind_of(kind), id(number)
    {
    }

    // The only general objects are aliases of keys.
    bool is_key() const override
    {
        return kind_of.create == prm::command::create_mkey || kind_of.create == prm::command::create_general_object;
    }
    void forget_channel(const event_file& channel) override;

    // Subscribes the channel to the event, with the cookie: 0 or an errno.
    int subscribe_channel(const std::shared_ptr<event_file>& channel, std::uint16_t type, std::uint64_t cookie);

    device_file& file;
    const devx_class& kind_of;
    const devx_id id;

private:
    int release() override;
    bool route(std::uint32_t type, const event_route& target);

    event_target _completions;
    event_target _events; // all other events
};

class devx_memory final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::devx_umem;

    explicit devx_memory(pinned_memory&& pinned) : uobject(own_kind), memory(std::move(pinned)) {}

    pinned_memory memory;

private:
    int release() override { return memory.release(); }
};

} // namespace ucxl::softhca
