#include "window.h"

#include "abi/registrations.h"
#include "abi/window_types.h"
#include "arena.h"
#include "foreign_memory.h"
#include "sys/pages.h"
#include "sys/rollback.h"
#include "ucs/layout/build.h"
#include "window_config.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <pthread.h>

namespace ucxl
{

namespace
{

constexpr std::uint64_t smallest_chunk = std::uint64_t{1} << slot_table::min_chunk_shift;

// One lock for all registries of the process, so that fork holds only one. Never destroyed.
std::mutex& registry_lock()
{
    static std::mutex& lock = *new std::mutex;
    return lock;
}

std::uint64_t new_generation()
{
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

result<void> check(const window_binding& binding)
{
    if (binding.plan == nullptr) {
        return fail(errc::invalid_param, "a window needs a pack plan");
    }
    const std::size_t needed = binding.plan->source_layout()->num_sources();
    if (binding.bases.size() != needed) {
        return fail(errc::invalid_param, "num_bases is " + std::to_string(binding.bases.size()) +
                                             ", but the layout has " + std::to_string(needed) + " sources");
    }
    return {};
}

} // namespace

bool window_registry::hold_lock_over_fork()
{
    static const bool installed = pthread_atfork(
                                      [] {
                                          registry_lock().lock();
                                          readers_before_fork();
                                      },
                                      [] {
                                          readers_after_fork_in_parent();
                                          registry_lock().unlock();
                                      },
                                      [] {
                                          readers_after_fork_in_child();
                                          registry_lock().unlock();
                                      }) == 0;
    return installed;
}

window_registry::window_registry() = default;
window_registry::~window_registry()
{
    if (_slots != nullptr) {
        _slots->for_each([](const window* left) { delete left; });
    }
}

// Never destroyed.
window_registry& window_registry::make_instance()
{
    static_assert(margin == arena::margin);
    static window_registry& registry = *new window_registry;
    _process.store(&registry, std::memory_order_release);
    return registry;
}

result<std::unique_ptr<window_registry>> window_registry::create_private(std::size_t arena_length,
                                                                         const part_types& types)
{
    std::unique_ptr<window_registry> registry(new (std::nothrow) window_registry);
    if (registry == nullptr) {
        return fail(errc::no_memory, "no memory for a window registry");
    }
    const std::lock_guard guard(registry_lock());
    UCXL_TRY(registry->reserve_locked(arena_length, types));
    return registry;
}

result<void> window_registry::reserve()
{
    if (_arena_length.load(std::memory_order_acquire) != 0) {
        return {};
    }
    auto config                     = UCXL_TRY(read_window_config());
    const abi::window_types& chosen = abi::types_of_windows(); // without the lock: it may load modules
    const std::lock_guard guard(registry_lock());
    if (_arena != nullptr) {
        return {};
    }
    _huge_pages = static_cast<huge_pages_option>(config.huge_pages);
    return reserve_locked(config.arena_length, {chosen.staged, chosen.direct});
}

result<void> window_registry::reserve_locked(std::size_t length, const part_types& types)
{
    if (!hold_lock_over_fork()) {
        return fail(errc::no_memory, "no memory for the fork handlers of the window registry");
    }
    auto reserved = UCXL_TRY(arena::reserve(length, types));
    auto slots = UCXL_TRY(slot_table::create(static_cast<std::uint32_t>(reserved->length() / slot_table::slot_length),
                                             reserved->parts()));
    _arena     = std::move(reserved);
    _slots     = std::move(slots);
    const auto parts    = _arena->parts();
    const auto start_of = [&](std::size_t part) {
        return static_cast<std::ptrdiff_t>(parts[part].first * slot_table::slot_length);
    };
    if (parts.size() > 1) {
        _staged_type  = _arena->type_of(1);
        _staged_start = start_of(1);
    }
    if (parts.size() > 2) {
        _direct_type  = _arena->type_of(2);
        _direct_start = start_of(2);
    }
    _base.store(reinterpret_cast<std::uintptr_t>(_arena->base()));
    _arena_length.store(_arena->length(), std::memory_order_release);
    return {};
}

ucs_memory_type_t window_registry::memory_type_at(const void* address) const
{
    static_cast<void>(_arena_length.load(std::memory_order_acquire));
    const std::uintptr_t base = _base.load(std::memory_order_relaxed);
    const auto offset         = static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(address) - base);
    return offset < _staged_start ? UCS_MEMORY_TYPE_RDMA : offset < _direct_start ? _staged_type : _direct_type;
}

namespace
{

block_row row_of(const window_binding& binding)
{
    return binding.is_indirect() ? block_row{} : binding.plan->row_at(binding.bases);
}

} // namespace

result<window*> window_registry::create(window_binding binding, window_carrier carrier)
{
    UCXL_TRY(complete(binding));
    return place(std::move(binding), carrier);
}

result<void> window_registry::complete(window_binding& binding)
{
    UCXL_TRY(check(binding));
    UCXL_TRY(reserve());
    find_indirect_bases(binding);
    find_regions(binding);
    return {};
}

bool window_registry::has_part(window_carrier carrier) const
{
    return part_of(carrier) < _arena->parts().size(); // constant after reserve()
}

result<window*> window_registry::place_without_memory(window_binding binding, window_carrier carrier)
{
    const std::uint64_t length = binding.plan->packed_length();
    const std::uint64_t needed = round_to_pages(length) + page_length();
    const std::size_t part     = part_of(carrier);
    if (!has_part(carrier)) {
        return fail(errc::invalid_param, "this process has no memory type for such windows");
    }
    const std::uint64_t available = _arena->parts()[part].count * slot_table::slot_length;
    if (needed > available) {
        return fail(errc::exceeds_limit, "a window of " + std::to_string(length) + " bytes does not fit into the " +
                                             std::to_string(available) +
                                             " bytes reserved for such windows (UCX_LAYOUT_ARENA_SIZE)");
    }
    binding.attachment = std::make_shared<window_attachment>();
    std::unique_ptr<window> created(new (std::nothrow) window);
    std::unique_ptr<window_binding> owned(new (std::nothrow) window_binding(std::move(binding)));
    if (created == nullptr || owned == nullptr) {
        return fail(errc::no_memory, "no memory for a window");
    }
    const std::lock_guard guard(registry_lock());
    created->_length     = length;
    created->_generation = new_generation();
    created->_range      = UCXL_TRY(find_addresses(needed, part));
    created->_address    = _arena->base() + created->_range.offset;
    created->_carrier    = carrier;
    if (owned->indirect != nullptr) {
        owned->bases = {created->_address};
    }
    owned->row      = row_of(*owned);
    created->_owned = std::move(owned);
    created->_binding.store(created->_owned.get());
    _slots->publish(created->_range, created.get());
    _num_live.fetch_add(1, std::memory_order_relaxed);
    return created.release();
}

result<window*> window_registry::place(window_binding binding, window_carrier carrier)
{
    auto* const made                  = UCXL_TRY(place_without_memory(std::move(binding), carrier));
    const layout_memory* const memory = made->binding().memory.get();
    const layout& shown               = *made->binding().plan->source_layout();
    if (memory == nullptr || !shown.is_contiguous() || shown.is_empty()) {
        return made;
    }
    rollback undo([&] { destroy(made); });
    const auto first = memory->file_offset(memory->bases()[shown.root().source] + shown.root().offset);
    UCXL_TRY(map_identity(*made, memory->fd(), static_cast<std::uint64_t>(first)));
    undo.cancel();
    return made;
}

// Addresses that memory of another process has are passed over. That memory becomes known before holds_windows() looks
// for windows, which takes the same lock as this does: one of the two sees the other.
result<window_range> window_registry::find_addresses(std::uint64_t needed, std::size_t part)
{
    std::vector<window_range> passed;
    const rollback give_back([&] {
        for (const window_range& range : passed) {
            _slots->release(range);
        }
    });
    for (;;) {
        const auto range  = UCXL_TRY(_slots->allocate(needed, part));
        const auto* other = foreign();
        if (other == nullptr || !other->touches(_arena->base() + range.offset, range.length)) {
            return range;
        }
        passed.push_back(range);
    }
}

bool window_registry::holds_windows(const void* address, std::uint64_t length) const
{
    if (!touches_arena(address, length)) {
        return false;
    }
    const std::lock_guard guard(registry_lock());
    const auto [first, end] = part_in_arena(address, length);
    for (std::uint64_t at = first; at < end; at = (at / smallest_chunk + 1) * smallest_chunk) {
        if (_slots->lookup(at) != nullptr) {
            return true;
        }
    }
    return false;
}

address_range window_registry::addresses_of_arena() const
{
    const std::size_t length  = _arena_length.load(std::memory_order_acquire);
    const std::uintptr_t base = _base.load(std::memory_order_relaxed);
    return length == 0 ? address_range{} : address_range{base - margin, base + length + margin};
}

// Of a range that touches the arena or its margins, as offsets. Empty if it touches the margins only.
window_registry::arena_range window_registry::part_in_arena(const void* address, std::uint64_t length) const
{
    const std::uintptr_t base  = _base.load(std::memory_order_relaxed);
    const std::uintptr_t start = std::max(reinterpret_cast<std::uintptr_t>(address), base);
    const std::uintptr_t end   = std::min(reinterpret_cast<std::uintptr_t>(address) + length, base + arena_length());
    return start < end ? arena_range{start - base, end - base} : arena_range{0, 0};
}

void window_registry::find_indirect_bases(window_binding& binding) const
{
    const layout& layout       = *binding.plan->source_layout();
    binding.has_indirect_bases = false;
    for (std::uint32_t source = 0; source < layout.num_sources() && binding.indirect == nullptr; ++source) {
        const auto& bounds = layout.bounds(source);
        if (bounds.true_ub > bounds.true_lb) {
            const auto first =
                reinterpret_cast<std::uintptr_t>(binding.bases[source]) + static_cast<std::uintptr_t>(bounds.true_lb);
            const auto length       = bounds.true_length();
            const auto* const start = reinterpret_cast<const void*>(first);
            if (touches_arena(start, length)) {
                const reader_section section;
                const window* const below  = find(start, length);
                binding.has_indirect_bases = binding.has_indirect_bases || below == nullptr || !below->is_identity();
            }
        }
    }
}

std::vector<region_ptr> regions_of(const layout& described, std::span<std::byte* const> bases)
{
    const region_table& table = region_table::instance();
    if (table.is_empty()) {
        return {};
    }
    std::vector<region_ptr> regions(described.num_sources());
    for (std::uint32_t source = 0; source < regions.size(); ++source) {
        const auto& bounds = described.bounds(source);
        if (bounds.true_ub <= bounds.true_lb) {
            continue;
        }
        const auto first =
            reinterpret_cast<std::uintptr_t>(bases[source]) + static_cast<std::uintptr_t>(bounds.true_lb);
        // Most sources are in the region of the one before.
        const auto* const address = reinterpret_cast<const void*>(first);
        const region_ptr& last    = source > 0 ? regions[source - 1] : regions[source];
        regions[source] = last != nullptr && last->holds(address, bounds.true_length()) && !last->is_withdrawn()
                              ? last
                              : table.find(address, bounds.true_length());
        if (regions[source] == nullptr) {
            return {};
        }
    }
    return regions;
}

void window_registry::find_regions(window_binding& binding)
{
    binding.regions.clear();
    if (!binding.is_indirect()) {
        binding.regions = regions_of(*binding.plan->source_layout(), binding.bases);
    }
}

result<window*> window_registry::create_indirect(std::uint64_t length, const indirect_memory& memory)
{
    auto layout = UCXL_TRY(make_contig(1, {.length = length, .nested = nullptr}));
    auto plan   = UCXL_TRY(pack_plan::compile(std::move(layout)));
    window_binding binding{.plan = std::move(plan), .bases = {nullptr}};
    binding.indirect = &memory;
    return create(std::move(binding));
}

result<window_binding> window_registry::allocate_memory(pack_plan_ptr plan)
{
    UCXL_TRY(reserve());
    auto memory = UCXL_TRY(layout_memory::allocate(*plan->source_layout(), _huge_pages)); // constant from now on
    auto bases  = memory->bases();
    return window_binding{std::move(plan), std::move(bases), std::move(memory)};
}

result<window*> window_registry::allocate(pack_plan_ptr plan, window_carrier carrier)
{
    return create(UCXL_TRY(allocate_memory(std::move(plan))), carrier);
}

result<void> window_registry::rebind(window& window, window_binding binding)
{
    UCXL_TRY(check(binding));
    if (binding.plan->packed_length() != window._length) {
        return fail(errc::invalid_param, "the layout has " + std::to_string(binding.plan->packed_length()) +
                                             " packed bytes, but the window has " + std::to_string(window._length));
    }
    if (window.is_identity()) {
        return fail(errc::invalid_param, "a window with memory mapped at its address cannot be bound elsewhere");
    }
    find_indirect_bases(binding);
    try {
        find_regions(binding);
    } catch (const std::bad_alloc&) {
        return fail(errc::no_memory, "no memory for the bases of a window");
    }
    binding.attachment = window.binding().attachment;
    binding.row        = row_of(binding);
    std::unique_ptr<const window_binding> next(new (std::nothrow) window_binding(std::move(binding)));
    if (next == nullptr) {
        return fail(errc::no_memory, "no memory for the bases of a window");
    }
    window._binding.store(next.get());
    wait_for_readers();
    window._owned = std::move(next);
    return {};
}

result<void> window_registry::map_identity(window& window, int fd, std::uint64_t offset)
{
    if (window._length == 0 || !window.binding().plan->source_layout()->is_contiguous()) {
        return fail(errc::invalid_param, "only memory under a contiguous layout can be mapped at the window's address");
    }
    auto mapped = _arena->map_file(window._range.offset, round_to_pages(window._length), fd, offset);
    if (mapped) {
        window._is_identity.store(true, std::memory_order_relaxed);
    }
    return mapped;
}

std::vector<std::byte*> window_registry::windows_over(const region& memory) const
{
    std::vector<std::byte*> found;
    const std::lock_guard guard(registry_lock());
    const reader_section section; // windows stay, but each may be bound elsewhere
    if (_slots != nullptr) {
        _slots->for_each([&](const window* each) {
            const auto is_it = [&](const region_ptr& held) { return held.get() == &memory; };
            if (std::ranges::any_of(each->binding().regions, is_it)) {
                found.push_back(each->address());
            }
        });
    }
    return found;
}

void window_registry::unpublish(window& window)
{
    {
        const std::lock_guard guard(registry_lock());
        _slots->unpublish(window._range);
    }
    wait_for_readers();
}

void window_registry::publish(window& window)
{
    const std::lock_guard guard(registry_lock());
    _slots->publish(window._range, &window);
}

void window_registry::note_registration(void* address, std::uint64_t length)
{
    if (touches_arena(address, length) && !mark_registered(address, length)) {
        abi::retire_registrations(address, length);
    }
}

// Returns false if some of the range is in no window.
bool window_registry::mark_registered(const void* address, std::uint64_t length)
{
    const auto [first, end] = part_in_arena(address, length);
    bool is_all             = end - first == length;
    const reader_section section; // destroy() reads the marks after it has waited for this section
    for (std::uint64_t at = first; at < end;) {
        if (const window* const found = _slots->lookup(at)) {
            found->_was_registered.store(true, std::memory_order_relaxed);
            at = found->_range.offset + found->_range.length;
        } else {
            is_all = false;
            at     = (at / smallest_chunk + 1) * smallest_chunk;
        }
    }
    return is_all;
}

void window_registry::destroy(window* target)
{
    if (target == nullptr) {
        return;
    }
    const std::unique_ptr<window> owned(target);
    {
        const std::lock_guard guard(registry_lock());
        _slots->unpublish(target->_range);
    }
    wait_for_readers();
    // Where nothing was mapped or registered, there is nothing to clear; and UCM's event would stay in the queues of
    // UCX's registration caches until something is registered, which may be never.
    //
    // Not under the lock, because UCM's handlers run in clear(). A range that cannot be cleared is never handed out
    // again; its addresses stay "none".
    const bool is_used  = target->is_identity() || target->was_registered();
    const bool is_clear = !is_used || _arena->clear(target->_range.offset, round_to_pages(target->_length)).has_value();
    const std::lock_guard guard(registry_lock());
    _num_live.fetch_sub(1, std::memory_order_relaxed);
    if (is_clear) {
        _slots->release(target->_range);
    }
}

} // namespace ucxl
