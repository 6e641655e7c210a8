// Builds a command, and turns the status of its answer into an errno.
//
//     mailbox<prm::dealloc_pd_in> in(prm::command::dealloc_pd);
//     in.set(prm::dealloc_pd_in::pd, pdn);
//     int error = file.run(in);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "prm/command.h"

namespace ucxl::softhca
{

// A value wider than its field is not cut: the command is marked and not sent.
template <typename In>
class mailbox
{
public:
    explicit mailbox(prm::command opcode) { set(In::opcode, opcode); }

    template <typename Field, typename Value>
    void set(Field field, Value value)
    {
        set(whole(), field, value);
    }

    template <typename View, typename Field, typename Value>
    void set(View part, Field field, Value value)
    {
        if (!part.set(field, value)) {
            _fits = false;
        }
    }

    template <typename Part>
    auto at(Part part)
    {
        return whole().at(part);
    }

    bool fits() const { return _fits; }
    std::span<const std::byte> bytes() const { return _bytes; }

private:
    // The minimum that the device accepts.
    static constexpr std::size_t least_bytes = 16;

    prm::view<In> whole() { return *prm::view<In>::over(_bytes); }

    alignas(8) std::array<std::byte, std::max<std::size_t>(In::size_bytes, least_bytes)> _bytes{};
    bool _fits = true;
};

int error_of(prm::command_status status);

} // namespace ucxl::softhca
