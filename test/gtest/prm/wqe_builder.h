// Builds the bytes of a WQE segment by segment, for tests.
#pragma once

#include <vector>

#include "prm/view.h"
#include "prm/wqe.h"

namespace ucxl::prm
{

class wqe_builder
{
public:
    explicit wqe_builder(wqe_opcode opcode, std::uint8_t op_mod = 0) : _opcode(opcode), _op_mod(op_mod)
    {
        add<wqe_control_segment>([](auto) {});
    }

    template <typename S, typename Fill>
    wqe_builder& add(Fill&& fill)
    {
        storage<S> segment;
        fill(*segment);
        _bytes.insert(_bytes.end(), segment.bytes.begin(), segment.bytes.end());
        return *this;
    }

    // Inline data with its header and padding.
    wqe_builder& add_inline(std::size_t length)
    {
        add<wqe_inline_segment>([&](auto view) {
            view.template put<true>(wqe_inline_segment::in_line);
            (void)view.set(wqe_inline_segment::byte_count, length);
        });
        _bytes.insert(_bytes.end(), length, std::byte{0xee});
        _bytes.resize((_bytes.size() + 15) / 16 * 16);
        return *this;
    }

    std::vector<std::byte> bytes() const { return bytes(_bytes.size() / wqe_unit_bytes); }

    // With a length other than its own.
    std::vector<std::byte> bytes(std::size_t units) const
    {
        auto made          = _bytes;
        const auto control = *view<wqe_control_segment>::over(made);
        (void)control.set(wqe_control_segment::opcode, _opcode);
        (void)control.set(wqe_control_segment::op_mod, _op_mod);
        (void)control.set(wqe_control_segment::ds, units);
        return made;
    }

private:
    wqe_opcode _opcode;
    std::uint8_t _op_mod;
    std::vector<std::byte> _bytes;
};

} // namespace ucxl::prm
