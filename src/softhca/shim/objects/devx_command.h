// A command of the program itself: mailboxes as bytes, both of the program's length.
#pragma once

#include <cstdint>
#include <vector>

#include "prm/command.h"
#include "softhca/shim/uverbs/call.h"

namespace ucxl::softhca
{

class devx_command
{
public:
    // Copies the input mailbox: 0 or an errno.
    int take(uverbs_call& call, std::uint16_t in_attribute, std::uint16_t out_attribute);

    prm::command opcode() const { return input().get(prm::any_input::opcode); }
    prm::const_view<prm::any_input> input() const { return *prm::const_view<prm::any_input>::over(in); }

    // Sends it in the name of the call's context and copies the answer. EREMOTEIO: the device refused, and the answer
    // says why.
    int run(uverbs_call& call);

    std::vector<std::byte> in;
    std::vector<std::byte> out;

private:
    std::uint16_t _out_attribute = 0;
};

// Lists of pages are the kernel's: whatever a program's command says, the memory it names is a UMEM. False where the
// mailbox is too short for its command.
bool use_umems(devx_command& command);

} // namespace ucxl::softhca
