#include "unreachable_memory.h"

#include "device_window_keys.h"
#include "domain_card.h"
#include "ucs/sys/status.h"
#include "window_handle.h"

#include "sys/object_around.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace ucxl::mlx5
{

namespace
{

constexpr auto name = "a transfer of a network card's memory through another card";

domain_device* copied_for(const uct_iov_t& part)
{
    return handle_table::instance().holds(part.memh) && part.length != 0
               ? static_cast<const window_handle*>(part.memh)->copied_for
               : nullptr;
}

// One operation, from its start until the transport has completed it.
class copied_operation
{
public:
    static ucs_status_t run(const abi::zcopy_call& call);

private:
    struct piece {
        std::byte* card;
        std::byte* copy;
        std::size_t length;
    };

    struct completion {
        uct_completion_t super;
        copied_operation* operation;
    };

    explicit copied_operation(const abi::zcopy_call& call) : _user(call.completion), _is_read(call.is_read) {}

    result<std::vector<uct_iov_t>> replaced(std::span<const uct_iov_t> parts);
    result<void> copy(copy_direction direction) const;
    ucs_status_t finish() const;
    static void complete(uct_completion_t* own);

    completion _own{{.func = complete, .count = 1, .status = UCS_OK}, this};
    uct_completion_t* const _user;
    const bool _is_read;
    std::unique_ptr<std::byte[]> _memory;
    std::optional<base_memory::held> _registered; // ends before the memory
    window_handle _handle;
    std::vector<piece> _pieces;
};

result<std::vector<uct_iov_t>> copied_operation::replaced(std::span<const uct_iov_t> parts)
{
    std::vector<uct_iov_t> instead(parts.begin(), parts.end());
    domain_device* device = nullptr; // the same for all parts: that of the transport
    std::size_t total     = 0;
    for (const uct_iov_t& part : parts) {
        if (domain_device* const unable = copied_for(part)) {
            if (part.count != 1) {
                return fail(errc::unsupported, "parts with a stride");
            }
            device = unable;
            total += part.length;
        }
    }
    _memory             = std::make_unique_for_overwrite<std::byte[]>(total);
    std::byte* at       = _memory.get();
    const auto start    = reinterpret_cast<std::uintptr_t>(at);
    base_memory& memory = *UCXL_TRY(device->get())->memory;
    _registered         = UCXL_TRY(memory.hold({start, start + total}));
    _handle.lkey        = _registered->lkey();
    for (uct_iov_t& part : instead) {
        if (copied_for(part) != nullptr) {
            _pieces.push_back({static_cast<std::byte*>(part.buffer), at, part.length});
            part.buffer = at;
            part.memh   = &_handle;
            at += part.length;
        }
    }
    return instead;
}

result<void> copied_operation::copy(copy_direction direction) const
{
    for (const piece& each : _pieces) {
        if (!device_window_keys::instance().copy_card_memory(each.card, each.length, each.copy, direction)) {
            return fail(errc::io_error, std::format("{} bytes at {} are not, or no longer, memory of a card, or the "
                                                    "card failed",
                                                    each.length, static_cast<void*>(each.card)));
        }
    }
    return {};
}

ucs_status_t copied_operation::finish() const
{
    return _is_read ? guarded(name, [&] { return status_of(name, copy(copy_direction::to_card)); }) : UCS_OK;
}

void copied_operation::complete(uct_completion_t* own)
{
    const std::unique_ptr<copied_operation> self(
        object_around<completion>(own, offsetof(completion, super))->operation);
    ucs_status_t status = own->status;
    if (status == UCS_OK) {
        status = self->finish();
    }
    if (uct_completion_t* const user = self->_user; user != nullptr) {
        uct_completion_update_status(user, status);
        if (--user->count == 0) {
            user->func(user);
        }
    }
}

ucs_status_t copied_operation::run(const abi::zcopy_call& call)
{
    std::unique_ptr<copied_operation> operation(new copied_operation(call));
    const auto parts = operation->replaced(call.parts);
    if (!parts) {
        return log_error(name, parts.error());
    }
    if (!call.is_read) {
        if (const auto copied = operation->copy(copy_direction::from_card); !copied) {
            return log_error(name, copied.error());
        }
    }
    const ucs_status_t status = call.stock(*parts, &operation->_own.super);
    if (status == UCS_INPROGRESS) {
        operation.release(); // complete() ends it
        return status;
    }
    return status == UCS_OK ? operation->finish() : status;
}

} // namespace

bool has_unreachable_memory(std::span<const uct_iov_t> parts)
{
    return std::ranges::any_of(parts, [](const uct_iov_t& part) { return copied_for(part) != nullptr; });
}

ucs_status_t run_with_copies(const abi::zcopy_call& call)
{
    return copied_operation::run(call);
}

} // namespace ucxl::mlx5
