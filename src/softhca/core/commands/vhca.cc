// Sharing between the functions of a device: allowing access to a key, and aliases of it.
#include "call.h"
#include "prm/mkey.h"
#include "prm/object.h"
#include "softhca/core/arena/fault_plan.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

command_status allow_access(command_call& call, prm::const_view<prm::allow_other_vhca_access_in> input,
                            prm::view<prm::any_output>)
{
    if (input.get(prm::allow_other_vhca_access_in::object_type_to_be_accessed) != prm::object_type::mkey) {
        return call.refuse(command_status::bad_parameter, "only keys can be opened to other functions");
    }
    if (!call.memory().card.exports || call.memory().card.refuses_exports) {
        return call.refuse(command_status::bad_parameter, "the card does not open keys to other functions (--profile)");
    }
    mkey_record* const key =
        own(call, call.memory().mkeys, input.get(prm::allow_other_vhca_access_in::object_id_to_be_accessed));
    if (key == nullptr || key->backing == mkey_backing::alias) {
        return call.refuse(command_status::bad_resource, "no such key");
    }
    const auto access_key = input.at(prm::allow_other_vhca_access_in::access_key);
    key->shared_with_vhca = false;
    std::ranges::transform(access_key, key->access_key.begin(),
                           [](std::byte one) { return std::to_integer<std::uint8_t>(one); });
    key->shared_with_vhca = true;
    return command_status::ok;
}

// The key that an alias refers to. It may belong to any function of the same device, whatever its index.
const mkey_record* find_target(const command_call& call, prm::const_view<prm::alias_context> alias)
{
    const mkey_record* const key = call.memory().mkeys.find(alias.get(prm::alias_context::object_id_to_be_accessed));
    if (key == nullptr || key->backing == mkey_backing::alias) {
        return nullptr;
    }
    const function_record& there = call.memory().function_table[key->owner.function];
    const bool is_it =
        there.vhca_id == alias.get(prm::alias_context::vhca_id_to_be_accessed) && there.device == call.caller().device;
    return is_it ? key : nullptr;
}

bool opens(const mkey_record& key, prm::const_view<prm::alias_context> alias)
{
    return key.shared_with_vhca && std::ranges::equal(key.access_key, alias.at(prm::alias_context::access_key), {}, {},
                                                      [](std::byte one) { return std::to_integer<std::uint8_t>(one); });
}

mkey_record make_alias(const mkey_record& target, prm::const_view<prm::alias_context> alias)
{
    mkey_record made;
    made.backing       = mkey_backing::alias;
    made.mode          = prm::mkey_access_mode::crossing_vhca;
    made.local_read    = true;
    made.local_write   = true;
    made.remote_read   = true;
    made.remote_write  = true;
    made.remote_atomic = true;
    made.length64      = true;
    made.pd            = alias.get(prm::alias_context::metadata_1);
    made.target_mkey   = alias.get(prm::alias_context::object_id_to_be_accessed);
    made.target_vhca   = alias.get(prm::alias_context::vhca_id_to_be_accessed);
    made.access_key    = target.access_key;
    return made;
}

command_status create_object(command_call& call, prm::const_view<prm::general_object_in> head,
                             prm::view<prm::query_alias_object_out> output)
{
    const auto input = prm::const_view<prm::create_alias_object_in>::over(call.input);
    if (head.get(prm::general_object_in::obj_type) != prm::object_type::mkey ||
        !head.get(prm::general_object_in::alias_object) || head.get(prm::general_object_in::log_obj_range) != 0) {
        return call.refuse(command_status::bad_parameter, "general objects are aliases of keys here");
    }
    if (!input) {
        return call.refuse(command_status::bad_input_length, "input mailbox too short");
    }
    arena& memory                   = call.memory();
    const auto alias                = input->at(prm::create_alias_object_in::alias);
    const mkey_record* const target = find_target(call, alias);
    if (target == nullptr) {
        return call.refuse(command_status::bad_resource, "no such key in that function of this device");
    }
    if (!opens(*target, alias)) {
        return call.refuse(command_status::bad_parameter, "the key is not open under this access key");
    }
    if (own(call, memory.pds, alias.get(prm::alias_context::metadata_1)) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such protection domain");
    }
    if (beyond_limit(memory, fault_kind::key_limit, memory.mkeys.live + 1)) {
        return call.refuse(command_status::limit_exceeded, "--fault");
    }
    const mkey_record made    = make_alias(*target, alias);
    const std::uint32_t index = find_room_for_key(call);
    if (index == 0) {
        return call.refuse(command_status::limit_exceeded, "all keys are taken");
    }
    fresh(memory.mkeys, index) = made;
    hold(memory.pds, made.pd);
    publish_key(memory, index, call.owner());
    output.put(prm::query_alias_object_out::obj_id, memory.mkeys.number_of(index));
    return command_status::ok;
}

const mkey_record* own_alias(const command_call& call, prm::const_view<prm::general_object_in> input)
{
    const mkey_record* const key = own(call, call.memory().mkeys, input.get(prm::general_object_in::obj_id));
    const bool is_alias          = key != nullptr && key->backing == mkey_backing::alias &&
                          input.get(prm::general_object_in::obj_type) == prm::object_type::mkey;
    return is_alias ? key : nullptr;
}

command_status query_object(command_call& call, prm::const_view<prm::general_object_in> input,
                            prm::view<prm::query_alias_object_out> output)
{
    const mkey_record* const key = own_alias(call, input);
    if (key == nullptr) {
        return call.refuse(command_status::bad_resource, "no such alias");
    }
    const auto alias = output.at(prm::query_alias_object_out::alias);
    output.put(prm::query_alias_object_out::obj_id, input.get(prm::general_object_in::obj_id));
    alias.put(prm::alias_context::vhca_id_to_be_accessed, key->target_vhca);
    alias.put(prm::alias_context::object_id_to_be_accessed, key->target_mkey);
    alias.put(prm::alias_context::metadata_1, key->pd);
    return command_status::ok;
}

command_status destroy_object(command_call& call, prm::const_view<prm::general_object_in> input,
                              prm::view<prm::any_output>)
{
    const mkey_record* const alias = own_alias(call, input);
    if (alias == nullptr) {
        return call.refuse(command_status::bad_resource, "no such alias");
    }
    retire_key(call.memory(), *alias);
    return command_status::ok;
}

// A general object may be answered with the header alone.
constexpr std::size_t object_head = prm::general_object_out::size_bytes;

constexpr command_entry entries[] = {
    entry<prm::allow_other_vhca_access_in, prm::any_output, allow_access>(prm::command::allow_other_vhca_access),
    entry<prm::general_object_in, prm::query_alias_object_out, create_object>(prm::command::create_general_object,
                                                                              object_head),
    entry<prm::general_object_in, prm::query_alias_object_out, query_object>(prm::command::query_general_object,
                                                                             object_head),
    entry<prm::general_object_in, prm::any_output, destroy_object>(prm::command::destroy_general_object),
};

} // namespace

command_entries vhca_commands()
{
    return entries;
}

} // namespace ucxl::softhca
