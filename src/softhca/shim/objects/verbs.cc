#include "verbs.h"

#include "access_flags.h"
#include "memory_key.h"
#include "prm/cq.h"
#include "prm/qp.h"
#include "prm/resource.h"
#include "prm/rq.h"

namespace ucxl::softhca
{

int pd_object::release()
{
    mailbox<prm::dealloc_pd_in> input(prm::command::dealloc_pd);
    input.set(prm::dealloc_pd_in::pd, pdn);
    return file.run(input);
}

int dm_object::release()
{
    return error_of(file.device.free_memic(file.function, offset));
}

int key_object::release()
{
    return destroy_key(file, mkey);
}

void cq_object::route_events()
{
    (void)file.device.route_completions(cqn, completions.route(cqn));
    (void)file.device.route_cq_errors(cqn, errors.route(cqn));
}

void cq_object::forget_channel(const event_file& channel)
{
    if (completions.channel.get() == &channel) {
        completions.settle(file.device.route_completions(cqn, {}));
    }
    if (errors.channel.get() == &channel) {
        errors.settle(file.device.route_cq_errors(cqn, {}));
    }
}

int cq_object::release()
{
    const auto completion_route = file.device.route_completions(cqn, {});
    const auto error_route      = file.device.route_cq_errors(cqn, {});
    mailbox<prm::plain_cq_in> input(prm::command::destroy_cq);
    input.set(prm::plain_cq_in::cqn, cqn);
    if (const int error = file.run(input); error != 0) {
        (void)file.device.route_completions(cqn, completion_route.value_or(event_route{}));
        (void)file.device.route_cq_errors(cqn, error_route.value_or(event_route{}));
        return error;
    }
    completions.settle(completion_route);
    errors.settle(error_route);
    return 0;
}

void srq_object::route_events()
{
    (void)file.device.route_shared_receive_queue(srqn, events.route(srqn));
}

void srq_object::forget_channel(const event_file& channel)
{
    if (events.channel.get() == &channel) {
        events.settle(file.device.route_shared_receive_queue(srqn, {}));
    }
}

int srq_object::release()
{
    const auto route = file.device.route_shared_receive_queue(srqn, {});
    mailbox<prm::plain_rmp_in> input(prm::command::destroy_rmp);
    input.set(prm::plain_rmp_in::rmpn, srqn);
    if (const int error = file.run(input); error != 0) {
        (void)file.device.route_shared_receive_queue(srqn, route.value_or(event_route{}));
        return error;
    }
    events.settle(route);
    return 0;
}

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
    if (target != nullptr) {
        return release_target();
    }
    const auto route = file.device.route_queue_pair(qpn, {});
    mailbox<prm::plain_qp_in> input(prm::command::destroy_qp);
    input.set(prm::plain_qp_in::qpn, qpn);
    if (const int error = file.run(input); error != 0) {
        (void)file.device.route_queue_pair(qpn, route.value_or(event_route{}));
        return error;
    }
    events.settle(route);
    send_cq.reset();
    receive_cq.reset();
    srq.reset();
    return 0;
}

int qp_object::release_target()
{
    if (qpn != 0) {
        if (const int error = destroy_target(file, qpn); error != 0) {
            return error;
        }
    }
    send_cq.reset();
    receive_cq.reset();
    srq.reset();
    return 0;
}

} // namespace ucxl::softhca
