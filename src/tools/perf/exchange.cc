#include "exchange.h"

#include "exchange_get.h"
#include "exchange_message.h"
#include "exchange_put.h"
#include "tools/common/failure.h"

namespace ucxl::perf
{

void send_word(session& with, std::uint64_t value)
{
    const ucp_request_param_t param{};
    with.finish(ucp_tag_send_nbx(with.endpoint(), &value, sizeof(value), tag_word, &param), "ucp_tag_send_nbx");
}

std::uint64_t receive_word(session& with)
{
    std::uint64_t value = 0;
    const ucp_request_param_t param{};
    with.finish(ucp_tag_recv_nbx(with.worker(), &value, sizeof(value), tag_word, UINT64_MAX, &param),
                "ucp_tag_recv_nbx");
    return value;
}

std::unique_ptr<exchange> make_exchange(const settings& what, session& with, method& how)
{
    const test_info& test = info_of(what.test);
    switch (test.carried_by) {
    case carrier::tag:
    case carrier::am:
    case carrier::stream:
        if (test.ping_pong) {
            return std::make_unique<message_ping_pong>(with, how, test.carried_by);
        }
        return std::make_unique<message_stream>(with, how, test.carried_by, what.outstanding);
    case carrier::put:
        if (test.ping_pong) {
            return std::make_unique<put_ping_pong>(with, how);
        }
        if (how.copies()) {
            return std::make_unique<put_ring>(with, how, what.outstanding);
        }
        return std::make_unique<put_stream>(with, how, what.outstanding);
    case carrier::get:
        if (how.copies()) {
            return std::make_unique<get_on_demand>(with, how, what.outstanding);
        }
        return std::make_unique<get_stream>(with, how, what.outstanding);
    case carrier::none:
        break;
    }
    tools::give_up("{} has nothing to exchange", test.name);
}

} // namespace ucxl::perf
