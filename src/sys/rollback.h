// Undoes a step of a function that fails later, by a returned error or by an exception.
//
// Example:
//     const auto place = windows.emplace(window, std::move(owned)).first;
//     rollback undo([&] { windows.erase(place); });
//     index(*window); // may throw
//     undo.cancel();
#pragma once

#include <utility>

namespace ucxl
{

template <typename Undo>
class [[nodiscard]] rollback
{
public:
    explicit rollback(Undo undo) : _undo(std::move(undo)) {}
    rollback(const rollback&)            = delete;
    rollback& operator=(const rollback&) = delete;
    ~rollback()
    {
        if (_is_armed) {
            _undo();
        }
    }

    // The function succeeded.
    void cancel() noexcept { _is_armed = false; }

private:
    Undo _undo; // must not throw
    bool _is_armed = true;
};

} // namespace ucxl
