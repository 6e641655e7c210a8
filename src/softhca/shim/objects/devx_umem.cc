#include "devx_command.h"
#include "prm/cq.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/rq.h"

namespace ucxl::softhca
{

namespace
{

// A key of entries in the command itself has no memory.
bool use_in_key(std::span<std::byte> bytes)
{
    const auto in = prm::view<prm::create_mkey_in>::over(bytes);
    if (!in) {
        return false;
    }
    const auto mode = prm::access_mode(in->at(prm::create_mkey_in::memory_key));
    if (mode != prm::mkey_access_mode::klm && mode != prm::mkey_access_mode::ksm) {
        in->put<true>(prm::create_mkey_in::mkey_umem_valid);
    }
    return true;
}

bool use_in_completion_queue(std::span<std::byte> bytes)
{
    const auto in = prm::view<prm::create_cq_in>::over(bytes);
    if (!in) {
        return false;
    }
    in->put<true>(prm::create_cq_in::cq_umem_valid);
    in->at(prm::create_cq_in::cqc).put<true>(prm::cqc::dbr_umem_valid);
    return true;
}

bool use_in_queue_pair(std::span<std::byte> bytes)
{
    const auto in = prm::view<prm::create_qp_in>::over(bytes);
    if (!in) {
        return false;
    }
    in->put<true>(prm::create_qp_in::wq_umem_valid);
    in->at(prm::create_qp_in::qpc).put<true>(prm::qpc::dbr_umem_valid);
    return true;
}

bool use_in_receive_pool(std::span<std::byte> bytes)
{
    const auto in = prm::view<prm::create_rmp_in>::over(bytes);
    if (!in) {
        return false;
    }
    const auto queue = in->at(prm::create_rmp_in::rmp_context).at(prm::rmpc::wq);
    queue.put<true>(prm::wq::wq_umem_valid);
    queue.put<true>(prm::wq::dbr_umem_valid);
    return true;
}

} // namespace

bool use_umems(devx_command& command)
{
    switch (command.opcode()) {
    case prm::command::create_mkey:
        return use_in_key(command.in);
    case prm::command::create_cq:
        return use_in_completion_queue(command.in);
    case prm::command::create_qp:
        return use_in_queue_pair(command.in);
    case prm::command::create_rmp:
        return use_in_receive_pool(command.in);
    default:
        return true;
    }
}

} // namespace ucxl::softhca
