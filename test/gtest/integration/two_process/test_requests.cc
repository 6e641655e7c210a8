// Requests that fail: windows report what stock UCX reports for host memory, and nothing outside the transfer is
// touched.
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include "support/leak_checks.h"

#include <algorithm>

namespace ucxl::two_process
{

namespace
{

ucs_status_ptr_t send(session& session, const side& from, std::uint64_t tag)
{
    ucp_request_param_t param{};
    from.describe_to(param);
    return ucp_tag_send_nbx(session.endpoint(), from.buffer(), from.count(), tag, &param);
}

ucs_status_ptr_t receive(session& session, const side& to, std::uint64_t tag)
{
    ucp_request_param_t param{};
    to.describe_to(param);
    return ucp_tag_recv_nbx(session.worker(), to.buffer(), to.count(), tag, UINT64_MAX, &param);
}

constexpr side_kind all_kinds[] = {side_kind::host, side_kind::window, side_kind::allocated, side_kind::shared,
                                   side_kind::datatype};

// The message is longer than the receive: rounds alternate between expected and unexpected.
void truncated_receives(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    std::uint64_t tag = 0;
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        for (const auto kind : all_kinds) {
            for (const std::uint64_t length : {64u, 5000u, 300000u}) {
                ++tag;
                const auto seed       = test::derive_seed(arguments.seed, tag);
                const bool unexpected = round % 2 == 1;
                const bool aligned    = kind == side_kind::datatype;
                const side_plan plan{
                    .kind = kind, .seed = seed, .before = aligned ? 0u : 10u, .after = aligned ? 0u : 10u};
                if (arguments.role == 0) {
                    side from(session, plan, length + 1 + seed % 1000);
                    if (!unexpected) {
                        session.barrier();
                    }
                    const auto status = session.wait(send(session, from, tag));
                    check(status == UCS_OK, "the sender got {}", ucs_status_string(status));
                    session.barrier();
                    from.verify();
                } else {
                    side to(session, plan, length);
                    auto request = unexpected ? nullptr : receive(session, to, tag);
                    if (unexpected) {
                        ucp_tag_recv_info_t info;
                        while (ucp_tag_probe_nb(session.worker(), tag, UINT64_MAX, 0, &info) == nullptr) {
                            session.turn();
                        }
                        request = receive(session, to, tag);
                    } else {
                        session.barrier();
                    }
                    const auto status = session.wait(request);
                    check(status == UCS_ERR_MESSAGE_TRUNCATED,
                          "a truncated receive of {} bytes into a {} ended with {}", length, name_of(kind),
                          ucs_status_string(status));
                    session.barrier();
                    to.accept_content();
                    to.verify();
                }
            }
        }
    }
    session.close();
}

// A cancelled receive leaves its memory alone, and the next receive gets the message.
void cancelled_receives(const peer_arguments& arguments)
{
    // UCX does not release the datatype state of a cancelled receive (docs/limits.md).
    const test::leaks_of_others cancelled_transfers;
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        for (const auto kind : all_kinds) {
            for (const std::uint64_t length : {64u, 300000u}) {
                const auto seed    = test::derive_seed(arguments.seed, round * 10 + static_cast<unsigned>(kind));
                const auto message = test::random_bytes(seed, length);
                if (arguments.role == 0) {
                    side from(session, {.kind = kind, .seed = seed + 1}, length);
                    from.put_message(message);
                    session.barrier();
                    check_ok(session.wait(send(session, from, 1)), "send");
                    session.barrier();
                    from.verify();
                } else {
                    side cancelled(session, {.kind = kind, .seed = seed + 2}, length);
                    side to(session, {.kind = kind, .seed = seed + 3}, length);
                    to.expect_message(message);
                    const auto request = receive(session, cancelled, 1);
                    check(UCS_PTR_IS_PTR(request), "a receive ended before anything was sent");
                    ucp_request_cancel(session.worker(), request);
                    const auto status = session.wait(request);
                    check(status == UCS_ERR_CANCELED, "a cancelled receive ended with {}", ucs_status_string(status));
                    const auto next = receive(session, to, 1);
                    session.barrier();
                    check_ok(session.wait(next), "receive");
                    session.barrier();
                    cancelled.verify();
                    to.verify();
                }
            }
        }
    }
    session.close();
}

const scenario truncated("truncated_receives", truncated_receives);
const scenario cancelled("cancelled_receives", cancelled_receives);

class requests_that_fail : public testing::TestWithParam<setting>
{
};

TEST_P(requests_that_fail, truncated_receive_reports_it_and_touches_nothing_else)
{
    EXPECT_PAIR(config_for(GetParam(), "truncated_receives", 2));
}

TEST_P(requests_that_fail, cancelled_receive_touches_nothing)
{
    EXPECT_PAIR(config_for(GetParam(), "cancelled_receives", 2));
}

INSTANTIATE_TEST_SUITE_P(matrix, requests_that_fail,
                         testing::Combine(testing::ValuesIn(transports({"posix", "posix_cma", "tcp"},
                                                                       {"rc_x", "dc_x", "far"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
