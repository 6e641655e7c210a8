// Checks that the loaded UCX is the one whose private interface this library was built for.
//
// A mismatch would be undefined behaviour inside UCX, so the component is registered only after a yes. The class
// objects of libuct hold the size of the structures they initialise. These sizes also tell a build with statistics from
// one without: with statistics every base object has one more pointer, and its init function two more arguments.
//
// Example: if (auto ok = abi::abi_check(); !ok) { report(ok.error()); }
#pragma once

#include "sys/error.h"

#include <cstddef>

namespace ucxl::abi
{

struct ucx_facts {
    unsigned major;
    unsigned minor;
    unsigned release;
    std::size_t base_iface_length; // bytes, from the class objects
    std::size_t base_ep_length;
};

// The facts about the UCX of this process.
ucx_facts loaded_ucx();

// Errors: unsupported; the message names what was found, what is supported, and the remedy.
result<void> abi_check(const ucx_facts& facts = loaded_ucx());

} // namespace ucxl::abi
