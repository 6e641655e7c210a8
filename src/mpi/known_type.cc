#include "known_type.h"

#include "basic_type.h"
#include "contexts.h"
#include "layout_parts.h"
#include "library.h"
#include "settings.h"
#include "type_contents.h"
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

// Measuring for the report takes at most 2 % of the time of the process, and some ms.
class measuring_time
{
public:
    using clock = std::chrono::steady_clock;

    measuring_time() : _start(clock::now()) {}
    ~measuring_time() { spent() += (clock::now() - _start).count(); }
    measuring_time(const measuring_time&)            = delete;
    measuring_time& operator=(const measuring_time&) = delete;

    bool is_spent() const
    {
        static const auto begin       = _start;
        const clock::duration allowed = (_start - begin) / 50 + std::chrono::milliseconds(5);
        return spent() + (clock::now() - _start).count() > allowed.count();
    }

private:
    static std::atomic<clock::rep>& spent()
    {
        static std::atomic<clock::rep> only{0};
        return only;
    }

    const clock::time_point _start;
};

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
    ucp_layout_datatype_destroy(_layout_datatype);
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
    if (_is_learned.load(std::memory_order_relaxed)) {
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
    if (ucp_datatypes::are_used() && has_ucp_datatype(_layout) &&
        why_not_worth(count_anew(1)->moved, means::layout) == nullptr) {
        make_layout_datatype();
    }
    if (settings::get().has_report) {
        char name[MPI_MAX_OBJECT_NAME] = {};
        int length                     = 0;
        PMPI_Type_get_name(_type, name, &length);
        _name.assign(name, static_cast<std::size_t>(length));
        _constructor = name_of_combiner(combiner_of(_type).value_or(MPI_COMBINER_NAMED));
        measure_saving();
    }
    _is_learned.store(true, std::memory_order_release);
}

void known_type::make_layout_datatype()
{
    const layout_ptr element = with_bounds(*_layout);
    if (element == nullptr || ucp_layout_datatype_create(element.get(), &_layout_datatype) != UCS_OK) {
        return;
    }
    ucp_layout_datatype_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT;
    ucp_layout_datatype_query(_layout_datatype, &attr);
    _layout_context = attr.context;
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

// MPI moves it, by layout_context(). Only a report has to know of each message.
void known_type::note_moved_by_layout(MPI_Count count)
{
    if (!settings::get().has_report) {
        _left_count.store(all_counts, std::memory_order_relaxed);
        return;
    }
    const counted_type& elements = *counted(count);
    ++_messages;
    _bytes += elements.moved.length;
    _by_cpu += elements.moved.length;
}

window_use known_type::borrow(const void* buffer, MPI_Count count, direction way) noexcept
{
    if (count <= 0 || !settings::get().takes_messages || is_left(count)) {
        return {};
    }
    const std::lock_guard guard(_lock);
    try {
        learn();
        if (_layout_context != nullptr) {
            note_moved_by_layout(count);
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
        if (!contexts::may_use_windows()) {
            note_why_not("a process of this job has no windows");
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
        return {*this, elements, *window};
    } catch (const std::bad_alloc&) {
        return {};
    }
}

void* known_type::learned_layout_context() noexcept
{
    const std::lock_guard guard(_lock);
    try {
        learn();
        return _layout_context;
    } catch (const std::bad_alloc&) {
        return nullptr;
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
        const auto rounded   = static_cast<MPI_Count>(std::bit_ceil(static_cast<std::uint64_t>(count)));
        const auto is_usable = [way](const counted_type& elements) {
            return elements.layout != nullptr && (way == direction::send || elements.is_unique);
        };
        const counted_type* elements = counted(rounded);
        if (!is_usable(*elements) && rounded != count) { // perhaps because of elements that are not used
            elements = counted(count);
        }
        if (!is_usable(*elements)) {
            note_why_not(elements->layout == nullptr ? elements->why_not : "it names bytes twice");
            return nullptr;
        }
        return elements->layout;
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

// What a byte costs MPI beyond what it costs us: packing by both, from memory of this library. That of the program may
// not be there yet, and nobody may ever read it. An element that is longer than some MB is not measured: memory for it
// and the first touch of its pages would be what a report costs.
void known_type::measure_saving()
{
    constexpr MPI_Count longest = 4 << 20;
    if (_is_measured || _layout == nullptr || _layout->span > longest || _layout->extent < 0 || !library::has_world()) {
        return;
    }
    const measuring_time budget;
    if (budget.is_spent()) {
        return;
    }
    _is_measured          = true;
    const MPI_Count count = _layout->extent == 0 ? 1 : std::max<MPI_Count>(1, (64 << 10) / _layout->extent);
    const auto elements   = count_anew(count);
    if (elements->layout == nullptr || elements->layout->span > 2 * longest) {
        return;
    }
    const auto length = static_cast<std::size_t>(elements->layout->size);
    std::vector<char> memory(static_cast<std::size_t>(elements->layout->span)), packed(length);
    void* const base = memory.data();
    // Where the elements are as far from it as from a buffer of the program.
    const auto buffer = reinterpret_cast<std::uintptr_t>(base) - static_cast<std::uintptr_t>(elements->layout->origin);
    double own = std::numeric_limits<double>::max(), by_mpi = own;
    // One round of a datatype that MPI packs slowly may be all that is allowed.
    for (int round = 0; round < 3 && !(round > 0 && budget.is_spent()); ++round) {
        const auto start = measuring_time::clock::now();
        int position     = 0;
        PMPI_Pack(reinterpret_cast<const void*>(buffer), static_cast<int>(count), _type, packed.data(),
                  static_cast<int>(length), &position, MPI_COMM_SELF);
        const auto middle = measuring_time::clock::now();
        ucp_layout_gather(elements->layout->layout.get(), &base, 1, 0, length, packed.data());
        const auto end = measuring_time::clock::now();
        by_mpi         = std::min(by_mpi, std::chrono::duration<double>(middle - start).count());
        own            = std::min(own, std::chrono::duration<double>(end - middle).count());
    }
    _saved_per_byte = (by_mpi - own) / static_cast<double>(length);
}

type_figures known_type::figures()
{
    const std::lock_guard guard(_lock);
    type_figures made;
    made.name     = _name;
    made.messages = _messages;
    made.copies   = _copies;
    made.bytes    = _bytes;
    made.left     = _left;
    made.by_cpu   = _by_cpu;
    made.why_not  = _why_not == nullptr ? "" : _why_not;
    if (_saved_per_byte) {
        made.seconds_saved = *_saved_per_byte * static_cast<double>(_bytes);
    }
    made.constructor = _constructor;
    for (const auto& each : _counted) {
        if (each->layout != nullptr && made.length < each->moved.length) {
            made.length     = each->moved.length;
            made.num_blocks = each->moved.num_blocks;
        }
    }
    return made;
}

} // namespace ucxl::mpi
