// General objects, and sharing objects between functions of the device (VHCAs).
//
// The owner allows access to an object with allow_other_vhca_access and a 32-byte access key. The other function makes
// an alias of it with create_general_object, alias_object set, and an alias context that repeats the key.
#pragma once

#include "command.h"

namespace ucxl::prm
{

enum class object_type : std::uint16_t {
    reserved_qpn = 0x002c,
    mkey         = 0xff01,
};

template <>
struct value_names<object_type> : one_of<object_type::reserved_qpn, object_type::mkey> {
};

struct general_object_in : command_input<general_object_in, 16> {
    static constexpr alt<0x030, 16, object_type> obj_type{};
    static constexpr f<0x040, 32> obj_id{};
    static constexpr f<0x060, 1> alias_object{};
    static constexpr f<0x063, 5> log_obj_range{};
    using fields = field_list<opcode, uid, op_mod, obj_type, obj_id, alias_object, log_obj_range>;
};
static_assert(well_formed<general_object_in>);

struct general_object_out : command_output<general_object_out, 16> {
    static constexpr f<0x040, 32> obj_id{};
    using fields = field_list<status, syndrome, obj_id>;
};
static_assert(well_formed<general_object_out>);

struct alias_context : structure<alias_context, 64> {
    static constexpr f<0x000, 16> vhca_id_to_be_accessed{};
    static constexpr f<0x01d, 3> status{};
    static constexpr f<0x020, 32> object_id_to_be_accessed{};
    static constexpr bytes<0x080, 32> access_key{};
    static constexpr f<0x180, 32> metadata_1{};
    static constexpr bytes<0x1a0, 12> metadata_2{};
    using fields =
        field_list<vhca_id_to_be_accessed, status, object_id_to_be_accessed, access_key, metadata_1, metadata_2>;
};
static_assert(well_formed<alias_context>);

// metadata_1 of an alias of a memory key is the protection domain of the alias.
struct create_alias_object_in : command_input<create_alias_object_in, 80> {
    static constexpr alt<0x030, 16, object_type> obj_type{};
    static constexpr f<0x040, 32> obj_id{};
    static constexpr f<0x060, 1> alias_object{};
    static constexpr f<0x063, 5> log_obj_range{};
    static constexpr part<0x080, alias_context> alias{};
    using fields = field_list<opcode, uid, op_mod, obj_type, obj_id, alias_object, log_obj_range, alias>;
};
static_assert(well_formed<create_alias_object_in>);

struct query_alias_object_out : command_output<query_alias_object_out, 80> {
    static constexpr f<0x040, 32> obj_id{};
    static constexpr part<0x080, alias_context> alias{};
    using fields = field_list<status, syndrome, obj_id, alias>;
};
static_assert(well_formed<query_alias_object_out>);

// The object is the index of a memory key: the key without its variant byte.
struct allow_other_vhca_access_in : command_input<allow_other_vhca_access_in, 64> {
    static constexpr f<0x090, 16, object_type> object_type_to_be_accessed{};
    static constexpr f<0x0a0, 32> object_id_to_be_accessed{};
    static constexpr bytes<0x100, 32> access_key{};
    using fields = field_list<opcode, uid, op_mod, object_type_to_be_accessed, object_id_to_be_accessed, access_key>;
};
static_assert(well_formed<allow_other_vhca_access_in>);

} // namespace ucxl::prm
