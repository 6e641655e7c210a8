#include "transfer.h"

#include "refusal.h"

#include "ucs/window/window.h"

#include <cstring>

namespace ucxl
{

std::optional<transfer_side> local_side(const reader_section&, const void* address, std::size_t length,
                                        const char* operation)
{
    const window_registry& registry = window_registry::instance();
    if (!registry.in_arena(address)) {
        return transfer_side{nullptr, {}, 0, static_cast<std::byte*>(const_cast<void*>(address))};
    }
    const window* const in = registry.find(address, length);
    if (in == nullptr) {
        report_refusal(operation, address, length, "are not inside a live window");
        return std::nullopt;
    }
    const window_binding& binding = in->binding();
    return transfer_side{binding.plan.get(), binding.bases,
                         static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - in->address()), nullptr};
}

void move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length)
{
    if (to.plan == nullptr && from.plan == nullptr) {
        std::memcpy(to.memory, from.memory, length);
    } else if (to.plan == nullptr) {
        from.plan->gather(from.bases, from.offset, length, to.memory);
    } else if (from.plan == nullptr) {
        to.plan->scatter(to.bases, to.offset, length, from.memory);
    } else {
        pack_plan::copy(*to.plan, to.bases, to.offset, *from.plan, from.bases, from.offset, length);
    }
}

bool transfer(void* to, const void* from, std::size_t length)
{
    if (length == 0) {
        return true;
    }
    const reader_section guard;
    const auto target = local_side(guard, to, length, "lay_copy");
    const auto source = target ? local_side(guard, from, length, "lay_copy") : std::nullopt;
    if (!source) {
        return false;
    }
    move_bytes(*target, *source, length);
    return true;
}

} // namespace ucxl
