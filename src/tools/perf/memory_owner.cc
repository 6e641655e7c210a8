#include "memory_owner.h"

namespace ucxl::perf
{

namespace
{

constexpr std::size_t max_text_length = 4096;

} // namespace

void memory_owner::order(owner_step step, std::size_t method, std::uint64_t message)
{
    _owner.send_value(oob_kind::command,
                      owner_command{.step = step, .method = static_cast<std::uint32_t>(method), .message = message});
}

void memory_owner::begin(const settings& settings, const layout_pair& layouts)
{
    _owner.send(oob_kind::setup, encode(settings, layouts));
    _exported.clear();
    for (std::size_t i = 0; i < settings.chosen.size(); ++i) {
        exported_memory source = exported_memory::receive(_owner);
        _exported.push_back({.source = std::move(source), .destination = exported_memory::receive(_owner)});
    }
}

void memory_owner::fill(std::size_t method, std::uint64_t message)
{
    order(owner_step::fill, method, message);
    _owner.receive(oob_kind::status, 0);
}

std::string memory_owner::check(std::size_t method, std::uint64_t message)
{
    order(owner_step::check, method, message);
    const std::vector<std::byte> text = _owner.receive(oob_kind::status, max_text_length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

exported_memory memory_owner::map(method_kind kind)
{
    order(owner_step::map, static_cast<std::size_t>(kind));
    return exported_memory::receive(_owner);
}

owner_times memory_owner::unmap()
{
    order(owner_step::unmap);
    return _owner.receive_value<owner_times>(oob_kind::times);
}

void memory_owner::end()
{
    order(owner_step::end);
    _owner.receive(oob_kind::status, 0);
}

void memory_owner::leave()
{
    _owner.send(oob_kind::setup, {});
}

} // namespace ucxl::perf
