// Memory for one layout, filled and checked. The described bytes hold a pattern of the message number. All other bytes
// (gaps, and a margin around each source) hold a canary, so that a stray byte is detected.
//
//     image.fill(7);                        the pattern of message 7 at the described bytes
//     image.clear();                        canaries everywhere
//     image.check(7);                       "" or what is wrong; leaves the image cleared
//
// Invariant: bases()[s] is where offset 0 of source s lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <ucp_layout.hpp>
#include <utility>
#include <vector>

namespace ucxl::perf
{

// Whose the memory is.
enum class image_place {
    own,    // of this process
    heap,   // the same, from malloc() of the preloaded heap
    region, // of ucp_layout_memory_create()
    window, // of a window made with UCP_LAYOUT_MAP_FLAG_ALLOCATE
};

struct memory_block {
    std::byte* address;
    std::size_t length;
};

class anonymous_mapping
{
public:
    static anonymous_mapping create(std::size_t length);
    anonymous_mapping() = default;
    anonymous_mapping(anonymous_mapping&& other) noexcept { swap(other); }
    anonymous_mapping& operator=(anonymous_mapping&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~anonymous_mapping();
    std::byte* data() const { return _data; }
    std::size_t size() const { return _size; }

private:
    void swap(anonymous_mapping& other) noexcept
    {
        std::swap(_data, other._data);
        std::swap(_size, other._size);
    }

    std::byte* _data  = nullptr;
    std::size_t _size = 0;
};

class layout_image
{
public:
    static layout_image create(ucp_context_h context, ucx_layout::layout layout, image_place place);

    const ucx_layout::layout& layout() const { return _layout; }
    std::span<void* const> bases() const { return _bases; }
    // In packed order.
    std::span<const memory_block> blocks() const { return _blocks; }
    std::size_t packed_length() const { return _packed_length; }
    // A described byte in each cache line that has one.
    std::vector<std::byte*> lines() const;
    // The memory of the last packed byte. The layout must not be empty.
    std::byte* last_byte() const { return _blocks.back().address + _blocks.back().length - 1; }
    // The window that owns the memory, if the library allocated it.
    const ucx_layout::window* allocated() const { return _allocated ? &*_allocated : nullptr; }

    void fill(std::uint64_t message);
    void clear();
    // "" or where a byte outside the layout was written, whatever the described bytes are; leaves the image cleared.
    std::string check_outside();
    // last: the expected last packed byte, if the test uses it as a signal.
    std::string check(std::uint64_t message, std::optional<std::byte> last = std::nullopt);

private:
    // One source with its margins.
    struct region {
        std::byte* begin;
        std::byte* end;
    };

    void place_sources(ucp_context_h context, image_place place);
    std::byte* take_memory(std::size_t length, image_place place);
    void list_blocks();
    std::string check_gaps() const;

    explicit layout_image(ucx_layout::layout layout);

    ucx_layout::layout _layout;
    std::size_t _packed_length;
    anonymous_mapping _own;
    std::unique_ptr<void, decltype(&std::free)> _of_heap{nullptr, std::free};
    std::optional<ucx_layout::memory> _of_region;
    std::optional<ucx_layout::window> _allocated;
    std::vector<void*> _bases;
    std::vector<region> _regions;
    std::vector<memory_block> _blocks;
};

} // namespace ucxl::perf
