#include "cqe.h"
#include "decode.h"
#include "eq.h"
#include "text.h"

namespace ucxl::prm
{

namespace
{

bool is_error(cqe_opcode opcode)
{
    return opcode == cqe_opcode::requester_error || opcode == cqe_opcode::responder_error;
}

// The title CQE says how to read the first word of a mini CQE, and is not here: both readings are shown.
void append_mini_cqes(std::string& result, const_view<compressed_cqe> cqe)
{
    for (unsigned i = 0; i < max_mini_cqes; i++) {
        const auto mini = cqe.at(compressed_cqe::mini, i);
        result += "  mini[" + std::to_string(i) + "]: wqe_counter=";
        text::append_number(result, mini.get(mini_cqe::wqe_counter));
        result += " sop_opcode=";
        text::append_number(result, std::to_underlying(mini.get(mini_cqe::sop_opcode)));
        result += " rx_hash_result=";
        text::append_number(result, mini.get(mini_cqe::rx_hash_result));
        result += " byte_cnt=";
        text::append_number(result, mini.get(mini_cqe::byte_cnt));
        result += '\n';
    }
    text::append_bytes(result, "last", cqe.span().subspan<max_mini_cqes * mini_cqe::size_bytes>(), 1);
}

void append_cqe64(std::string& result, text::bytes cqe)
{
    const auto view   = const_view<cqe64>(cqe.first<cqe64::size_bytes>());
    const auto opcode = view.get(cqe64::opcode);
    const auto name   = name_of(opcode);
    result += "cqe ";
    result += name.empty() ? "unknown" : name;
    result += ":\n";
    if (opcode != cqe_opcode::invalid && view.get(cqe64::format) == cqe_format::compressed) {
        append_mini_cqes(result, const_view<compressed_cqe>(cqe.first<compressed_cqe::size_bytes>()));
    } else if (is_error(opcode)) {
        text::append_structure(result, "error", info_of<cqe64_error>, cqe, 1);
    } else {
        text::append_structure(result, "completion", info_of<cqe64>, cqe, 1);
    }
}

const structure_info* event_info(event_type type)
{
    switch (type) {
    case event_type::completion:
        return &info_of<event_completion>;
    case event_type::cq_error:
        return &info_of<event_cq_error>;
    case event_type::port_state_change:
        return &info_of<event_port_change>;
    case event_type::path_migrated:
    case event_type::comm_established:
    case event_type::send_queue_drained:
    case event_type::wq_catastrophic_error:
    case event_type::path_migration_failed:
    case event_type::wq_invalid_request:
    case event_type::wq_access_error:
    case event_type::srq_catastrophic:
    case event_type::srq_last_wqe:
    case event_type::srq_limit_reached:
        return &info_of<event_qp_srq>;
    case event_type::local_catastrophic:
    case event_type::command_done:
    case event_type::page_request:
    case event_type::page_fault:
    case event_type::gpio:
    case event_type::dct_drained:
    case event_type::dct_key_violation:
    case event_type::object_change:
        break;
    }
    return nullptr;
}

} // namespace

std::string decode_cqe(std::span<const std::byte> cqe)
{
    std::string to;
    if (cqe.size() < cqe64::size_bytes) {
        text::append_structure(to, "cqe", info_of<cqe64>, cqe);
        return to;
    }
    if (cqe.size() < cqe128::size_bytes) {
        append_cqe64(to, cqe);
        text::append_bytes(to, "more", cqe.subspan(cqe64::size_bytes), 1);
        return to;
    }
    const auto view = const_view<cqe128>(cqe.first<cqe128::size_bytes>());
    append_cqe64(to, view.at(cqe128::cqe).span());
    text::append_bytes(to, "data", view.at(cqe128::data), 1);
    text::append_bytes(to, "more", cqe.subspan(cqe128::size_bytes), 1);
    return to;
}

std::string decode_eqe(std::span<const std::byte> eqe)
{
    std::string to;
    const auto view = const_view<prm::eqe>::over(eqe);
    text::append_structure(to, "event", info_of<prm::eqe>, eqe);
    if (!view) {
        return to;
    }
    if (const auto* info = event_info(view->get(prm::eqe::event_type))) {
        text::append_structure(to, "data", *info, view->at(prm::eqe::event_data), 1);
    }
    text::append_bytes(to, "more", eqe.subspan(prm::eqe::size_bytes), 1);
    return to;
}

} // namespace ucxl::prm
