#include "window_handle.h"

#include "abi/log.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include <sys/mman.h>

namespace ucxl::mlx5
{

static_assert(offsetof(transport_handle, lkey) == 0 && offsetof(transport_handle, rkey) == 4 &&
              offsetof(transport_handle, flags) == 8);

void window_record::note_with_own_keys(window_handle& handle)
{
    if (std::ranges::find(with_own_keys, &handle) == with_own_keys.end()) {
        with_own_keys.push_back(&handle);
    }
}

void window_record::drop_own_keys() noexcept
{
    for (window_handle* const handle : with_own_keys) {
        handle->drop_own_key();
    }
    forget_handles_without_keys();
}

void window_record::drop_own_keys_in(std::span<const std::byte> card_memory) noexcept
{
    for (window_handle* const handle : with_own_keys) {
        const std::byte* const start = handle->card_memory.data();
        if (start >= card_memory.data() && start < card_memory.data() + card_memory.size()) {
            handle->drop_own_key();
        }
    }
    forget_handles_without_keys();
}

void window_record::suspend_exported_keys() noexcept
{
    for (window_handle* const handle : with_own_keys) {
        if (handle->exported_key != nullptr) {
            handle->exported_key->suspend();
        }
    }
}

void window_record::rebind_exported_keys(const std::vector<std::byte*>& bases)
{
    for (window_handle* const handle : with_own_keys) {
        if (handle->exported_key == nullptr || handle->exported_key->is_suspended()) {
            continue;
        }
        if (const auto done = handle->exported_key->rebind(bases); !done) {
            handle->exported_key->suspend();
            ucs_warn("importers lose the window at %p: %s",
                     static_cast<const void*>(handle->exported_key->content().address), done.error().message.c_str());
        }
    }
}

void window_record::end_exported_keys() noexcept
{
    for (window_handle* const handle : with_own_keys) {
        handle->exported_key.reset();
    }
    forget_handles_without_keys();
}

void window_record::forget_handles_without_keys() noexcept
{
    std::erase_if(with_own_keys, [](const window_handle* handle) { return !handle->has_own_keys(); });
}

handle_table::handle_table()
{
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    _memory = memory == MAP_FAILED ? nullptr : static_cast<place*>(memory);
}

// Never destroyed: UCX may give handles back while the process ends.
handle_table& handle_table::instance()
{
    static handle_table& only = *new handle_table;
    return only;
}

result<window_handle*> handle_table::take()
{
    const std::lock_guard guard(_lock);
    place* found = _unused;
    if (found != nullptr) {
        _unused = found->next;
    } else if (_memory != nullptr && _num_fresh < max_handles) {
        found = _memory + _num_fresh++;
    } else {
        return fail(errc::no_memory, "there are too many memory handles of windows");
    }
    return new (&found->used) window_handle;
}

void handle_table::give_back(window_handle* handle)
{
    handle->~window_handle();
    const std::lock_guard guard(_lock);
    auto* const unused = reinterpret_cast<place*>(handle);
    unused->next       = _unused;
    _unused            = unused;
}

} // namespace ucxl::mlx5
