#include "exchange.h"

#include "exchange_atomic.h"
#include "exchange_get.h"
#include "exchange_message.h"
#include "exchange_put.h"
#include "tools/common/failure.h"

namespace ucxl::perf
{

void send_word(session& session, std::uint64_t value)
{
    const ucp_request_param_t param{};
    session.finish(ucp_tag_send_nbx(session.endpoint(), &value, sizeof(value), tag_word, &param), "ucp_tag_send_nbx");
}

std::uint64_t receive_word(session& session)
{
    std::uint64_t value = 0;
    const ucp_request_param_t param{};
    session.finish(ucp_tag_recv_nbx(session.worker(), &value, sizeof(value), tag_word, UINT64_MAX, &param),
                   "ucp_tag_recv_nbx");
    return value;
}

std::unique_ptr<exchange> make_exchange(const settings& settings, session& session, method& method)
{
    const test_info& test = info_of(settings.test);
    switch (test.carried_by) {
    case carrier::tag:
    case carrier::am:
    case carrier::stream:
        if (test.ping_pong) {
            return std::make_unique<message_ping_pong>(session, method, test.carried_by);
        }
        return std::make_unique<message_stream>(session, method, test.carried_by, settings.outstanding);
    case carrier::put:
        if (test.ping_pong) {
            return std::make_unique<put_ping_pong>(session, method);
        }
        if (method.copies()) {
            return std::make_unique<put_ring>(session, method, settings.outstanding);
        }
        return std::make_unique<put_stream>(session, method, settings.outstanding);
    case carrier::get:
        if (method.copies()) {
            return std::make_unique<get_on_demand>(session, method, settings.outstanding);
        }
        return std::make_unique<get_stream>(session, method, settings.outstanding);
    case carrier::atomic:
        return std::make_unique<atomic_stream>(session, method, settings);
    case carrier::none:
        break;
    }
    tools::give_up("{} has nothing to exchange", test.name);
}

} // namespace ucxl::perf
