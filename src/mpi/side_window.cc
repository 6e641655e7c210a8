#include "side_window.h"

#include "contexts.h"
#include "layout_parts.h"
#include "one_pass.h"
#include "type_table.h"

#include <new>
#include <utility>

namespace ucxl::mpi
{

namespace
{

// Not the first use of a datatype in this call: packing counts it.
known_type* known_before(MPI_Datatype type, MPI_Count count)
{
    return own_types::has(type) ? look_at(type, count) : find_known(type);
}

} // namespace

class side_window::whole
{
public:
    // Throws std::bad_alloc.
    whole(const std::byte* buffer, const type_layout_ptr& layout)
        : _window(_windows.take(base_of(buffer, *layout), *layout, 0))
    {
    }
    whole(const whole&)            = delete;
    whole& operator=(const whole&) = delete;
    ~whole()
    {
        if (_window != nullptr) {
            _windows.give_back(*_window);
        }
        _windows.unmap_unused();
    }

    // Null if there is none.
    const bound_window* window() const { return _window; }

private:
    buffer_windows _windows;
    bound_window* _window;
};

std::byte* side_window::data() const
{
    return static_cast<std::byte*>(_only ? _only.address() : _all->window()->address);
}

bool side_window::show(const std::vector<element_block>& blocks, std::size_t messages)
{
    struct used_block {
        const element_block* elements;
        known_type* known;
        MPI_Count length;
    };
    std::vector<used_block> used;
    _blocks.resize(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const element_block& each = blocks[i];
        _blocks[i].offset         = _length;
        if (!each.is_used()) {
            continue;
        }
        const bool is_possible  = each.count > 0 && each.use != usage::both;
        known_type* const known = is_possible ? known_before(each.type, each.count) : nullptr;
        const auto layout       = known == nullptr ? nullptr : known->layout();
        const MPI_Count length  = layout == nullptr ? 0 : each.count * layout->size;
        if (static_cast<std::size_t>(length) / messages < one_pass::min_length) {
            return false;
        }
        _blocks[i].packed_type = known->packed_type();
        _length += length;
        used.push_back({&each, known, length});
    }
    if (used.empty()) {
        return false;
    }
    const auto way_of = [](const element_block& elements) {
        return elements.use == usage::reads ? direction::send : direction::receive;
    };
    if (used.size() == 1) {
        const auto& [elements, known, length] = used.front();
        _only = known->borrow_for_one_pass(elements->address, elements->count, way_of(*elements));
        return static_cast<bool>(_only);
    }
    const std::byte* const first = used.front().elements->address;
    layout_parts parts;
    traffic moved;
    for (const auto& [elements, known, length] : used) {
        const auto layout = known->layout_for_one_pass(elements->address, elements->count, way_of(*elements), moved);
        if (layout == nullptr) {
            return false;
        }
        parts.add(elements->address - first, layout);
    }
    if (!one_pass::is_worth(moved)) {
        return false;
    }
    const auto layout = parts.together();
    // The heap consists of pieces. A window over several is not direct.
    if (!layout || !one_pass::has(base_of(first, **layout), static_cast<std::size_t>((*layout)->span))) {
        return false;
    }
    auto all = std::make_shared<const whole>(first, *layout);
    if (all->window() == nullptr || !all->window()->is_direct) {
        return false;
    }
    for (const used_block& each : used) {
        each.known->note_message(each.length);
    }
    _all = std::move(all);
    return true;
}

std::optional<side_window> side_window::of(const std::vector<element_block>& blocks, std::size_t messages) noexcept
{
    try {
        std::optional<side_window> made(std::in_place);
        return made->show(blocks, messages) ? std::move(made) : std::nullopt;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

} // namespace ucxl::mpi
