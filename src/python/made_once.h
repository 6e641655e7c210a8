// A value that is made when it is first asked for. If that fails, for want of memory, who asks next tries again.
//
// Any thread may ask. Where it is made already, that is one load.
//
// Example: made_once<plan> known; const plan* const made = known.get([&] { return plan::create(handle); });
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace ucxl::python
{

template <typename Value>
class made_once
{
public:
    // `make` returns a result<Value>. Null if it failed.
    template <typename Make>
    const Value* get(Make&& make) const
    {
        if (_is_made.load(std::memory_order_acquire)) {
            return &*_value;
        }
        const std::scoped_lock guard(_making);
        if (!_value) {
            auto made = make();
            if (!made) {
                return nullptr;
            }
            _value.emplace(std::move(*made));
            _is_made.store(true, std::memory_order_release);
        }
        return &*_value;
    }

private:
    mutable std::mutex _making;
    mutable std::optional<Value> _value;
    mutable std::atomic<bool> _is_made{false};
};

} // namespace ucxl::python
