// The shim's own descriptors in a program's process: they stay away from low numbers, which programs count on, and are
// closed in programs that it executes.
#pragma once

namespace ucxl::softhca
{

// Moves a descriptor to a high number, close-on-exec. Returns the same descriptor when there is no free number, and a
// negative one unchanged.
int to_high_descriptor(int descriptor);

// Opens the file of a descriptor, maybe of another process, a second time. Returns a negative errno on failure. Never
// blocks.
int reopen_descriptor(int process, int descriptor, int flags);

// Whether that descriptor of a process is an eventfd.
bool is_event_fd(int process, int fd);

// A new descriptor of the same file, also of one that cannot be opened anew; a negative errno.
int borrow_descriptor(int process, int fd);

} // namespace ucxl::softhca
