#include "layout_image.h"

#include "tools/common/number.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>

namespace ucxl::perf
{

using tools::give_up;
using tools::value_of;

namespace
{

constexpr std::byte canary{0xc9};
// Space around every source, and its alignment: larger than any vector store that could run over.
constexpr std::size_t margin = 256;

std::size_t round_up(std::size_t value)
{
    return (value + margin - 1) / margin * margin;
}

// Differs between neighbours, and between the same bytes of successive messages.
std::byte pattern_of(std::uint64_t message, std::uint64_t packed_offset)
{
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    return static_cast<std::byte>(((packed_offset + 1) * odd + message * (odd << 7)) >> 56);
}

} // namespace

anonymous_mapping anonymous_mapping::create(std::size_t length)
{
    anonymous_mapping result;
    if (length == 0) {
        return result;
    }
    void* const address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        give_up("cannot allocate {} bytes: {}", tools::format_size(length), std::strerror(errno));
    }
    result._data = static_cast<std::byte*>(address);
    result._size = length;
    return result;
}

anonymous_mapping::~anonymous_mapping()
{
    if (_data != nullptr) {
        munmap(_data, _size);
    }
}

layout_image::layout_image(ucx_layout::layout layout)
    : _layout(std::move(layout)), _packed_length(_layout.packed_length())
{
}

layout_image layout_image::create(ucp_context_h context, ucx_layout::layout layout, image_place place)
{
    layout_image image(std::move(layout));
    image.place_sources(context, place);
    image.list_blocks();
    image.clear();
    return image;
}

namespace
{

bool is_heap_preloaded()
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.contains("libucx_layout_heap")) {
            return true;
        }
    }
    return false;
}

} // namespace

std::byte* layout_image::take_memory(std::size_t length, image_place place)
{
    if (place == image_place::region && length > 0) {
        const tools::held_log log;
        _of_region.emplace(value_of(ucx_layout::memory::allocate(length), log, "allocating shared memory"));
        return _of_region->bytes().data();
    }
    if (place == image_place::heap) {
        if (!is_heap_preloaded()) {
            give_up("-m heap: the heap is not preloaded; start both processes with LD_PRELOAD=libucx_layout_heap.so");
        }
        _of_heap.reset(std::malloc(length));
        if (_of_heap == nullptr) {
            give_up("cannot allocate {} bytes", tools::format_size(length));
        }
        return static_cast<std::byte*>(_of_heap.get());
    }
    _own = anonymous_mapping::create(length);
    return _own.data();
}

void layout_image::place_sources(ucp_context_h context, image_place place)
{
    const std::uint32_t num_sources = tools::attributes(_layout).num_sources;
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> bounds; // of the bytes
    std::size_t total = 0;
    for (std::uint32_t source = 0; source < num_sources; ++source) {
        const ucp_layout_bounds_t of_bytes = tools::bounds(_layout, source);
        bounds.emplace_back(of_bytes.true_lb, of_bytes.true_ub);
        total += round_up(static_cast<std::size_t>(of_bytes.true_ub - of_bytes.true_lb)) + 2 * margin;
    }
    if (place == image_place::window) {
        const tools::held_log log;
        _allocated.emplace(value_of(ucx_layout::window::allocate(context, _layout), log, "allocating a window"));
        _bases.resize(num_sources);
        tools::check(_allocated->bases(_bases), "ucp_layout_window_bases");
        for (std::uint32_t source = 0; source < num_sources; ++source) {
            std::byte* const base = static_cast<std::byte*>(_bases[source]);
            _regions.push_back({base + bounds[source].first, base + bounds[source].second});
        }
        return;
    }
    std::byte* begin = take_memory(total, place);
    for (const auto& [lower, upper] : bounds) {
        std::byte* const end = begin + round_up(static_cast<std::size_t>(upper - lower)) + 2 * margin;
        _regions.push_back({begin, end});
        _bases.push_back(begin + margin - lower);
        begin = end;
    }
}

void layout_image::list_blocks()
{
    _blocks.reserve(tools::attributes(_layout).num_blocks);
    const auto add = [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) -> ucs_status_t {
        auto* const image = static_cast<layout_image*>(arg);
        try {
            image->_blocks.push_back({static_cast<std::byte*>(image->_bases[source]) + offset, length});
        } catch (const std::bad_alloc&) {
            return UCS_ERR_NO_MEMORY;
        }
        return UCS_OK;
    };
    tools::check(ucp_layout_walk(_layout.get(), 0, _packed_length, add, this), "ucp_layout_walk");
}

void layout_image::fill(std::uint64_t message)
{
    std::uint64_t packed = 0;
    for (const memory_block& block : _blocks) {
        for (std::size_t i = 0; i < block.length; ++i) {
            block.address[i] = pattern_of(message, packed++);
        }
    }
}

std::vector<std::byte*> layout_image::lines() const
{
    constexpr std::uintptr_t line_length = 64;
    const auto line_of = [](const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place) / line_length; };
    std::vector<std::byte*> places;
    for (const memory_block& block : _blocks) {
        std::byte* const end = block.address + block.length;
        for (std::byte* place = block.address; place < end;) {
            if (places.empty() || line_of(places.back()) != line_of(place)) {
                places.push_back(place);
            }
            place += line_length - reinterpret_cast<std::uintptr_t>(place) % line_length;
        }
    }
    return places;
}

void layout_image::clear()
{
    for (const region& source : _regions) {
        std::fill(source.begin, source.end, canary);
    }
}

std::string layout_image::check(std::uint64_t message, std::optional<std::byte> last)
{
    std::uint64_t packed = 0;
    std::string wrong;
    for (std::size_t index = 0; index < _blocks.size(); ++index) {
        const memory_block& block = _blocks[index];
        for (std::size_t i = 0; i < block.length; ++i, ++packed) {
            const bool is_last       = last && packed + 1 == _packed_length;
            const std::byte expected = is_last ? *last : pattern_of(message, packed);
            if (block.address[i] != expected && wrong.empty()) {
                wrong = fmt::format("packed byte {} (byte {} of block {}) is {:#04x}, not {:#04x}", packed, i, index,
                                    std::to_integer<unsigned>(block.address[i]), std::to_integer<unsigned>(expected));
            }
            // The check of gaps expects canaries everywhere else.
            block.address[i] = canary;
        }
    }
    if (wrong.empty()) {
        wrong = check_gaps();
    }
    clear();
    return wrong;
}

std::string layout_image::check_outside()
{
    // The check of gaps expects canaries everywhere.
    for (const memory_block& block : _blocks) {
        std::fill_n(block.address, block.length, canary);
    }
    const std::string wrong = check_gaps();
    clear();
    return wrong;
}

std::string layout_image::check_gaps() const
{
    for (std::size_t source = 0; source < _regions.size(); ++source) {
        const std::byte* const begin = _regions[source].begin;
        const std::byte* const end   = _regions[source].end;
        const std::byte* const found = std::find_if(begin, end, [](std::byte b) { return b != canary; });
        if (found != end) {
            return fmt::format("a byte outside the layout was written: source {}, offset {}", source,
                               found - static_cast<const std::byte*>(_bases[source]));
        }
    }
    return {};
}

} // namespace ucxl::perf
