// A command that the program itself wrote: two mailboxes of the program's length.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"
#include "prm/command.h"

namespace ucxl::softhca
{

class devx_command
{
public:
    // Copies the input mailbox: 0 or an errno.
    int take(uverbs_call& call, std::uint16_t in_attribute, std::uint16_t out_attribute);

    prm::command opcode() const { return header().get(prm::any_input::opcode); }
    prm::const_view<prm::any_input> header() const { return *prm::const_view<prm::any_input>::over(input); }

    // Sends the command for the context of the call.
    prm::command_status send(uverbs_call& call);

    // The same, and copies the answer. EREMOTEIO when the device refused; the
    // answer says why.
    int run(uverbs_call& call);

    std::vector<std::byte> input;
    std::vector<std::byte> output;

private:
    std::uint16_t _out_attribute = 0;
};

// Makes the command use UMEMs, because only the kernel may give lists of pages. False when the mailbox is too short for
// its command.
bool use_umems(devx_command& command);

} // namespace ucxl::softhca
