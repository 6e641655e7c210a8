// What one process has of an operation: memory with known bytes, a window over it, and what the bytes have to be in the
// end.
#pragma once

#include "plan.h"

#include "support/spec_memory.h"

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <string>

#include <ucp_layout.hpp>

namespace ucxl::soak
{

class side
{
public:
    // Throws std::runtime_error if something cannot be made.
    side(ucp_context_h context, memory_kind kind, const test::spec& layout, std::uint64_t seed);
    side(const side&)            = delete;
    side& operator=(const side&) = delete;

    bool is_shared() const { return _region.has_value(); }
    void* address() const { return _window ? _window->address() : _actual->bases()[0]; }
    std::uint64_t length() const { return _actual->packed_length(); }
    ucp_mem_h memh() const { return _window->memh(); }
    std::vector<std::byte> bytes() const { return _expected->gather(); } // as they are at first
    // From now on the bytes have to be these.
    void expect(std::span<const std::byte> bytes) { _expected->scatter(0, bytes); }
    // From now on they may be anything, but nothing beside them may change.
    void expect_nothing() { _expected->scatter(0, _actual->gather()); }
    std::string difference() const { return _actual->first_difference(*_expected); }

private:
    std::optional<ucx_layout::memory> _region;
    std::optional<std::pmr::monotonic_buffer_resource> _resource; // the memory of the region
    std::optional<test::spec_memory> _actual, _expected;
    std::optional<ucx_layout::layout> _layout;
    std::optional<ucx_layout::window> _window;
};

} // namespace ucxl::soak
