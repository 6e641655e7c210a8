#include "devx_command.h"

#include "prm/cq.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/rq.h"

namespace ucxl::softhca
{

int devx_command::take(uverbs_call& call, std::uint16_t in_attribute, std::uint16_t out_attribute)
{
    _out_attribute = out_attribute;
    output.assign(call.length(out_attribute), std::byte{0});
    return call.read_all(in_attribute, input);
}

prm::command_status devx_command::send(uverbs_call& call)
{
    // The program may speak for its own context only, whatever it wrote there.
    prm::view<prm::any_input>::over(input)->put(prm::any_input::uid, call.file.uid);
    return call.file.device.command(call.file.function, call.file.uid, input, output);
}

int devx_command::run(uverbs_call& call)
{
    const prm::command_status status = send(call);
    if (const int error = call.write_bytes(_out_attribute, output.data(), output.size()); error != 0) {
        return error;
    }
    return status == prm::command_status::ok ? 0 : EREMOTEIO;
}

namespace
{

// A key with its entries in the command has no memory.
bool use_in_key(std::span<std::byte> bytes)
{
    const auto input = prm::view<prm::create_mkey_in>::over(bytes);
    if (!input) {
        return false;
    }
    const auto mode = prm::access_mode(input->at(prm::create_mkey_in::memory_key));
    if (mode != prm::mkey_access_mode::klm && mode != prm::mkey_access_mode::ksm) {
        input->put<true>(prm::create_mkey_in::mkey_umem_valid);
    }
    return true;
}

bool use_in_completion_queue(std::span<std::byte> bytes)
{
    const auto input = prm::view<prm::create_cq_in>::over(bytes);
    if (!input) {
        return false;
    }
    input->put<true>(prm::create_cq_in::cq_umem_valid);
    input->at(prm::create_cq_in::cqc).put<true>(prm::cqc::dbr_umem_valid);
    return true;
}

bool use_in_queue_pair(std::span<std::byte> bytes)
{
    const auto input = prm::view<prm::create_qp_in>::over(bytes);
    if (!input) {
        return false;
    }
    input->put<true>(prm::create_qp_in::wq_umem_valid);
    input->at(prm::create_qp_in::qpc).put<true>(prm::qpc::dbr_umem_valid);
    return true;
}

bool use_in_receive_pool(std::span<std::byte> bytes)
{
    const auto input = prm::view<prm::create_rmp_in>::over(bytes);
    if (!input) {
        return false;
    }
    const auto queue = input->at(prm::create_rmp_in::rmp_context).at(prm::rmpc::wq);
    queue.put<true>(prm::wq::wq_umem_valid);
    queue.put<true>(prm::wq::dbr_umem_valid);
    return true;
}

} // namespace

bool use_umems(devx_command& command)
{
    switch (command.opcode()) {
    case prm::command::create_mkey:
        return use_in_key(command.input);
    case prm::command::create_cq:
        return use_in_completion_queue(command.input);
    case prm::command::create_qp:
        return use_in_queue_pair(command.input);
    case prm::command::create_rmp:
        return use_in_receive_pool(command.input);
    default:
        return true;
    }
}

} // namespace ucxl::softhca
