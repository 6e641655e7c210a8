// Descriptors of our own in somebody else's process: they stay out of the way of programs that count on low numbers,
// and of their children.
#pragma once

namespace ucxl::softhca
{

// Moves a descriptor to a high number, close-on-exec. The same one where there is no room; negative stays negative.
int to_high_descriptor(int descriptor);

// Another description of an open file, maybe of another process; negative errno. Never blocks.
int reopen_descriptor(int process, int descriptor, int flags);

} // namespace ucxl::softhca
