#include "exchange_get.h"

#include "channel.h"
#include "tools/common/failure.h"

#include <algorithm>

namespace ucxl::perf
{

get_stream::get_stream(session& session, method& method, unsigned slots)
    : _session(session), _method(method), _remote(remote_memory::trade(session, method.exposed_outgoing())),
      _gets(session, slots)
{
}

ucs_status_ptr_t get_stream::start(unsigned slot)
{
    const wire_buffer buffer        = _method.incoming(slot);
    const ucp_request_param_t param = param_of(buffer);
    return ucp_get_nbx(_session.endpoint(), buffer.address, buffer.count, _remote.address(slot), _remote.key(), &param);
}

void get_stream::run_client(std::uint64_t count, method_statistics& statistics)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const unsigned slot = _gets.slot_of(i);
        _gets.finish(slot);
        _gets.start(slot, start(slot));
        statistics.lap();
    }
    _gets.finish_all();
}

// Works in batches of as many messages as may be outstanding.
void get_on_demand::run_client(std::uint64_t count, method_statistics& statistics)
{
    for (std::uint64_t first = 0; first < count; first += gets().slots()) {
        const auto size = static_cast<unsigned>(std::min<std::uint64_t>(gets().slots(), count - first));
        for (unsigned slot = 0; slot < size; ++slot) {
            send_word(own_session(), slot);
        }
        for (unsigned slot = 0; slot < size; ++slot) {
            receive_word(own_session());
            gets().start(slot, start(slot));
        }
        for (unsigned slot = 0; slot < size; ++slot) {
            gets().finish(slot);
            own_method().after_receive(slot);
            statistics.lap();
        }
    }
}

void get_on_demand::run_server(std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t slot = receive_word(own_session());
        if (slot >= gets().slots()) {
            tools::give_up("{} asks for slot {} of {}", own_session().peer().peer_name(), slot, gets().slots());
        }
        own_method().before_send(static_cast<unsigned>(slot));
        send_word(own_session(), slot);
    }
}

} // namespace ucxl::perf
