// A device that has failed for good (--fault fatal): it executes nothing and answers nothing.
//
// It behaves as a card whose driver has given up on it: processes get the event local_catastrophic, doorbells and
// messages from others are dropped, commands that destroy objects succeed, and all others are refused.
#pragma once

#include "arena.h"
#include "prm/command.h"

namespace ucxl::softhca
{

inline bool has_failed(const arena& memory, function_id function)
{
    return (memory.failed_devices >> memory.function_table[function].device & 1) != 0;
}

// Fails the device of that function, with all its functions, and tells the processes that have it open.
void fail_device(environment& device, function_id function);

// Whether a failed device still executes the command, so that the kernel can clean up.
bool ends_an_object(prm::command opcode);

} // namespace ucxl::softhca
