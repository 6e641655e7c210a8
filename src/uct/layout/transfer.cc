#include "transfer.h"

#include "refusal.h"

#include "ucs/window/window.h"

#include <cstring>

namespace ucxl
{

namespace
{

bool refuse(const void* address, std::size_t length)
{
    report_refusal("lay_copy", address, length, "are not inside a live window");
    return false;
}

struct side {
    const window* in;
    std::uint64_t offset;
    bool is_valid;
};

side classify(const window_registry& registry, const void* address, std::size_t length)
{
    if (!registry.in_arena(address)) {
        return {nullptr, 0, true};
    }
    const window* in = registry.find(address, length);
    if (in == nullptr) {
        return {nullptr, 0, false};
    }
    return {in, static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - in->address()), true};
}

} // namespace

bool transfer(void* to, const void* from, std::size_t length)
{
    if (length == 0) {
        return true;
    }
    const window_registry& registry = window_registry::instance();
    const reader_section guard;
    const side target = classify(registry, to, length);
    const side source = classify(registry, from, length);
    if (!target.is_valid) {
        return refuse(to, length);
    }
    if (!source.is_valid) {
        return refuse(from, length);
    }
    if (target.in == nullptr && source.in == nullptr) {
        std::memcpy(to, from, length);
        return true;
    }
    if (target.in == nullptr) {
        const window_binding& binding = source.in->binding();
        binding.plan->gather(binding.bases, source.offset, length, to);
        return true;
    }
    const window_binding& to_binding = target.in->binding();
    if (source.in == nullptr) {
        to_binding.plan->scatter(to_binding.bases, target.offset, length, from);
        return true;
    }
    const window_binding& from_binding = source.in->binding();
    pack_plan::copy(*to_binding.plan, to_binding.bases, target.offset, *from_binding.plan, from_binding.bases,
                    source.offset, length);
    return true;
}

} // namespace ucxl
