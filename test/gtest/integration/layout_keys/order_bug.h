// Small programs, each with a bug that a card may punish and that no program notices on a device that executes
// everything at once, in the order of posting.
#pragma once

#include <array>

namespace ucxl::test
{

enum order_bug_result {
    order_bug_right    = 0, // the right bytes, or the right error
    order_bug_wrong    = 3,
    order_bug_no_setup = 5,
};

inline constexpr const char* order_bug_names[] = {
    "bind_without_fence",      // a key is used on the queue that binds it, without a fence in between
    "key_used_early",          // a key is used on a second queue before its binding has completed
    "reuse_while_invalidated", // memory is used for other data before the invalidation of its key has completed
    "read_without_fence",      // what was read is sent on before the read has completed
    "last_byte_polled",        // the last byte of a message is taken for the whole message
};

// Runs the program that UCXL_ORDER_BUG names, without its bug if UCXL_ORDER_RIGHT is set.
int order_bug();

} // namespace ucxl::test
