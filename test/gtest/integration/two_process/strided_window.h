// A window over blocks with gaps as long as the blocks, in pages of its own whose every byte is checked.
//
// Example: strided_window window(session, {.block = 64, .number = 1024}); window.fill(1); ...; window.verify(2);
#pragma once

#include "session.h"

#include <ucp_layout.hpp>

#include <cstring>
#include <optional>

#include <sys/mman.h>

namespace ucxl::two_process
{

struct strided_shape {
    std::size_t block  = 64;
    std::size_t number = 1024;

    constexpr std::size_t length() const { return block * number; }
    constexpr std::size_t span() const { return 2 * length(); }
};

class strided_window
{
public:
    static constexpr std::byte gap{0x5a};

    strided_window(ucp_context_h context, const strided_shape& shape) : _shape(shape)
    {
        make_memory();
        map(context);
    }
    ~strided_window()
    {
        unmap();
        release_memory();
    }
    strided_window(const strided_window&)            = delete;
    strided_window& operator=(const strided_window&) = delete;

    const ucx_layout::window& get() const { return *_window; }
    void* address() const { return _window->address(); }
    std::size_t length() const { return _shape.length(); }
    std::byte* memory() const { return _memory; }
    const strided_shape& shape() const { return _shape; }

    void map(ucp_context_h context)
    {
        const auto layout = ucx_layout::layout::create_strided(
            _shape.block, {{_shape.number, static_cast<std::ptrdiff_t>(2 * _shape.block)}});
        check(layout.has_value(), "ucp_layout_strided failed");
        auto created = ucx_layout::window::map(context, *layout, _memory);
        check(created.has_value(), "ucp_layout_map: {}", ucs_status_string(created ? UCS_OK : created.error()));
        _window.emplace(std::move(*created));
    }
    void unmap() { _window.reset(); }

    void release_memory()
    {
        if (_memory != nullptr) {
            munmap(_memory, _shape.span());
        }
        _memory = nullptr;
    }
    // At an address of the system's choice, or where it was before.
    void make_memory(void* address = nullptr)
    {
        const int fixed = address != nullptr ? MAP_FIXED : 0;
        void* const memory =
            mmap(address, _shape.span(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
        check(memory != MAP_FAILED, "mmap failed");
        _memory = static_cast<std::byte*>(memory);
        std::fill_n(_memory, _shape.span(), gap);
    }

    // Shows new memory, full of gaps' bytes, and so is the memory before, which is returned and stays mapped.
    std::byte* rebind()
    {
        std::byte* const before = _memory;
        make_memory();
        void* const base = _memory;
        check_ok(_window->rebind({&base, 1}), "ucp_layout_rebind");
        std::fill_n(before, _shape.span(), gap);
        return before;
    }

    static std::byte byte_of(unsigned salt, std::size_t i)
    {
        return static_cast<std::byte>((i * 7 + i / 256 + salt * 31) & 0xff);
    }
    static bytes message(std::size_t length, unsigned salt)
    {
        bytes all(length);
        for (std::size_t i = 0; i < length; ++i) {
            all[i] = byte_of(salt, i);
        }
        return all;
    }

    std::byte& packed(std::size_t i) { return _memory[i / _shape.block * 2 * _shape.block + i % _shape.block]; }
    void fill(unsigned salt)
    {
        for (std::size_t i = 0; i < length(); ++i) {
            packed(i) = byte_of(salt, i);
        }
    }
    // The window holds that message, and no gap was written.
    void verify(unsigned salt, const char* moment)
    {
        for (std::size_t i = 0; i < length(); ++i) {
            check(packed(i) == byte_of(salt, i), "{}: byte {} of the window is {:#x}, not {:#x}", moment, i,
                  std::to_integer<unsigned>(packed(i)), std::to_integer<unsigned>(byte_of(salt, i)));
        }
        verify_gaps(moment);
    }
    void verify_gaps(const char* moment)
    {
        for (std::size_t i = 0; i < _shape.span(); ++i) {
            check(i / _shape.block % 2 == 0 || _memory[i] == gap, "{}: byte {}, in a gap, was written", moment, i);
        }
    }
    void verify_untouched(const char* moment) const { verify_untouched(_memory, moment); }
    void verify_untouched(const std::byte* memory, const char* moment) const
    {
        for (std::size_t i = 0; i < _shape.span(); ++i) {
            check(memory[i] == gap, "{}: byte {} was written", moment, i);
        }
    }

    ucp_layout_window_statistics_t copied() const
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
        check_ok(ucp_layout_window_query(_window->get(), &attr), "ucp_layout_window_query");
        return attr.statistics;
    }
    void expect_no_copies(const char* moment) const
    {
        const auto copies = copied();
        check(copies.bytes_read == 0 && copies.bytes_written == 0, "{}: CPUs read {} bytes and wrote {}", moment,
              copies.bytes_read, copies.bytes_written);
    }

    ucs_memory_type_t memory_type() const
    {
        ucp_mem_attr_t attr{};
        attr.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
        check_ok(ucp_mem_query(_window->memh(), &attr), "ucp_mem_query");
        return attr.mem_type;
    }

private:
    strided_shape _shape;
    std::byte* _memory = nullptr;
    std::optional<ucx_layout::window> _window;
};

} // namespace ucxl::two_process
