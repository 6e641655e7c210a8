// Windows that come and go: thousands at once, an address reused for another layout, and other memory under the same
// keys.
#include "remote_key.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include "support/random_spec.h"

#include <map>
#include <optional>

namespace ucxl::two_process
{

namespace
{

constexpr std::uint64_t any_tag = 0;

ucx_layout::window map_window(session& session, const test::spec& spec, const test::spec_memory& memory)
{
    std::vector<void*> bases(memory.bases().begin(), memory.bases().end());
    auto created = ucx_layout::window::map(session.context(), create_layout(spec), bases);
    check(created.has_value(), "no window of {}", to_string(spec));
    return std::move(*created);
}

// A window, its memory, and the oracle's copy of that memory.
struct own_window {
    own_window(session& session, const test::spec_ptr& described, std::uint64_t seed)
        : spec(described), actual(*described, seed), expected(*described, seed),
          window(map_window(session, *described, actual))
    {
    }

    void check_memory(const char* moment)
    {
        const auto difference = actual.first_difference(expected);
        check(difference.empty(), "{}: {}: {}", moment, difference, to_string(*spec));
    }

    test::spec_ptr spec;
    test::spec_memory actual;
    test::spec_memory expected;
    ucx_layout::window window;
};

ucs_status_ptr_t send(session& session, const ucx_layout::window& from, std::uint64_t tag)
{
    const ucp_request_param_t param{};
    const auto request = ucp_tag_send_nbx(session.endpoint(), from.address(), from.length(), tag, &param);
    check(!UCS_PTR_IS_ERR(request), "ucp_tag_send_nbx: {}", ucs_status_string(UCS_PTR_STATUS(request)));
    return request;
}

ucs_status_ptr_t receive(session& session, const ucx_layout::window& to, std::uint64_t tag)
{
    const ucp_request_param_t param{};
    const auto request = ucp_tag_recv_nbx(session.worker(), to.address(), to.length(), tag, UINT64_MAX, &param);
    check(!UCS_PTR_IS_ERR(request), "ucp_tag_recv_nbx: {}", ucs_status_string(UCS_PTR_STATUS(request)));
    return request;
}

// Window i of role 0 goes to window i of role 1, which has another layout; all are in flight at once.
void many_windows(const peer_arguments& arguments)
{
    constexpr std::uint64_t number = 2000;
    const context_handle context(arguments);
    session session(arguments, context);
    std::vector<std::unique_ptr<own_window>> windows;
    for (std::uint64_t i = 0; i < number; ++i) {
        const auto seed     = test::derive_seed(arguments.seed, i);
        const auto own_seed = test::derive_seed(seed, static_cast<std::uint64_t>(arguments.role));
        const auto length   = 1 + seed % 3000;
        test::random random(own_seed);
        windows.push_back(std::make_unique<own_window>(session, spec_of_length(random, length), own_seed));
        const auto message = test::random_bytes(seed, length);
        windows.back()->expected.scatter(0, message);
        if (arguments.role == 0) {
            windows.back()->actual.scatter(0, message);
        }
    }
    session.barrier();
    std::vector<ucs_status_ptr_t> requests;
    for (std::uint64_t i = 0; i < number; ++i) {
        requests.push_back(arguments.role == 0 ? send(session, windows[i]->window, i)
                                               : receive(session, windows[i]->window, i));
    }
    for (const auto request : requests) {
        check_ok(session.wait(request), "one of many transfers");
    }
    session.close();
    for (const auto& each : windows) {
        each->check_memory("one of many windows");
    }
}

// With an arena of one slot, no cache of windows and windows of about the same length (16 fit in), an address is soon
// reused, for another layout.
void addresses_come_back(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    std::map<void*, unsigned> uses;
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const auto seed     = test::derive_seed(arguments.seed, round);
        const auto own_seed = test::derive_seed(seed, static_cast<std::uint64_t>(arguments.role));
        const auto length   = (9u << 18) + seed % (5u << 18);
        test::random random(own_seed);
        own_window own(session, spec_of_length(random, length), own_seed);
        ++uses[own.window.address()];
        const auto message = test::random_bytes(seed, length);
        own.expected.scatter(0, message);
        if (arguments.role == 0) {
            own.actual.scatter(0, message);
            check_ok(session.wait(send(session, own.window, any_tag)), "send");
        } else {
            check_ok(session.wait(receive(session, own.window, any_tag)), "receive");
        }
        session.barrier();
        own.check_memory("a window at an address used before");
    }
    session.close();
    check(uses.size() < arguments.rounds, "no address came back in {} windows: the test shows nothing",
          arguments.rounds);
}

// Role 0 puts and gets through one key, while role 1 moves its window from memory to memory.
void key_outlives_rebind(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    test::random random(test::derive_seed(arguments.seed, 1000));
    const std::uint64_t length = 1 + random.below(50000);
    const auto spec            = spec_of_length(random, length);
    const bool is_target       = arguments.role == 1;
    std::unique_ptr<own_window> own;
    if (is_target) {
        own = std::make_unique<own_window>(session, spec, 1);
    }
    bytes own_key;
    if (is_target) {
        append_key(own_key, session.context(), own->window.memh(), own->window.address());
    }
    const bytes other_key              = session.exchange(own_key);
    std::span<const std::byte> payload = other_key;
    std::optional<remote_key> remote;
    if (!is_target) {
        remote.emplace(session.endpoint(), payload);
    }

    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const auto seed    = test::derive_seed(arguments.seed, round);
        const auto message = test::random_bytes(seed, length);
        test::spec_memory actual(*spec, seed), expected(*spec, seed);
        if (is_target) {
            std::vector<void*> bases(actual.bases().begin(), actual.bases().end());
            check_ok(own->window.rebind(bases), "ucp_layout_rebind");
        }
        session.barrier();
        if (!is_target) {
            const ucp_request_param_t param{};
            check_ok(session.wait(ucp_put_nbx(session.endpoint(), message.data(), length, remote->address(),
                                              remote->get(), &param)),
                     "put");
            session.flush();
            bytes back(length);
            check_ok(session.wait(ucp_get_nbx(session.endpoint(), back.data(), length, remote->address(), remote->get(),
                                              &param)),
                     "get");
            check(back == message, "what came back is not what was put");
        }
        session.barrier();
        if (is_target) {
            expected.scatter(0, message);
            const auto difference = actual.first_difference(expected);
            check(difference.empty(), "after rebinding: {}: {}", difference, to_string(*spec));
            own->check_memory("memory the window showed before");
            check_ok(own->window.rebind(std::vector<void*>(own->actual.bases().begin(), own->actual.bases().end())),
                     "ucp_layout_rebind");
        }
    }
    remote.reset();
    session.close();
}

// A byte described twice is sent twice.
void overlapping_source(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        const auto spec =
            test::random_spec(random, {.max_bytes = 20000, .num_sources = 2, .overlapping = test::overlapping::always});
        const auto length = test::packed_length_of(*spec);
        const ucp_request_param_t param{};
        test::spec_memory actual(*spec, round), expected(*spec, round);
        if (arguments.role == 0) {
            const auto window = map_window(session, *spec, actual);
            check_ok(session.wait(send(session, window, round)), "send");
            session.barrier();
            const auto difference = actual.first_difference(expected);
            check(difference.empty(), "the sender's memory changed: {}", difference);
        } else {
            bytes received(length);
            check_ok(
                session.wait(ucp_tag_recv_nbx(session.worker(), received.data(), length, round, UINT64_MAX, &param)),
                "receive");
            check(received == expected.gather(), "not the bytes of {}", to_string(*spec));
            session.barrier();
        }
    }
    session.close();
}

const scenario many("many_windows", many_windows);
const scenario addresses("addresses_come_back", addresses_come_back);
const scenario rebinds("key_outlives_rebind", key_outlives_rebind);
const scenario overlaps("overlapping_source", overlapping_source);

class windows : public testing::TestWithParam<setting>
{
};

TEST_P(windows, two_thousand_at_once)
{
    EXPECT_PAIR(config_for(GetParam(), "many_windows", 1));
}

TEST_P(windows, address_comes_back_with_another_layout)
{
    auto config = config_for(GetParam(), "addresses_come_back", 24);
    config.variables.emplace_back("UCX_LAYOUT_ARENA_SIZE", "64m");
    config.variables.emplace_back("UCX_LAYOUT_MAP_CACHE_SIZE", "0");
    EXPECT_PAIR(config);
}

TEST_P(windows, overlapping_blocks_are_sent_each)
{
    EXPECT_PAIR(config_for(GetParam(), "overlapping_source", 25));
}

INSTANTIATE_TEST_SUITE_P(matrix, windows,
                         testing::Combine(testing::ValuesIn(transports({"posix", "tcp"}, {"rc_x", "far"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

// Only with the protocol implementation that knows memory types, see batch_options.
class remotely_accessed_windows : public testing::TestWithParam<setting>
{
};

TEST_P(remotely_accessed_windows, remote_key_stays_valid_when_the_window_is_rebound)
{
    EXPECT_PAIR(config_for(GetParam(), "key_outlives_rebind", 12));
}

INSTANTIATE_TEST_SUITE_P(matrix, remotely_accessed_windows,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "tcp"},
                                                                       {"rc_x", "dc_x", "far"})),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
