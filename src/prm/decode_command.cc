#include <algorithm>

#include "cq.h"
#include "decode.h"
#include "eq.h"
#include "hca_cap_pages.h"
#include "mkey.h"
#include "object.h"
#include "port.h"
#include "qp.h"
#include "resource.h"
#include "rq.h"
#include "text.h"

namespace ucxl::prm
{

namespace
{

struct command_shape {
    command opcode;
    const structure_info* input;
    const structure_info* output;
};

template <typename In, typename Out = any_output>
constexpr command_shape shape(command opcode)
{
    return {opcode, &info_of<In>, &info_of<Out>};
}

// Commands whose structure does not depend on their content; the others are below.
constexpr command_shape shapes[] = {
    shape<create_mkey_in, create_mkey_out>(command::create_mkey),
    shape<query_mkey_in, query_mkey_out>(command::query_mkey),
    shape<any_input, query_special_contexts_out>(command::query_special_contexts),
    shape<destroy_mkey_in>(command::destroy_mkey),
    shape<create_eq_in, create_eq_out>(command::create_eq),
    shape<destroy_eq_in>(command::destroy_eq),
    shape<create_cq_in, create_cq_out>(command::create_cq),
    shape<plain_cq_in>(command::destroy_cq),
    shape<plain_cq_in, query_cq_out>(command::query_cq),
    shape<modify_cq_in>(command::modify_cq),
    shape<create_qp_in, create_qp_out>(command::create_qp),
    shape<plain_qp_in>(command::destroy_qp),
    shape<modify_qp_in, modify_qp_out>(command::rst2init_qp),
    shape<modify_qp_in, modify_qp_out>(command::init2rtr_qp),
    shape<modify_qp_in, modify_qp_out>(command::rtr2rts_qp),
    shape<modify_qp_in, modify_qp_out>(command::rts2rts_qp),
    shape<modify_qp_in, modify_qp_out>(command::sqerr2rts_qp),
    shape<modify_qp_in, modify_qp_out>(command::sqd_rts_qp),
    shape<modify_qp_in, modify_qp_out>(command::init2init_qp),
    shape<plain_qp_in>(command::to_err_qp),
    shape<plain_qp_in>(command::to_rst_qp),
    shape<query_qp_in, query_qp_out>(command::query_qp),
    shape<mad_ifc_in, mad_ifc_out>(command::mad_ifc),
    shape<create_psv_in, create_psv_out>(command::create_psv),
    shape<destroy_psv_in>(command::destroy_psv),
    shape<create_dct_in, create_dct_out>(command::create_dct),
    shape<plain_dct_in>(command::destroy_dct),
    shape<plain_dct_in>(command::drain_dct),
    shape<plain_dct_in, query_dct_out>(command::query_dct),
    shape<plain_dct_in>(command::arm_dct_for_key_violation),
    shape<create_xrq_in, create_xrq_out>(command::create_xrq),
    shape<destroy_xrq_in>(command::destroy_xrq),
    shape<set_xrq_dc_params_entry_in>(command::set_xrq_dc_params_entry),
    shape<query_hca_vport_context_in, query_hca_vport_context_out>(command::query_hca_vport_context),
    shape<query_hca_vport_gid_in, query_hca_vport_gid_out>(command::query_hca_vport_gid),
    shape<any_input, alloc_q_counter_out>(command::alloc_q_counter),
    shape<dealloc_q_counter_in>(command::dealloc_q_counter),
    shape<any_input, alloc_pd_out>(command::alloc_pd),
    shape<dealloc_pd_in>(command::dealloc_pd),
    shape<any_input, alloc_uar_out>(command::alloc_uar),
    shape<dealloc_uar_in>(command::dealloc_uar),
    shape<access_register_in>(command::access_register),
    shape<any_input, alloc_xrcd_out>(command::alloc_xrcd),
    shape<dealloc_xrcd_in>(command::dealloc_xrcd),
    shape<any_input, alloc_transport_domain_out>(command::alloc_transport_domain),
    shape<dealloc_transport_domain_in>(command::dealloc_transport_domain),
    shape<any_input, query_lag_out>(command::query_lag),
    shape<create_rmp_in, create_rmp_out>(command::create_rmp),
    shape<modify_rmp_in>(command::modify_rmp),
    shape<plain_rmp_in>(command::destroy_rmp),
    shape<plain_rmp_in, query_rmp_out>(command::query_rmp),
    shape<alloc_flow_counter_in, alloc_flow_counter_out>(command::alloc_flow_counter),
    shape<dealloc_flow_counter_in>(command::dealloc_flow_counter),
    shape<query_flow_counter_in, query_flow_counter_out>(command::query_flow_counter),
    shape<general_object_in, general_object_out>(command::create_general_object),
    shape<general_object_in, general_object_out>(command::modify_general_object),
    shape<general_object_in, general_object_out>(command::query_general_object),
    shape<general_object_in, general_object_out>(command::destroy_general_object),
    shape<create_umem_in, create_umem_out>(command::create_umem),
    shape<destroy_umem_in>(command::destroy_umem),
    shape<allow_other_vhca_access_in>(command::allow_other_vhca_access),
};

command_shape known_shape(command opcode)
{
    const auto found = std::ranges::find(shapes, opcode, &command_shape::opcode);
    return found == std::end(shapes) ? shape<any_input>(opcode) : *found;
}

const structure_info* page_info(cap_page page)
{
    switch (page) {
    case cap_page::general:
        return &info_of<hca_cap>;
    case cap_page::general_2:
        return &info_of<hca_cap_2>;
    case cap_page::odp:
        return &info_of<odp_cap>;
    case cap_page::atomic:
        return &info_of<atomic_caps>;
    case cap_page::roce:
        return &info_of<roce_cap>;
    case cap_page::device_memory:
        return &info_of<device_mem_cap>;
    case cap_page::nic_flow:
    case cap_page::esw_flow:
    case cap_page::esw:
    case cap_page::qos:
    case cap_page::crypto:
        break;
    }
    return nullptr;
}

void append_rest(std::string& result, text::bytes all, std::size_t known)
{
    if (all.size() > known) {
        text::append_bytes(result, "more", all.subspan(known), 1);
    }
}

// The translation entries after create_mkey, by the key's access mode.
void append_translations(std::string& result, text::bytes input)
{
    const auto view = const_view<create_mkey_in>::over(input);
    if (!view || input.size() == create_mkey_in::size_bytes) {
        return;
    }
    const auto entries = input.subspan(create_mkey_in::size_bytes);
    switch (access_mode(view->at(create_mkey_in::memory_key))) {
    case mkey_access_mode::mtt:
        return text::append_list(result, "mtt", info_of<mtt>, entries, 1);
    case mkey_access_mode::klm:
        return text::append_list(result, "klm", info_of<klm>, entries, 1);
    case mkey_access_mode::ksm:
        return text::append_list(result, "ksm", info_of<ksm>, entries, 1);
    case mkey_access_mode::physical_address:
    case mkey_access_mode::software_icm:
    case mkey_access_mode::memic:
    case mkey_access_mode::crossing_vhca:
        break;
    }
    text::append_bytes(result, "entries", entries, 1);
}

bool has_extension(text::bytes input)
{
    const auto view = const_view<modify_qp_ext_in>::over(input);
    return view && view->get(modify_qp_ext_in::qpc_ext);
}

bool is_alias(text::bytes input)
{
    const auto view = const_view<general_object_in>::over(input);
    return view && view->get(general_object_in::alias_object);
}

bool takes_context(command opcode)
{
    return known_shape(opcode).input == &info_of<modify_qp_in>;
}

const structure_info& input_info(command opcode, text::bytes input)
{
    if (opcode == command::query_hca_cap) {
        return info_of<query_hca_cap_in>;
    }
    if (takes_context(opcode) && has_extension(input)) {
        return info_of<modify_qp_ext_in>;
    }
    if (opcode == command::create_general_object && is_alias(input)) {
        return info_of<create_alias_object_in>;
    }
    return *known_shape(opcode).input;
}

const structure_info& output_info(command opcode, text::bytes input)
{
    if (opcode == command::query_general_object && is_alias(input)) {
        return info_of<query_alias_object_out>;
    }
    return *known_shape(opcode).output;
}

std::optional<register_id> register_of(text::bytes input)
{
    const auto view = const_view<access_register_in>::over(input);
    return view ? std::optional(view->get(access_register_in::register_id)) : std::nullopt;
}

void append_register(std::string& result, text::bytes input, text::bytes data)
{
    if (data.size() >= paos_register::size_bytes && register_of(input) == register_id::port_state) {
        text::append_structure(result, "paos", info_of<paos_register>, data, 1);
        data = data.subspan(paos_register::size_bytes);
    }
    text::append_bytes(result, "register", data, 1);
}

void append_input(std::string& result, command opcode, text::bytes input)
{
    const std::string_view name = name_of(opcode);
    const auto& info            = input_info(opcode, input);
    text::append_structure(result, name.empty() ? "unknown command" : name, info, input);
    if (input.size() <= info.size_bytes) {
        return;
    }
    const auto behind = input.subspan(info.size_bytes);
    if (opcode == command::create_mkey) {
        append_translations(result, input);
    } else if (opcode == command::create_umem) {
        text::append_list(result, "mtt", info_of<mtt>, behind, 1);
    } else if (opcode == command::access_register) {
        append_register(result, input, behind);
    } else {
        append_rest(result, input, info.size_bytes);
    }
}

// The page that was asked for, at its place in the answer.
void append_capability(std::string& result, text::bytes input, text::bytes output)
{
    constexpr std::size_t begin = any_output::size_bytes;
    const auto view             = const_view<any_input>::over(input);
    const auto page             = page_of(view ? view->get(any_input::op_mod) : std::uint16_t{0});
    const auto* info            = view ? page_info(page) : nullptr;
    if (info == nullptr) {
        return append_rest(result, output, begin);
    }
    text::append_structure(result, name_of(page), *info, output.subspan(begin), 1);
    append_rest(result, output, begin + info->size_bytes);
}

void append_output(std::string& result, command opcode, text::bytes input, text::bytes output)
{
    const auto answer = const_view<any_output>::over(output);
    if (!answer || answer->get(any_output::status) != command_status::ok) {
        text::append_structure(result, "answer", info_of<any_output>, output);
        return append_rest(result, output, any_output::size_bytes);
    }
    if (opcode == command::query_hca_cap) {
        text::append_structure(result, "answer", info_of<any_output>, output);
        return append_capability(result, input, output);
    }
    const auto& info = output_info(opcode, input);
    text::append_structure(result, "answer", info, output);
    if (opcode == command::access_register && output.size() > info.size_bytes) {
        append_register(result, input, output.subspan(info.size_bytes));
    } else {
        append_rest(result, output, info.size_bytes);
    }
}

} // namespace

std::string decode_command(std::span<const std::byte> input, std::span<const std::byte> output)
{
    std::string to;
    const auto head   = const_view<any_input>::over(input);
    const auto opcode = head ? head->get(any_input::opcode) : command{};
    append_input(to, opcode, input);
    if (!output.empty()) {
        append_output(to, opcode, input, output);
    }
    return to;
}

} // namespace ucxl::prm
