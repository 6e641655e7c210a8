// Remote keys that travel between the peers, with their addresses.
#pragma once

#include "session.h"

namespace ucxl::two_process
{

using test::pack_key;

// Newer UCXs put numbers behind the parts of the memory domains, and crash if these are wrong. Writes those of the
// packed key `original` behind the parts of `changed`, whose parts may have other lengths. `changed` has room behind
// its end.
void restore_tail(std::span<std::byte> changed, std::span<const std::byte> original);

// Appends a message that remote_key::take() understands.
void append_key(bytes& to, ucp_context_h context, ucp_mem_h memh, const void* address);

class remote_key
{
public:
    // Takes the bytes of append_key() from the front of a message.
    remote_key(ucp_ep_h endpoint, std::span<const std::byte>& from);

    std::uint64_t address() const { return _address; }
    ucp_rkey_h get() const { return _key.get(); }

private:
    std::uint64_t _address = 0;
    test::key_handle _key;
};

} // namespace ucxl::two_process
