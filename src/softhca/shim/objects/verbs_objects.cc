#include "verbs_objects.h"

#include "memory_key.h"
#include "prm/cq.h"
#include "prm/resource.h"
#include "prm/rq.h"
#include "softhca/shim/uverbs/access.h"

namespace ucxl::softhca
{

int user_memory::pin(device_file& file, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                     user_memory& pinned, std::uint16_t uid)
{
    if (const int error = file.outside.check_user(address, length, writes_memory(access)); error != 0) {
        return error;
    }
    const auto made = file.device.create_umem(file.function, uid, address, length, access);
    if (!made) {
        return error_of(made.error());
    }
    pinned.reset();
    pinned._file = &file;
    pinned._id   = *made;
    return 0;
}

int user_memory::release()
{
    if (_id == 0) {
        return 0;
    }
    const int error = error_of(_file->device.destroy_umem(_id));
    if (error == 0) {
        _id = 0;
    }
    return error;
}

int pd_object::release()
{
    mailbox<prm::dealloc_pd_in> in(prm::command::dealloc_pd);
    in.set(prm::dealloc_pd_in::pd, pdn);
    return file.run(in);
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
    mailbox<prm::plain_cq_in> in(prm::command::destroy_cq);
    in.set(prm::plain_cq_in::cqn, cqn);
    if (const int error = file.run(in); error != 0) {
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
    mailbox<prm::plain_rmp_in> in(prm::command::destroy_rmp);
    in.set(prm::plain_rmp_in::rmpn, srqn);
    if (const int error = file.run(in); error != 0) {
        (void)file.device.route_shared_receive_queue(srqn, route.value_or(event_route{}));
        return error;
    }
    events.settle(route);
    return 0;
}

} // namespace ucxl::softhca
