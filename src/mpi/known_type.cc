#include "known_type.h"

#include "basic_type.h"
#include "layout_parts.h"
#include "library.h"
#include "settings.h"
#include "ucp_datatypes.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <new>
#include <utility>

namespace ucxl::mpi
{

namespace
{

constexpr std::size_t max_counts = 32; // kept for one datatype

void* base_of(const void* buffer, const type_layout& layout)
{
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                   static_cast<std::uintptr_t>(layout.origin));
}

bool query(counted_type& counted)
{
    ucp_layout_attr_t attr{};
    attr.field_mask =
        UCP_LAYOUT_ATTR_FIELD_BLOCKS | UCP_LAYOUT_ATTR_FIELD_OVERLAP | UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH;
    if (ucp_layout_query(counted.layout->layout.get(), &attr) != UCS_OK) {
        return false;
    }
    counted.moved     = {.length      = static_cast<std::size_t>(counted.layout->size),
                         .num_blocks  = attr.num_blocks,
                         .span        = static_cast<std::size_t>(counted.layout->span),
                         .list_length = attr.serialized_length,
                         .is_mixed    = attr.min_block_length != attr.max_block_length};
    counted.is_unique = attr.overlap == UCP_LAYOUT_OVERLAP_NONE;
    return true;
}

// Bytes at absolute addresses are farther from the buffer than an offset of a layout may be.
bool has_ucp_datatype(const type_layout_ptr& layout)
{
    constexpr MPI_Count max_offset = MPI_Count{1} << 45;
    return layout != nullptr && layout->size > 0 && layout->extent >= 0 && std::abs(layout->origin) < max_offset;
}

// The layout at its place from the buffer, with the extent of the datatype. Null without memory.
layout_ptr with_bounds(const type_layout& layout)
{
    const ucp_layout_iov_t only{.source  = 0,
                                .offset  = static_cast<ptrdiff_t>(layout.origin),
                                .element = {.length = 0, .layout = layout.layout.get()}};
    ucp_layout_params_t params{};
    params.field_mask   = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV | UCP_LAYOUT_PARAM_FIELD_EXTENT;
    params.kind         = UCP_LAYOUT_KIND_IOV;
    params.iov          = &only;
    params.num_iov      = 1;
    params.lb           = static_cast<ptrdiff_t>(layout.origin);
    params.extent       = static_cast<std::size_t>(layout.extent);
    ucp_layout_h handle = nullptr;
    return ucp_layout_create(&params, &handle) == UCS_OK ? owned_layout(handle) : nullptr;
}

// What the CPU moved through the window, also before this mapping.
std::uint64_t bytes_by_cpu(ucp_layout_window_h window)
{
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
    if (!settings::get().has_report || ucp_layout_window_query(window, &attr) != UCS_OK) {
        return 0;
    }
    return attr.statistics.bytes_read + attr.statistics.bytes_written;
}

bool map(bound_window& window, const counted_type& counted, void* base)
{
    ucp_layout_map_params_t params{};
    params.field_mask =
        UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
    params.layout              = counted.layout->layout.get();
    params.bases               = &base;
    params.num_bases           = 1;
    params.flags               = UCP_LAYOUT_MAP_FLAG_EXCLUSIVE;
    ucp_layout_window_h handle = nullptr;
    if (ucp_layout_map(library::context_of_windows(), &params, &handle) != UCS_OK) {
        return false;
    }
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS;
    ucp_layout_window_query(handle, &attr);
    window.base    = base;
    window.handle  = handle;
    window.address = attr.address;
    window.copied  = bytes_by_cpu(handle);
    return true;
}

// A window over the base that is mapped already, or an unused one that is bound to it, or a new one.
bound_window* bind(counted_type& counted, void* base)
{
    auto& windows   = counted.windows;
    const auto same = std::ranges::find(windows, base, [](const auto& each) { return const_cast<void*>(each->base); });
    if (same != windows.end()) {
        return same->get();
    }
    if (windows.size() >= settings::get().idle_windows) {
        bound_window* oldest = nullptr;
        for (const auto& each : windows) {
            if (each->users == 0 && (oldest == nullptr || each->last_use < oldest->last_use)) {
                oldest = each.get();
            }
        }
        if (oldest != nullptr && ucp_layout_rebind(oldest->handle, &base, 1) == UCS_OK) {
            oldest->base = base;
            return oldest;
        }
    }
    auto made = std::make_unique<bound_window>();
    windows.reserve(windows.size() + 1);
    return map(*made, counted, base) ? windows.emplace_back(std::move(made)).get() : nullptr;
}

} // namespace

window_use::window_use(known_type& type, counted_type& counted, bound_window& window)
    : _type(&type), _counted(&counted), _window(&window)
{
    type.add_user();
}

window_use::window_use(window_use&& moved) noexcept
    : _type(std::exchange(moved._type, nullptr)), _counted(moved._counted), _window(moved._window)
{
}

window_use& window_use::operator=(window_use&& moved) noexcept
{
    std::swap(_type, moved._type);
    std::swap(_counted, moved._counted);
    std::swap(_window, moved._window);
    return *this;
}

window_use::~window_use()
{
    if (_type != nullptr) {
        _type->release(*_counted, *_window);
        _type->remove_user();
    }
}

MPI_Datatype window_use::packed_type() const
{
    return _type->packed_type();
}

void known_type::unmap(bound_window& window)
{
    _by_cpu += bytes_by_cpu(window.handle) - window.copied;
    ucp_layout_unmap(window.handle);
}

void known_type::unmap_unused(counted_type& counted)
{
    std::erase_if(counted.windows, [this](const auto& each) {
        if (each->users > 0) {
            return false;
        }
        unmap(*each);
        return true;
    });
}

known_type::~known_type()
{
    release_windows();
    MPI_Datatype packed = _packed.load();
    if (packed != MPI_DATATYPE_NULL && library::is_active()) {
        PMPI_Type_free(&packed);
    }
}

void known_type::remove_user()
{
    if (_users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

void known_type::learn()
{
    if (std::exchange(_is_learned, true)) {
        return;
    }
    const auto made = type_layout_of(_type);
    if (!made) {
        _why_no_layout = made.error();
    } else if ((*made)->size == 0) {
        _why_no_layout = "empty";
    } else if ((*made)->size > std::numeric_limits<int>::max()) {
        _why_no_layout = "an element is longer than 2 GB";
    } else {
        MPI_Datatype packed = MPI_DATATYPE_NULL;
        if (PMPI_Type_contiguous(static_cast<int>((*made)->size), MPI_BYTE, &packed) == MPI_SUCCESS &&
            PMPI_Type_commit(&packed) == MPI_SUCCESS) {
            _packed.store(packed, std::memory_order_release);
            _layout = *made;
        }
    }
    _is_moved_by_layout = ucp_datatypes::are_used() && has_ucp_datatype(_layout) &&
                          why_not_worth(count_anew(1)->moved, means::layout) == nullptr;
    if (settings::get().has_report) {
        char name[MPI_MAX_OBJECT_NAME] = {};
        int length                     = 0;
        PMPI_Type_get_name(_type, name, &length);
        _name.assign(name, static_cast<std::size_t>(length));
    }
}

std::unique_ptr<counted_type> known_type::count_anew(MPI_Count count)
{
    auto made   = std::make_unique<counted_type>();
    made->count = count;
    if (_layout == nullptr) {
        made->why_not = _why_no_layout;
        return made;
    }
    const auto layout = repeated(_layout, count);
    if (!layout) {
        made->why_not = layout.error();
        return made;
    }
    made->layout = *layout;
    if (made->layout->is_block) { // of which not every attribute is needed
        made->moved     = {.length = static_cast<std::size_t>(made->layout->size), .num_blocks = 1};
        made->is_unique = true;
    } else if (!query(*made)) {
        made->layout = nullptr;
    }
    made->why_not = why_not_worth(made->moved, means::window);
    return made;
}

void known_type::drop_oldest_count()
{
    if (_counted.size() < max_counts) {
        return;
    }
    const auto oldest = std::ranges::min_element(_counted, {}, [](const auto& each) {
        return each->users > 0 ? std::numeric_limits<std::uint64_t>::max() : each->last_use;
    });
    if ((*oldest)->users == 0) {
        unmap_unused(**oldest);
        _counted.erase(oldest);
    }
}

counted_type* known_type::counted(MPI_Count count)
{
    auto found = std::ranges::find(_counted, count, [](const auto& each) { return each->count; });
    if (found == _counted.end()) {
        learn();
        drop_oldest_count();
        _counted.push_back(count_anew(count));
        found = _counted.end() - 1;
    }
    (*found)->last_use = ++_uses;
    std::iter_swap(_counted.begin(), found);
    return _counted.front().get();
}

void known_type::note_why_not(const char* reason)
{
    _why_not = reason;
    ++_left;
}

// MPI moves it, by the layout that make_ucp_datatype() gives it. Only a report has to know of each message.
void known_type::note_moved_by_layout(const void* buffer, MPI_Count count, direction way)
{
    if (!settings::get().has_report) {
        _left_count.store(all_counts, std::memory_order_relaxed);
        return;
    }
    const counted_type& elements = *counted(count);
    ++_messages;
    _bytes += elements.moved.length;
    _by_cpu += elements.moved.length;
    if (!_is_measured && way == direction::send && elements.layout != nullptr) {
        measure_saving(elements, base_of(buffer, *elements.layout), buffer);
    }
}

window_use known_type::borrow(const void* buffer, MPI_Count count, direction way) noexcept
{
    if (count <= 0 || !settings::get().takes_messages || is_left(count)) {
        return {};
    }
    const std::lock_guard guard(_lock);
    try {
        learn();
        if (_is_moved_by_layout) {
            note_moved_by_layout(buffer, count, way);
            return {};
        }
        counted_type& elements = *counted(count);
        if (elements.why_not != nullptr && !settings::get().has_report) {
            _left_count.store(count, std::memory_order_relaxed);
        }
        if (elements.why_not != nullptr || (way == direction::receive && !elements.is_unique)) {
            note_why_not(elements.why_not != nullptr ? elements.why_not : "it names bytes twice");
            return {};
        }
        void* const base = base_of(buffer, *elements.layout);
        if (base == nullptr) {
            return {};
        }
        bound_window* const window = bind(elements, base);
        if (window == nullptr) {
            note_why_not("no window could be made");
            return {};
        }
        ++window->users;
        ++elements.users;
        window->last_use = _uses;
        ++_messages;
        _bytes += elements.moved.length;
        if (settings::get().has_report && !_is_measured && way == direction::send) {
            measure_saving(elements, base, buffer);
        }
        return {*this, elements, *window};
    } catch (const std::bad_alloc&) {
        return {};
    }
}

bool known_type::is_moved_by_layout() noexcept
{
    return layout() != nullptr && _is_moved_by_layout;
}

ucp_datatype_t known_type::make_ucp_datatype() noexcept
{
    const std::lock_guard guard(_lock);
    try {
        learn();
        if (!_is_moved_by_layout) {
            return 0;
        }
        const layout_ptr element = with_bounds(*_layout);
        ucp_datatype_t made      = 0;
        return element != nullptr && ucp_layout_datatype_create(element.get(), &made) == UCS_OK ? made : 0;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

void known_type::release(counted_type& counted, bound_window& window)
{
    const std::lock_guard guard(_lock);
    --window.users;
    --counted.users;
    if (library::keeps_idle_windows() && counted.windows.size() <= settings::get().idle_windows) {
        return;
    }
    if (window.users == 0) {
        unmap(window);
        std::erase_if(counted.windows, [&](const auto& each) { return each.get() == &window; });
    }
}

type_layout_ptr known_type::layout() noexcept
{
    const std::lock_guard guard(_lock);
    try {
        learn();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return _layout;
}

type_layout_ptr known_type::layout_to_copy(MPI_Count count, direction way) noexcept
{
    if (count <= 0) {
        return nullptr;
    }
    const std::lock_guard guard(_lock);
    try {
        // Few layouts serve all counts, because a prefix of one can be copied.
        const auto rounded     = static_cast<MPI_Count>(std::bit_ceil(static_cast<std::uint64_t>(count)));
        counted_type& elements = *counted(rounded);
        if (elements.layout == nullptr || (way == direction::receive && !elements.is_unique)) {
            note_why_not(elements.layout == nullptr ? elements.why_not : "it names bytes twice");
            return nullptr;
        }
        return elements.layout;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

bool known_type::is_worth_window(MPI_Count count) noexcept
{
    if (count <= 0) {
        return false;
    }
    const std::lock_guard guard(_lock);
    try {
        const char* const reason = counted(count)->why_not;
        if (reason != nullptr) {
            note_why_not(reason);
        }
        return reason == nullptr;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

MPI_Datatype known_type::basic_type() noexcept
{
    const std::lock_guard guard(_lock);
    try {
        if (!_basic) {
            _basic = basic_type_of(_type);
        }
        return *_basic;
    } catch (const std::bad_alloc&) {
        return MPI_DATATYPE_NULL;
    }
}

void known_type::note_copy(MPI_Count bytes)
{
    const std::lock_guard guard(_lock);
    ++_copies;
    _bytes += static_cast<std::uint64_t>(bytes);
}

void known_type::release_windows()
{
    const std::lock_guard guard(_lock);
    for (const auto& each : _counted) {
        unmap_unused(*each);
    }
}

// What a byte costs MPI beyond what it costs us: packing the same buffer by both.
void known_type::measure_saving(const counted_type& counted, const void* base, const void* buffer)
{
    using clock  = std::chrono::steady_clock;
    _is_measured = true;
    if (!library::has_world() || counted.count > std::numeric_limits<int>::max() ||
        counted.moved.length > std::numeric_limits<int>::max()) {
        return;
    }
    std::vector<char> packed(counted.moved.length);
    double own = std::numeric_limits<double>::max(), by_mpi = own;
    for (int round = 0; round < 3; ++round) {
        const auto start = clock::now();
        int position     = 0;
        PMPI_Pack(buffer, static_cast<int>(counted.count), _type, packed.data(), static_cast<int>(packed.size()),
                  &position, MPI_COMM_SELF);
        const auto middle = clock::now();
        void* const from  = const_cast<void*>(base);
        ucp_layout_gather(counted.layout->layout.get(), &from, 1, 0, packed.size(), packed.data());
        const auto end = clock::now();
        by_mpi         = std::min(by_mpi, std::chrono::duration<double>(middle - start).count());
        own            = std::min(own, std::chrono::duration<double>(end - middle).count());
    }
    _saved_per_byte = (by_mpi - own) / static_cast<double>(packed.size());
}

type_figures known_type::figures()
{
    const std::lock_guard guard(_lock);
    type_figures made;
    made.name          = _name;
    made.messages      = _messages;
    made.copies        = _copies;
    made.bytes         = _bytes;
    made.left          = _left;
    made.by_cpu        = _by_cpu;
    made.why_not       = _why_not == nullptr ? "" : _why_not;
    made.seconds_saved = _saved_per_byte * static_cast<double>(_bytes);
    for (const auto& each : _counted) {
        if (each->layout != nullptr && made.length < each->moved.length) {
            made.length     = each->moved.length;
            made.num_blocks = each->moved.num_blocks;
        }
    }
    return made;
}

} // namespace ucxl::mpi
