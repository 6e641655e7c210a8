// Is the UCX that was loaded the one whose private interface this library was written for?
//
// A mismatch would be undefined behaviour inside UCX, so the component is not registered without a yes. The class
// objects of libuct carry the size of the structures they initialise, which also tells a build with statistics from one
// without: with statistics every base object has one pointer more and its init function two arguments more.
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
    std::size_t base_iface_length; // bytes, as the class objects say
    std::size_t base_ep_length;
};

// Of the UCX in this process.
ucx_facts loaded_ucx();

// Errors: unsupported, with what was found, what is supported and what to do.
result<void> abi_check(const ucx_facts& of = loaded_ucx());

} // namespace ucxl::abi
