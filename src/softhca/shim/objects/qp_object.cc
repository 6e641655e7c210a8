#include "qp_object.h"

#include "prm/qp.h"

namespace ucxl::softhca
{

void qp_object::route_events()
{
    (void)file.device.route_queue_pair(qpn, events.route(qpn));
}

void qp_object::forget_channel(const event_file& channel)
{
    if (events.channel.get() == &channel) {
        events.settle(file.device.route_queue_pair(qpn, {}));
    }
}

int qp_object::release()
{
    const auto route = file.device.route_queue_pair(qpn, {});
    mailbox<prm::plain_qp_in> in(prm::command::destroy_qp);
    in.set(prm::plain_qp_in::qpn, qpn);
    if (const int error = file.run(in); error != 0) {
        (void)file.device.route_queue_pair(qpn, route.value_or(event_route{}));
        return error;
    }
    events.settle(route);
    send_cq.reset();
    receive_cq.reset();
    srq.reset();
    return 0;
}

} // namespace ucxl::softhca
