#include "devx_object.h"

#include <utility>

#include "prm/eq.h"
#include "prm/object.h"

namespace ucxl::softhca
{

int devx_object::release()
{
    (void)route(std::to_underlying(prm::event_type::completion), {});
    (void)route(std::to_underlying(prm::event_type::cq_error), {});
    mailbox<prm::general_object_in> in(kind_of.destroy);
    if (kind_of.destroy == prm::command::destroy_general_object) {
        in.set(prm::general_object_in::obj_type, id.type);
    }
    in.set(prm::general_object_in::obj_id, id.number);
    const int error = file.run(in);
    if (error != 0) {
        (void)route(std::to_underlying(prm::event_type::completion), _completions.route(id.number));
        (void)route(std::to_underlying(prm::event_type::cq_error), _events.route(id.number));
    }
    return error;
}

// False: objects of that class have no such event.
bool devx_object::route(std::uint32_t type, const event_route& to)
{
    const bool completion = type == std::to_underlying(prm::event_type::completion);
    switch (kind_of.create) {
    case prm::command::create_cq:
        return (completion ? file.device.route_completions(id.number, to) : file.device.route_cq_errors(id.number, to))
            .has_value();
    case prm::command::create_qp:
        return !completion && file.device.route_queue_pair(id.number, to).has_value();
    case prm::command::create_rmp:
        return !completion && file.device.route_shared_receive_queue(id.number, to).has_value();
    default:
        return false;
    }
}

int devx_object::subscribe_channel(const std::shared_ptr<event_file>& channel, std::uint16_t type, std::uint64_t cookie)
{
    const bool completion = type == std::to_underlying(prm::event_type::completion);
    event_target& target  = completion ? _completions : _events;
    if (target.channel != channel) {
        target.kinds = 0;
    }
    std::uint32_t kinds = target.kinds;
    if (!subscribe(kinds, type)) {
        return EINVAL;
    }
    event_target wanted;
    wanted.channel = channel;
    wanted.value   = cookie;
    wanted.kinds   = kinds;
    if (!route(type, wanted.route(id.number))) {
        return EINVAL;
    }
    target = std::move(wanted);
    return 0;
}

void devx_object::forget_channel(const event_file& channel)
{
    if (_completions.channel.get() == &channel) {
        (void)route(std::to_underlying(prm::event_type::completion), {});
        _completions = {};
    }
    if (_events.channel.get() == &channel) {
        (void)route(std::to_underlying(prm::event_type::cq_error), {});
        _events = {};
    }
}

} // namespace ucxl::softhca
