// Sends commands of one process on one function, as a DEVX context or the kernel does. Each command has valid fields,
// and a test changes those that it is about.
//
//     commander device(machine.start(), 0, 1);
//     const std::uint32_t pd = device.alloc_pd();
//     auto input = device.cq_input(16);
//     input.put<99>(prm::create_cq_in::cq_umem_id);
//     EXPECT_EQ(device.send(input), prm::command_status::bad_resource);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "prm/cq.h"
#include "prm/mkey.h"
#include "prm/object.h"
#include "prm/qp.h"
#include "prm/resource.h"
#include "prm/rq.h"
#include "test_host.h"

namespace ucxl::softhca::test
{

// An input mailbox: a structure and the bytes after it.
template <typename S>
struct mailbox {
    std::vector<std::byte> bytes = std::vector<std::byte>(S::size_bytes);

    prm::view<S> operator*() { return *prm::view<S>::over(bytes); }
};

struct queue_memory {
    std::uint32_t umem = 0;
    std::span<std::byte> bytes;
};

// The objects of a queue pair. Those with number 0 are made with it.
struct qp_parts {
    prm::qp_service service  = prm::qp_service::rc;
    std::uint32_t pd         = 0;
    std::uint32_t uar        = 0;
    std::uint32_t send_cq    = 0;
    std::uint32_t receive_cq = 0;
    std::uint32_t srq        = 0;
    unsigned log_send        = 4;
    unsigned log_receive     = 4;
};

class commander
{
public:
    commander(test_process& process, function_id function, std::uint16_t uid)
        : _process(process), _function(function), _uid(uid)
    {
    }

    test_process& process() const { return _process; }
    function_id function() const { return _function; }
    std::uint16_t uid() const { return _uid; }

    // The answer is in out() afterwards.
    prm::command_status send(std::span<const std::byte> input, std::size_t out_bytes = 4112);

    template <typename S>
    prm::command_status send(mailbox<S>& input, std::size_t out_bytes = 4112)
    {
        return send(std::span<const std::byte>(input.bytes), out_bytes);
    }

    template <typename S>
    prm::const_view<S> out() const
    {
        return *prm::const_view<S>::over(std::span<const std::byte>(_out));
    }
    std::span<const std::byte> out_bytes() const { return _out; }

    // Each of these throws when the device refuses. Memory comes from the process and is not freed.
    std::uint32_t alloc_pd();
    std::uint32_t alloc_uar();
    queue_memory umem(std::size_t bytes, std::uint32_t access = 1);
    std::uint32_t create_cq(unsigned log_size = 4);
    std::uint32_t create_srq(unsigned log_size = 4, unsigned log_stride = 5);
    std::uint32_t create_qp(qp_parts parts = {});
    std::uint32_t create_dct(std::uint64_t access_key = 1);
    // A key for memory with all rights: index << 8 | variant.
    std::uint32_t create_key(std::uint32_t pd, std::span<std::byte> memory, std::uint8_t variant = 0);

    // Mailboxes of valid commands.
    mailbox<prm::create_cq_in> cq_input(unsigned log_size = 4);
    mailbox<prm::create_rmp_in> rmp_input(unsigned log_size = 4, unsigned log_stride = 5);
    mailbox<prm::create_qp_in> qp_input(qp_parts parts = {});
    mailbox<prm::create_dct_in> dct_input(std::uint64_t access_key = 1);
    mailbox<prm::create_mkey_in> key_input(std::uint32_t pd, std::span<std::byte> memory);
    mailbox<prm::create_mkey_in> klm_input(std::uint32_t pd, std::span<const std::byte> entries, std::uint32_t room);

    // A transition with fields that connect to `peer` at `lid`.
    mailbox<prm::modify_qp_in> transition(prm::command opcode, std::uint32_t qpn, std::uint16_t lid = 1,
                                          std::uint32_t peer = 0);
    // From reset to ready to send.
    void connect(std::uint32_t qpn, std::uint16_t lid, std::uint32_t peer);

    // For commands that only name an object at bit 0x48.
    prm::command_status plain(prm::command opcode, std::uint32_t number);

private:
    std::uint32_t must(prm::command_status status, std::uint32_t number) const;

    test_process& _process;
    function_id _function;
    std::uint16_t _uid;
    std::vector<std::byte> _out;
};

} // namespace ucxl::softhca::test
