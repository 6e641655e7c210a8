// What the device is told and what it answers, as text for people: every field that has a name with its value, numbers
// that have a name by name, and whatever has none in hexadecimal.
//
// The bytes may be anything: nothing outside them is read, and time and text grow with their number only. Each function
// returns complete lines.
//
//     decode_command(in, out)     create_mkey: opcode=create_mkey uid=1 ...
//                                   memory_key: umr_en=1 lr=1 qpn=0xffffff ...
//                                 answer: status=ok syndrome=0 mkey_index=0x23
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "qpc.h"

namespace ucxl::prm
{

// An input mailbox, with the output mailbox where there is one already.
std::string decode_command(std::span<const std::byte> in, std::span<const std::byte> out = {});

// One send WQE, in one piece. The service says whether it has an address vector.
std::string decode_wqe(std::span<const std::byte> wqe, qp_service service = qp_service::rc);

// One entry of a receive queue, or of a shared one, which begins with a link.
std::string decode_receive_wqe(std::span<const std::byte> wqe, bool shared = false);

// One entry of a completion queue, of 64 or 128 bytes.
std::string decode_cqe(std::span<const std::byte> cqe);

// One entry of an event queue.
std::string decode_eqe(std::span<const std::byte> eqe);

} // namespace ucxl::prm
