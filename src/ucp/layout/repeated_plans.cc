#include "repeated_plans.h"

#include "ucs/layout/build.h"

#include <exception>
#include <mutex>

namespace ucxl
{

repeated_plans::repeated_plans(handle_ptr layout, pack_plan_ptr element)
    : _layout(std::move(layout)), _element(std::move(element))
{
}

const pack_plan& repeated_plans::get(std::uint64_t count) noexcept
{
    try {
        return find_or_compile(count);
    } catch (const std::exception&) {
        return *_element;
    }
}

const pack_plan& repeated_plans::find_or_compile(std::uint64_t count)
{
    if (count <= 1) {
        return *_element;
    }
    {
        const std::shared_lock reader(_lock);
        if (const auto known = _by_count.find(count); known != _by_count.end()) {
            return *known->second;
        }
        if (_by_count.size() >= max_kept) {
            return *_element;
        }
    }
    const std::lock_guard writer(_lock);
    if (const auto known = _by_count.find(count); known != _by_count.end()) {
        return *known->second;
    }
    const auto repeated = make_contig(count, {.nested = _layout->value});
    if (!repeated) {
        return *_element;
    }
    auto compiled = pack_plan::compile(*repeated);
    return compiled ? *_by_count.emplace(count, std::move(*compiled)).first->second : *_element;
}

} // namespace ucxl
