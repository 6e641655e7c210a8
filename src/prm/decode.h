// Text of commands, answers, WQEs, CQEs and events for people: every named field with its value, values by name where
// they have one, and bytes without a field in hexadecimal.
//
// The bytes may be anything: nothing outside them is read, and time and text grow with their number only. Each
// function returns complete lines.
//
//     decode_command(input, output)     create_mkey: opcode=create_mkey uid=1 ...
//                                       memory_key: umr_en=1 lr=1 qpn=0xffffff ...
//                                     answer: status=ok syndrome=0 mkey_index=0x23
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "qpc.h"

namespace ucxl::prm
{

// An input mailbox, and the output mailbox if there is one already.
std::string decode_command(std::span<const std::byte> input, std::span<const std::byte> output = {});

// A send WQE in one piece. The service says whether it has an address vector.
std::string decode_wqe(std::span<const std::byte> wqe, qp_service service = qp_service::rc);

// An entry of a receive queue, or of a shared one, which starts with a link.
std::string decode_receive_wqe(std::span<const std::byte> wqe, bool shared = false);

// An entry of a completion queue, of 64 or 128 bytes.
std::string decode_cqe(std::span<const std::byte> cqe);

// An entry of an event queue.
std::string decode_eqe(std::span<const std::byte> eqe);

} // namespace ucxl::prm
