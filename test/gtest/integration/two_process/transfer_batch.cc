#include "transfer_batch.h"

#include "remote_key.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <optional>

namespace ucxl::two_process
{

const char* name_of(operation kind)
{
    switch (kind) {
    case operation::tag:
        return "tag";
    case operation::stream:
        return "stream";
    case operation::am:
        return "am";
    case operation::put:
        return "put";
    case operation::get:
        return "get";
    }
    return "?";
}

std::string to_string(const transfer_plan& plan)
{
    return std::format("{} of {} bytes, {} (from {}) -> {} (from {}), by role {}", name_of(plan.kind), plan.length,
                       name_of(plan.sides[0].kind), plan.sides[0].before, name_of(plan.sides[1].kind),
                       plan.sides[1].before, plan.from);
}

namespace
{

side_kind random_kind(test::random& random, bool allow_datatype)
{
    switch (random.below(allow_datatype ? 10 : 8)) {
    case 0:
    case 1:
        return side_kind::host;
    case 2:
        return side_kind::allocated;
    case 3:
        return side_kind::shared;
    case 8:
    case 9:
        return side_kind::datatype;
    default:
        return side_kind::window;
    }
}

side_plan random_side(test::random& random, const transfer_plan& plan, int index, const batch_options& options)
{
    side_plan side;
    side.kind = random_kind(random, options.allow_datatypes && !plan.is_remote_access());
    if (plan.is_remote_access() && !options.windows_in_remote_access) {
        side.kind = side_kind::host;
    }
    side.seed = random.next();
    if (side.kind != side_kind::datatype) {
        side.before    = random.one_in(2) ? 0 : random.below(130);
        side.after     = random.one_in(2) ? 0 : random.below(130);
        side.pass_memh = random.one_in(3);
    }
    side.remote = plan.is_remote_access() && index != plan.active_side();
    return side;
}

} // namespace

bool protocols_know_memory_types()
{
    const char* const enabled = std::getenv("UCX_PROTO_ENABLE");
    return enabled == nullptr || *enabled != 'n';
}

batch_plan random_batch(test::random& random, const batch_options& options)
{
    batch_plan batch;
    batch.unexpected = random.one_in(3);
    for (auto left = 1 + random.below(options.max_transfers); left > 0; --left) {
        transfer_plan plan;
        plan.kind   = options.operations[random.below(options.operations.size())];
        plan.from   = static_cast<int>(random.below(2));
        plan.length = options.lengths[random.below(options.lengths.size())];
        if (plan.length > 100 && random.one_in(3)) {
            plan.length -= random.below(plan.length / 8);
        }
        if (plan.kind == operation::stream) {
            plan.length = std::max<std::uint64_t>(plan.length, 1); // a stream has no empty messages
        }
        plan.seed = random.next();
        for (int index = 0; index < 2; ++index) {
            plan.sides[static_cast<std::size_t>(index)] = random_side(random, plan, index, options);
        }
        static constexpr std::array<unsigned, 3> am_flags = {0, UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV};
        plan.am_flags                                     = am_flags[random.below(am_flags.size())];
        plan.header_length                                = random.one_in(2) ? 0 : 1 + random.below(200);
        plan.rebind                                       = random.one_in(4) && options.allow_rebinding;
        batch.transfers.push_back(plan);
    }
    return batch;
}

namespace
{

// The part of one transfer that this process takes in a batch.
struct running_transfer {
    const transfer_plan* plan = nullptr;
    std::array<std::unique_ptr<side>, 2> sides; // those that this process owns
    bytes header;
    std::optional<remote_key> target; // for the active side of a remote access
    std::vector<ucs_status_ptr_t> requests;
    bool am_arrived = false;
};

class batch
{
public:
    batch(session& session, const batch_plan& plan) : _session(session), _plan(plan) {}

    void prepare();
    void exchange_keys();
    void start_receives();
    void start_sends();
    void finish();
    void verify();

private:
    void prepare(running_transfer& transfer, std::size_t index);
    void start_receive(running_transfer& transfer, std::size_t index);
    void start_send(running_transfer& transfer, std::size_t index);
    void started(running_transfer& transfer, ucs_status_ptr_t request);
    void handle_active_messages(std::size_t index, ucp_am_recv_callback_t handler, void* arg);
    static ucs_status_t on_active_message(void* arg, const void* header, std::size_t header_length, void* data,
                                          std::size_t length, const ucp_am_recv_param_t* param);

    struct am_target {
        batch* owner;
        std::size_t index;
    };

    session& _session;
    const batch_plan& _plan;
    std::vector<running_transfer> _transfers;
    std::vector<am_target> _am_targets;
    std::string _am_error; // an exception must not cross UCP
};

void batch::handle_active_messages(std::size_t index, ucp_am_recv_callback_t handler, void* arg)
{
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    param.id    = static_cast<unsigned>(index);
    param.cb    = handler;
    param.arg   = arg;
    param.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    check_ok(ucp_worker_set_am_recv_handler(_session.worker(), &param), "ucp_worker_set_am_recv_handler");
}

void batch::prepare(running_transfer& transfer, std::size_t index)
{
    const transfer_plan& plan = *transfer.plan;
    const bytes message       = test::random_bytes(plan.seed, plan.length);
    transfer.header           = test::random_bytes(plan.seed + 1, plan.header_length);
    for (std::size_t side_index = 0; side_index < 2; ++side_index) {
        if (!_session.plays(plan.owner(static_cast<int>(side_index)))) {
            continue;
        }
        auto& own = transfer.sides[side_index] = std::make_unique<side>(_session, plan.sides[side_index], plan.length);
        if (side_index == 0) {
            own->put_message(message);
        } else {
            own->expect_message(message);
        }
    }
    if (plan.kind == operation::am && transfer.sides[1]) {
        handle_active_messages(index, on_active_message, &_am_targets[index]);
    }
}

void batch::prepare()
{
    _transfers.resize(_plan.transfers.size());
    for (std::size_t i = 0; i < _transfers.size(); ++i) {
        _am_targets.push_back({this, i});
    }
    for (std::size_t i = 0; i < _transfers.size(); ++i) {
        _transfers[i].plan = &_plan.transfers[i];
        prepare(_transfers[i], i);
    }
}

void batch::exchange_keys()
{
    bytes own;
    for (const auto& transfer : _transfers) {
        const int target = 1 - transfer.plan->active_side();
        if (transfer.plan->is_remote_access() && _session.plays(transfer.plan->owner(target))) {
            const side& memory = *transfer.sides[static_cast<std::size_t>(target)];
            append_key(own, _session.context(), memory.memh(), memory.buffer());
        }
    }
    const bytes others              = _session.exchange(own);
    std::span<const std::byte> rest = others;
    for (auto& transfer : _transfers) {
        if (transfer.plan->is_remote_access() && _session.plays(transfer.plan->owner(transfer.plan->active_side()))) {
            transfer.target.emplace(_session.endpoint(), rest);
        }
    }
    for (auto& transfer : _transfers) {
        for (std::size_t index = 0; index < 2; ++index) {
            if (transfer.plan->rebind && transfer.sides[index] &&
                (transfer.plan->sides[index].kind == side_kind::window ||
                 transfer.plan->sides[index].kind == side_kind::shared)) {
                transfer.sides[index]->rebind();
            }
        }
    }
}

void batch::started(running_transfer& transfer, ucs_status_ptr_t request)
{
    check(!UCS_PTR_IS_ERR(request), "{} did not start: {}", to_string(*transfer.plan),
          ucs_status_string(UCS_PTR_STATUS(request)));
    if (request != nullptr) {
        transfer.requests.push_back(request);
    }
}

ucs_status_t batch::on_active_message(void* arg, const void* header, std::size_t header_length, void* data,
                                      std::size_t length, const ucp_am_recv_param_t* param)
{
    auto& [owner, index] = *static_cast<am_target*>(arg);
    auto& transfer       = owner->_transfers[index];
    try {
        check(!transfer.am_arrived, "an active message arrived twice");
        check(length == transfer.plan->length, "an active message of {} bytes, not {}", length, transfer.plan->length);
        check(std::ranges::equal(std::span(static_cast<const std::byte*>(header), header_length), transfer.header),
              "the header of an active message is not what was sent");
        check((param->recv_attr & (UCP_AM_RECV_ATTR_FLAG_DATA | UCP_AM_RECV_ATTR_FLAG_RNDV)) != 0,
              "an active message without a descriptor");
        transfer.am_arrived = true;
        ucp_request_param_t receive{};
        const side& to = *transfer.sides[1];
        to.describe_to(receive);
        const auto request = ucp_am_recv_data_nbx(owner->_session.worker(), data, to.buffer(), to.count(), &receive);
        owner->started(transfer, request);
        return request == nullptr ? UCS_OK : UCS_INPROGRESS;
    } catch (const std::exception& error) {
        owner->_am_error = error.what();
        return UCS_OK;
    }
}

void batch::start_receive(running_transfer& transfer, std::size_t index)
{
    const side& to = *transfer.sides[1];
    ucp_request_param_t param{};
    to.describe_to(param);
    if (transfer.plan->kind == operation::tag) {
        started(transfer, ucp_tag_recv_nbx(_session.worker(), to.buffer(), to.count(), index, UINT64_MAX, &param));
    } else if (transfer.plan->kind == operation::stream) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = UCP_STREAM_RECV_FLAG_WAITALL;
        std::size_t length = 0;
        const auto request = ucp_stream_recv_nbx(_session.endpoint(), to.buffer(), to.count(), &length, &param);
        check(request != nullptr || length == transfer.plan->length, "a stream gave {} bytes, not {}", length,
              transfer.plan->length);
        started(transfer, request);
    }
}

void batch::start_send(running_transfer& transfer, std::size_t index)
{
    const transfer_plan& plan = *transfer.plan;
    const side& local         = *transfer.sides[static_cast<std::size_t>(plan.active_side())];
    const auto ep             = _session.endpoint();
    ucp_request_param_t param{};
    local.describe_to(param);
    switch (plan.kind) {
    case operation::tag:
        started(transfer, ucp_tag_send_nbx(ep, local.buffer(), local.count(), index, &param));
        break;
    case operation::stream:
        started(transfer, ucp_stream_send_nbx(ep, local.buffer(), local.count(), &param));
        break;
    case operation::am:
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = plan.am_flags;
        started(transfer, ucp_am_send_nbx(ep, static_cast<unsigned>(index), transfer.header.data(),
                                          transfer.header.size(), local.buffer(), local.count(), &param));
        break;
    case operation::put:
        started(transfer, ucp_put_nbx(ep, local.buffer(), local.count(), transfer.target->address(),
                                      transfer.target->get(), &param));
        break;
    case operation::get:
        started(transfer, ucp_get_nbx(ep, local.buffer(), local.count(), transfer.target->address(),
                                      transfer.target->get(), &param));
        break;
    }
}

void batch::start_receives()
{
    for (std::size_t i = 0; i < _transfers.size(); ++i) {
        if (_transfers[i].sides[1]) {
            start_receive(_transfers[i], i);
        }
    }
}

void batch::start_sends()
{
    for (std::size_t i = 0; i < _transfers.size(); ++i) {
        if (_transfers[i].sides[static_cast<std::size_t>(_transfers[i].plan->active_side())]) {
            start_send(_transfers[i], i);
        }
    }
}

void batch::finish()
{
    for (auto& transfer : _transfers) {
        while (transfer.plan->kind == operation::am && transfer.sides[1] && !transfer.am_arrived) {
            check(_am_error.empty(), "{}: {}", to_string(*transfer.plan), _am_error);
            _session.turn();
        }
        for (const auto request : std::exchange(transfer.requests, {})) {
            const auto status = _session.wait(request);
            check(status == UCS_OK, "{}: {}", to_string(*transfer.plan), ucs_status_string(status));
        }
    }
    check(_am_error.empty(), "{}", _am_error);
    _session.flush();
    _session.barrier();
}

void batch::verify()
{
    for (auto& transfer : _transfers) {
        for (std::size_t index = 0; index < 2; ++index) {
            if (!transfer.sides[index]) {
                continue;
            }
            try {
                transfer.sides[index]->verify();
            } catch (const std::runtime_error& failure) {
                throw std::runtime_error(
                    std::format("{}, side {}: {}", to_string(*transfer.plan), index, failure.what()));
            }
        }
    }
}

} // namespace

void run_batch(session& session, const batch_plan& plan)
{
    batch running(session, plan);
    running.prepare();
    running.exchange_keys();
    if (!plan.unexpected) {
        running.start_receives();
    }
    session.barrier();
    running.start_sends();
    if (plan.unexpected) {
        session.barrier();
        running.start_receives();
    }
    running.finish();
    running.verify();
}

} // namespace ucxl::two_process
