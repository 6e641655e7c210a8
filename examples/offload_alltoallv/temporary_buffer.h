// Memory of a host for one message, allocated for it and released after it: plain memory, or memory with gaps that a
// window shows as contiguous. It is mapped in UCP, so that it can be exported.
//
// Invariant: bytes that do not belong to the message keep the value `gap`.
//
//     temporary_buffer sent(context, plan, message, plan.form_of_sender(message), length);
//     sent.fill();    const exported_buffer handle = sent.exported();    ...    sent.verify("sent");
#pragma once

#include "exchange_plan.h"

#include <optional>
#include <span>
#include <string>
#include <ucp_layout.hpp>
#include <vector>

namespace examples
{

// What the DPU process gets.
struct exported_buffer {
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
    std::string handle; // of ucp_memh_pack
};

class temporary_buffer
{
public:
    temporary_buffer(ucp_context_h context, const exchange_plan& plan, message_of_plan message, memory_form form);
    ~temporary_buffer();
    temporary_buffer(const temporary_buffer&)            = delete;
    temporary_buffer& operator=(const temporary_buffer&) = delete;

    bool is_window() const { return _window.has_value(); }
    std::size_t length_bytes() const { return _length; }
    void fill();
    exported_buffer exported() const;
    // Throws unless the memory holds the bytes of the message and nothing else. name: for the text.
    void verify(const char* name) const;

private:
    static constexpr std::byte gap{0xc3};

    // Of the memory; by arithmetic, not by the library.
    std::size_t place_of(std::size_t position) const;
    // All bytes of the memory, with the message at its places.
    std::vector<std::byte> expected() const;
    std::span<std::byte> memory() const;
    void map();

    ucp_context_h _context;
    const exchange_plan& _plan;
    message_of_plan _message;
    memory_form _form;
    std::size_t _length;
    std::byte* _memory    = nullptr;
    ucp_mem_h _registered = nullptr; // of plain memory
    std::optional<ucx_layout::window> _window;
};

} // namespace examples
