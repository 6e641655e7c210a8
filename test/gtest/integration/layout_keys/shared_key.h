// What becomes of an alias when the key it stands for is changed or destroyed. Two processes: one has a key of a host's
// memory, the other one uses it on another function of the card, such as that of a DPU. contrib/hw-check starts both.
#pragma once

namespace ucxl::test
{

// Does what the other process asks for. Returns an exit status.
int key_owner();

// Asks for each step, uses the alias after it, and prints "CLAIM ok|differs|skipped NOTE" for each claim, or for one
// about times "CLAIM times NAME=MICROSECONDS ...".
int key_user();

} // namespace ucxl::test
