// Memory under a window, and beside it what each of its bytes has to be, gaps and margins too.
//
// Example:
//     shown_memory memory(spec::strided(spec::block(64), {{512, 128}}));
//     check_ok(memory.map(peer.context()), "map"); memory.exchange(peer);
#pragma once

#include "own_peer.h"
#include "support/spec_memory.h"

#include <ucp_layout.hpp>

#include <optional>
#include <string>

namespace ucxl::test
{

class shown_memory
{
public:
    explicit shown_memory(spec_ptr spec);

    bool is_mapped() const { return _window.has_value(); }
    const ucx_layout::window& window() const { return *_window; }
    bool has_key() const;
    std::string why_no_key() const;
    std::size_t length() const { return _all.back()->actual.packed_length(); }
    ucs_status_t map(ucp_context_h context);
    void unmap() { _window.reset(); }
    // Shows other memory with other bytes. If that fails the window shows the memory before, or the check below does
    // not hold.
    ucs_status_t rebind();

    // Sends the window to host memory, and host memory to the window, and checks every byte. Throws
    // std::runtime_error.
    void exchange(own_peer& peer);
    // From this window to another one.
    ucs_status_t send_to(shown_memory& other, own_peer& peer);
    void verify() const;

private:
    struct memory {
        spec_memory actual;
        spec_memory expected;

        memory(const spec& spec, std::uint64_t seed) : actual(spec, seed), expected(spec, seed) {}
    };

    std::vector<void*> bases(const memory& of) const;

    spec_ptr _spec;
    ucx_layout::layout _layout;
    std::uint64_t _seed = 1;
    std::vector<std::unique_ptr<memory>> _all; // the shown one is the last
    std::optional<ucx_layout::window> _window;
};

} // namespace ucxl::test
