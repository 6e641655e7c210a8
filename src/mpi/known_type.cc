#include "known_type.h"

#include "contexts.h"
#include "library.h"
#include "one_pass.h"
#include "settings.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <utility>

namespace ucxl::mpi
{

namespace
{

constexpr std::size_t max_counts = 32; // kept for one datatype

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

known_type::~known_type()
{
    release_windows();
}

void known_type::remove_user()
{
    if (_users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

template <typename Result, typename Body>
Result known_type::with_lock(Result otherwise, Body&& body) noexcept
{
    const std::lock_guard guard(_lock);
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return otherwise;
    }
}

void known_type::learn()
{
    if (_facts.learn() && settings::get().has_report) {
        _statistics.describe(_facts);
    }
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
        _statistics.note_by_cpu((*oldest)->windows.unmap_unused());
        _counted.erase(oldest);
    }
}

counted_type& known_type::counted(MPI_Count count)
{
    auto found = std::ranges::find(_counted, count, [](const auto& each) { return each->count; });
    if (found == _counted.end()) {
        learn();
        drop_oldest_count();
        _counted.push_back(std::make_unique<counted_type>(count, _facts.counted(count)));
        found = _counted.end() - 1;
    }
    (*found)->last_use = ++_uses;
    std::iter_swap(_counted.begin(), found);
    return *_counted.front();
}

// MPI moves it, by layout_context(). Only a report has to know of each message.
void known_type::note_moved_by_layout(MPI_Count count)
{
    if (!settings::get().has_report) {
        if (!one_pass::is_on()) {
            _left_count.store(all_counts, std::memory_order_relaxed);
        } else {
            note_left(count);
        }
        return;
    }
    const std::size_t length = counted(count).elements.moved.length;
    _statistics.note_message(length);
    _statistics.note_by_cpu(length);
}

bool known_type::may_be_one_pass(MPI_Count count) const
{
    const type_layout_ptr& element = _facts.layout();
    return one_pass::is_on() && element != nullptr &&
           count >= (static_cast<MPI_Count>(one_pass::min_length) + element->size - 1) / element->size;
}

// Where the buffer decides, the count does not.
void known_type::note_left(MPI_Count count)
{
    if (!settings::get().has_report && !may_be_one_pass(count)) {
        _left_count.store(count, std::memory_order_relaxed);
    }
}

window_use known_type::lend(counted_type& used, bound_window& window)
{
    ++used.users;
    _statistics.note_message(used.elements.moved.length);
    return {*this, used, window};
}

counted_type* known_type::in_one_pass(const void* buffer, MPI_Count count, direction way)
{
    counted_type& used             = counted(count);
    const counted_layout& elements = used.elements;
    const bool is_usable =
        elements.layout != nullptr && (way == direction::send || elements.is_unique) &&
        one_pass::has(base_of(buffer, *elements.layout), static_cast<std::size_t>(elements.layout->span)) &&
        contexts::may_use_windows();
    return is_usable ? &used : nullptr;
}

window_use known_type::window_for_one_pass(const void* buffer, MPI_Count count, direction way)
{
    counted_type* const used = in_one_pass(buffer, count, way);
    if (used == nullptr || !one_pass::is_worth(used->elements.moved)) {
        return {};
    }
    const type_layout& layout  = *used->elements.layout;
    bound_window* const window = used->windows.take(base_of(buffer, layout), layout, _uses);
    if (window == nullptr) {
        return {};
    }
    if (!window->is_direct) {
        // By an option, or because the memory cannot be shared after all. A window that was mapped when there was other
        // memory says nothing.
        if (window->is_shared && one_pass::stop()) {
            log_info("messages no longer go in one pass: a window over shared memory is not direct");
        }
        used->windows.give_back(*window);
        return {};
    }
    return lend(*used, *window);
}

window_use known_type::borrow_for_one_pass(const void* buffer, MPI_Count count, direction way) noexcept
{
    return with_lock(window_use(), [&] { return window_for_one_pass(buffer, count, way); });
}

type_layout_ptr known_type::layout_for_one_pass(const void* buffer, MPI_Count count, direction way,
                                                traffic& sum) noexcept
{
    return with_lock(type_layout_ptr(), [&] {
        const counted_type* const used = in_one_pass(buffer, count, way);
        if (used == nullptr) {
            return type_layout_ptr();
        }
        sum.length += used->elements.moved.length;
        sum.num_blocks += used->elements.moved.num_blocks;
        return used->elements.layout;
    });
}

void known_type::note_message(MPI_Count bytes)
{
    const std::lock_guard guard(_lock);
    _statistics.note_message(static_cast<std::size_t>(bytes));
}

window_use known_type::borrow(const void* buffer, MPI_Count count, direction way) noexcept
{
    if (count <= 0 || !settings::get().takes_messages || is_left(count)) {
        return {};
    }
    return with_lock(window_use(), [&]() -> window_use {
        learn();
        if (may_be_one_pass(count)) {
            if (window_use use = window_for_one_pass(buffer, count, way)) {
                return use;
            }
        }
        if (_facts.layout_context() != nullptr) {
            note_moved_by_layout(count);
            return {};
        }
        counted_type& used             = counted(count);
        const counted_layout& elements = used.elements;
        if (elements.why_not != nullptr) {
            note_left(count);
        }
        if (elements.why_not != nullptr || (way == direction::receive && !elements.is_unique)) {
            _statistics.note_why_not(elements.why_not != nullptr ? elements.why_not : "it names bytes twice");
            return {};
        }
        void* const base = base_of(buffer, *elements.layout);
        if (base == nullptr) {
            return {};
        }
        if (!contexts::may_use_windows()) {
            _statistics.note_why_not("a process of this job has no windows");
            return {};
        }
        bound_window* const window = used.windows.take(base, *elements.layout, _uses);
        if (window == nullptr) {
            _statistics.note_why_not("no window could be made");
            return {};
        }
        return lend(used, *window);
    });
}

void known_type::release(counted_type& counted, bound_window& window)
{
    const std::lock_guard guard(_lock);
    --counted.users;
    _statistics.note_by_cpu(counted.windows.give_back(window));
}

void* known_type::learned_layout_context() noexcept
{
    return with_lock<void*>(nullptr, [this] {
        learn();
        return _facts.layout_context();
    });
}

type_layout_ptr known_type::layout() noexcept
{
    return with_lock(type_layout_ptr(), [this] {
        learn();
        return _facts.layout();
    });
}

type_layout_ptr known_type::layout_to_copy(MPI_Count count, direction way) noexcept
{
    if (count <= 0) {
        return nullptr;
    }
    return with_lock(type_layout_ptr(), [&] {
        // Few layouts serve all counts, because a prefix of one can be copied.
        const auto rounded   = static_cast<MPI_Count>(std::bit_ceil(static_cast<std::uint64_t>(count)));
        const auto is_usable = [way](const counted_layout& elements) {
            return elements.layout != nullptr && (way == direction::send || elements.is_unique);
        };
        const counted_layout* elements = &counted(rounded).elements;
        if (!is_usable(*elements) && rounded != count) { // perhaps because of elements that are not used
            elements = &counted(count).elements;
        }
        if (!is_usable(*elements)) {
            _statistics.note_why_not(elements->layout == nullptr ? elements->why_not : "it names bytes twice");
            return type_layout_ptr();
        }
        // Its plan is made now, while MPI can still do without it.
        const layout_ptr& layout = elements->layout->layout;
        const bool has_plan = layout == nullptr || ucp_layout_gather(layout.get(), nullptr, 1, 0, 0, nullptr) == UCS_OK;
        return has_plan ? elements->layout : type_layout_ptr();
    });
}

bool known_type::is_worth_window(MPI_Count count) noexcept
{
    return count > 0 && with_lock(false, [&] {
               const char* const reason = counted(count).elements.why_not;
               if (reason != nullptr) {
                   _statistics.note_why_not(reason);
               }
               return reason == nullptr;
           });
}

MPI_Datatype known_type::basic_type() noexcept
{
    return with_lock(MPI_DATATYPE_NULL, [this] { return _facts.basic_type(); });
}

void known_type::note_copy(MPI_Count bytes)
{
    const std::lock_guard guard(_lock);
    _statistics.note_copy(static_cast<std::size_t>(bytes));
}

void known_type::release_windows()
{
    const std::lock_guard guard(_lock);
    for (const auto& each : _counted) {
        _statistics.note_by_cpu(each->windows.unmap_unused());
    }
}

type_figures known_type::figures()
{
    const std::lock_guard guard(_lock);
    type_figures made = _statistics.figures();
    for (const auto& each : _counted) {
        const traffic& moved = each->elements.moved;
        if (each->elements.layout != nullptr && made.length < moved.length) {
            made.length     = moved.length;
            made.num_blocks = moved.num_blocks;
        }
    }
    return made;
}

} // namespace ucxl::mpi
