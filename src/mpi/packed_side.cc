#include "packed_side.h"

#include "mpi_functions.h"
#include "rule.h"
#include "sys/pages.h"
#include "type_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace ucxl::mpi
{

// False if the elements cannot be packed here.
bool packed_side::describe(const element_block& elements, block& made)
{
    made = {.address     = elements.address,
            .count       = elements.count,
            .size        = 0,
            .offset      = 0,
            .layout      = nullptr,
            .known       = find_known(elements.type),
            .packed_type = elements.type,
            .use         = elements.use};
    if (elements.count < 0) {
        return false;
    }
    if (elements.count == 0) {
        made.packed_type = MPI_BYTE;
        return true;
    }
    if (made.known != nullptr) {
        made.layout = made.known->layout_to_copy(elements.count, has(elements.use, usage::updates) ? direction::receive
                                                                                                   : direction::send);
        if (made.layout == nullptr) {
            return false;
        }
        made.size        = made.known->layout()->size;
        made.packed_type = made.known->packed_type();
        return true;
    }
    const auto size = size_of_number(elements.type);
    made.size       = size.value_or(0);
    return size.has_value();
}

std::optional<packed_side> packed_side::describe_all(const element_block* blocks, std::size_t number)
{
    packed_side made;
    made._blocks.reserve(number);
    for (std::size_t i = 0; i < number; ++i) {
        block each{};
        if (!describe(blocks[i], each)) {
            return std::nullopt;
        }
        each.offset = made._length;
        made._length += each.count * each.size;
        made._blocks.push_back(std::move(each));
    }
    return made;
}

const char* packed_side::why_not_packed() const
{
    traffic moved;
    for (const block& each : _blocks) {
        if (each.known != nullptr && each.layout != nullptr && !each.layout->is_block) {
            moved.length += each.length();
            moved.num_blocks += 2; // or more; the rule for copies does not ask
        }
    }
    return why_not_worth(moved, means::copy);
}

void packed_side::note_copies() const
{
    for (const block& each : _blocks) {
        if (each.known != nullptr) {
            each.known->note_copy(each.count * each.size);
        }
    }
}

std::optional<packed_side> packed_side::plan(const element_block* blocks, std::size_t number)
{
    bool has_known = false;
    for (std::size_t i = 0; i < number; ++i) {
        has_known = has_known || find_known(blocks[i].type) != nullptr;
    }
    if (!has_known) {
        return std::nullopt;
    }
    auto made = describe_all(blocks, number);
    if (!made || made->why_not_packed() != nullptr) {
        return std::nullopt;
    }
    made->note_copies();
    return made;
}

std::optional<packed_side> packed_side::of(const std::vector<element_block>& blocks) noexcept
{
    try {
        auto made = plan(blocks.data(), blocks.size());
        if (made) {
            made->_memory = staging::acquire(static_cast<std::size_t>(made->_length));
        }
        return made && made->_memory != nullptr ? std::move(made) : std::nullopt;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

std::optional<packed_side> packed_side::of(const void* address, MPI_Count count, MPI_Datatype type,
                                           direction way) noexcept
{
    auto made = without_memory(address, count, type, way);
    if (made) {
        made->_memory = staging::acquire(static_cast<std::size_t>(made->_length));
    }
    return made && made->_memory != nullptr ? std::move(made) : std::nullopt;
}

std::optional<packed_side> packed_side::without_memory(const void* address, MPI_Count count, MPI_Datatype type,
                                                       direction way) noexcept
{
    try {
        const element_block only{static_cast<std::byte*>(const_cast<void*>(address)), count, type,
                                 way == direction::send ? usage::reads : usage::updates};
        return plan(&only, 1);
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

std::optional<packed_side> packed_side::pair(const element_block& from, const element_block& into, pairs taken) noexcept
{
    try {
        const element_block both[] = {from, into};
        auto made = taken == pairs::all ? describe_all(both, std::size(both)) : plan(both, std::size(both));
        if (!made || made->_blocks[0].length() != made->_blocks[1].length()) {
            return std::nullopt;
        }
        return made;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

bool packed_side::gather(const block& elements, std::size_t offset, std::size_t length, std::byte* packed)
{
    if (length == 0) {
        return true;
    }
    if (elements.layout == nullptr) {
        std::memcpy(packed, elements.address + offset, length);
        return true;
    }
    void* const base = base_of(elements.address, *elements.layout);
    return ucp_layout_gather(elements.layout->layout.get(), &base, 1, offset, length, packed) == UCS_OK;
}

bool packed_side::scatter(const block& elements, std::size_t offset, std::size_t length, const std::byte* packed)
{
    if (length == 0) {
        return true;
    }
    if (elements.layout == nullptr) {
        std::memcpy(elements.address + offset, packed, length);
        return true;
    }
    void* const base = base_of(elements.address, *elements.layout);
    return ucp_layout_scatter(elements.layout->layout.get(), &base, 1, offset, length, packed) == UCS_OK;
}

void packed_side::pack() const
{
    for (const block& each : _blocks) {
        if (has(each.use, usage::reads)) {
            gather(each, 0, each.length(), _memory.get() + each.offset);
        }
    }
}

void packed_side::pack_updated() const
{
    for (const block& each : _blocks) {
        if (each.use == usage::updates) {
            gather(each, 0, each.length(), _memory.get() + each.offset);
        }
    }
}

namespace
{

// Blocks of a layout, of which many share a page.
struct readable_blocks {
    const std::byte* base;
    const std::byte* first = nullptr; // readable bytes, which were asked for last
    const std::byte* end   = nullptr;

    static ucs_status_t visit(void* self, std::uint32_t /*source*/, std::ptrdiff_t offset, std::size_t length)
    {
        auto& own                    = *static_cast<readable_blocks*>(self);
        const std::byte* const start = own.base + offset;
        if (start < own.first || start + length > own.end) {
            const auto address = reinterpret_cast<std::uintptr_t>(start);
            const auto in_page = static_cast<std::size_t>(address % page_length());
            const auto up_to   = round_to_pages(in_page + length);
            own.first          = start - in_page;
            own.end            = own.first + up_to;
            if (!is_readable(own.first, up_to)) {
                return UCS_ERR_INVALID_ADDR;
            }
        }
        return UCS_OK;
    }
};

} // namespace

// Pages between the elements, and between their blocks, may belong to others or to nobody.
bool packed_side::block::is_readable() const
{
    if (length() == 0) {
        return true;
    }
    if (layout == nullptr) {
        return ucxl::is_readable(address, length());
    }
    readable_blocks seen{static_cast<const std::byte*>(base_of(address, *layout))};
    return ucp_layout_walk(layout->layout.get(), 0, length(), readable_blocks::visit, &seen) == UCS_OK;
}

void packed_side::pack_if_readable() const
{
    for (const block& each : _blocks) {
        if (has(each.use, usage::reads) && each.is_readable()) {
            gather(each, 0, each.length(), _memory.get() + each.offset);
        }
    }
}

void packed_side::unpack() const
{
    for (const block& each : _blocks) {
        if (has(each.use, usage::updates)) {
            scatter(each, 0, each.length(), _memory.get() + each.offset);
        }
    }
}

void packed_side::pack_some(std::size_t index, MPI_Count first, MPI_Count count) const
{
    const block& one  = _blocks[index];
    const auto offset = static_cast<std::size_t>(first * one.size);
    gather(one, offset, static_cast<std::size_t>(count * one.size), _memory.get() + one.offset + offset);
}

void packed_side::unpack_some(std::size_t index, MPI_Count first, MPI_Count count) const
{
    const block& one  = _blocks[index];
    const auto offset = static_cast<std::size_t>(first * one.size);
    scatter(one, offset, static_cast<std::size_t>(count * one.size), _memory.get() + one.offset + offset);
}

void packed_side::pack_into(void* packed) const
{
    gather(_blocks.front(), 0, _blocks.front().length(), static_cast<std::byte*>(packed));
}

void packed_side::unpack_from(const void* packed) const
{
    scatter(_blocks.front(), 0, _blocks.front().length(), static_cast<const std::byte*>(packed));
}

// The layout may be one of more elements.
packed_side::range packed_side::range_of(std::size_t index) const
{
    const block& elements = _blocks[index];
    if (elements.layout == nullptr) {
        return {elements.address, elements.address + elements.length()};
    }
    const auto one         = elements.known->layout();
    const MPI_Count last   = (elements.count - 1) * one->extent;
    const auto* const base = static_cast<const std::byte*>(base_of(elements.address, *one));
    return {base + std::min<MPI_Count>(last, 0), base + std::max<MPI_Count>(last, 0) + one->span};
}

bool packed_side::copy() const
{
    const block &from = _blocks[0], &into = _blocks[1];
    const std::size_t length = from.length();
    if (into.layout == nullptr) { // contiguous
        return gather(from, 0, length, into.address);
    }
    if (from.layout == nullptr) {
        return scatter(into, 0, length, from.address);
    }
    void* const from_base = base_of(from.address, *from.layout);
    void* const into_base = base_of(into.address, *into.layout);
    return ucp_layout_copy(into.layout->layout.get(), &into_base, 1, 0, from.layout->layout.get(), &from_base, 1, 0,
                           length) == UCS_OK;
}

} // namespace ucxl::mpi
