// A part that is made when it is first needed.
//
// Example:
//     late_part<card_memory> _card;
//     auto* card = UCXL_TRY(_card.get([&] { return card_memory::create(keys, windows); }));
//
// Thread safety: none.
#pragma once

#include "sys/error.h"

#include <memory>
#include <optional>
#include <utility>

namespace ucxl::mlx5
{

template <typename Part>
class late_part
{
public:
    // The part; `make` returns it if it is not there yet. What the device cannot do is not tried again, nor what it did
    // not answer. Other failures may pass. Errors: those of `make`.
    template <typename Make>
    result<Part*> get(Make&& make)
    {
        if (_part != nullptr) {
            return _part.get();
        }
        if (_final) {
            return std::unexpected(*_final);
        }
        result<std::unique_ptr<Part>> made = std::forward<Make>(make)();
        if (made) {
            _part = std::move(*made);
            return _part.get();
        }
        if (made.error().code == errc::unsupported || made.error().code == errc::timed_out) {
            _final = made.error();
        }
        return std::unexpected(std::move(made.error()));
    }

    // Null while there is none.
    Part* existing() const { return _part.get(); }

private:
    std::unique_ptr<Part> _part;
    std::optional<error> _final;
};

} // namespace ucxl::mlx5
