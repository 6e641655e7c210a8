// A device that has failed for good (--fault fatal): it executes nothing any more and answers nothing.
//
// As on a card whose driver has given up on it: processes are told (local_catastrophic), doorbells and messages from
// others go nowhere, commands that end objects succeed and all others are refused.
#pragma once

#include "arena.h"
#include "prm/command.h"

namespace ucxl::softhca
{

inline bool has_failed(const arena& memory, function_id which)
{
    return (memory.failed_devices >> memory.function_table[which].device & 1) != 0;
}

// The device of that function, for all its functions. Tells the processes that have it open.
void fail_device(environment& device, function_id which);

// Whether a device that failed lets the command pass: the kernel cleans up behind it.
bool ends_an_object(prm::command opcode);

} // namespace ucxl::softhca
