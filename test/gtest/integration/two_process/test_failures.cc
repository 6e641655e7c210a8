// Remote access to addresses that are no window, a destroyed window, or only partly in a window: the initiator sees the
// failure, the owner's memory is unchanged, and both go on.
//
// Role 1 owns windows of every kind and unmaps some. Role 0 uses the keys and addresses it has received.
#include "failing_access.h"
#include "scenario.h"
#include "support/random.h"
#include "support/ucp.h"
#include "transports.h"

#include <ucp_layout.hpp>
#include <ucp_layout_failure.h>

#include <format>
#include <numeric>

namespace ucxl::two_process
{

namespace
{

// Ranges around a live window.
void outside(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(1)) {
        for (const memory_kind kind : all_kinds) {
            const owned_window window(session, kind);
            bytes key;
            window.append_key_to(key, session);
            session.exchange(key);
            session.barrier();
            window.verify(name_of(kind));
            session.barrier();
        }
        session.close();
        return;
    }
    check_ok(ucp_layout_failure_watch(count_failure, nullptr), "watch");
    initiator operations(session);
    for (const memory_kind kind : all_kinds) {
        const bytes expected            = session.exchange({});
        std::span<const std::byte> rest = expected;
        {
            const remote_key key(session.endpoint(), rest);
            const std::uint64_t first   = key.address();
            const std::size_t whole     = shape_of(kind).length();
            const std::string kind_name = name_of(kind);
            operations.succeed(key, whole);
            for (const std::uint64_t before : {1, 8, 64, 4096}) {
                operations.fail_all(key, first - before, 8, std::format("{}, {} bytes before", kind_name, before));
            }
            operations.fail_all(key, first + whole, 8, kind_name + ", behind");
            operations.fail_all(key, first + whole - 4, 8, kind_name + ", across the end");
            operations.fail_get(key, first, whole + 1, kind_name + ", one byte more");
            operations.fail_get(key, first + whole - 100, 200000, kind_name + ", far across the end");
            operations.fail_put(key, first + whole - 1, 200000,
                                kind_name + ", far across the end"); // may write one byte
            operations.succeed(key, whole - 1);
        }
        session.barrier();
        session.barrier();
    }
    session.close();
}

// Unmapped windows: their memory is first reused, then removed.
void unmapped(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(1)) {
        for (const memory_kind kind : all_kinds) {
            owned_window window(session, kind);
            bytes key;
            window.append_key_to(key, session);
            session.exchange(key);
            session.barrier(); // the peer has received and used the key
            window.unmap();
            session.barrier();
            session.barrier(); // the peer has tried memory that is reused
            window.verify_reused(name_of(kind));
            window.free_memory();
            session.barrier();
            session.barrier(); // the peer has tried memory that does not exist
        }
        session.close();
        return;
    }
    check_ok(ucp_layout_failure_watch(count_failure, nullptr), "watch");
    initiator operations(session);
    for (const memory_kind kind : all_kinds) {
        const bytes expected            = session.exchange({});
        std::span<const std::byte> rest = expected;
        {
            const remote_key key(session.endpoint(), rest);
            operations.succeed(key, shape_of(kind).length());
            session.barrier();
            session.barrier();
            for (const char* const moment : {"unmapped", "freed"}) {
                for (const std::size_t length : {std::size_t{8}, std::size_t{4096}, shape_of(kind).length()}) {
                    operations.fail_all(key, key.address(), length,
                                        std::format("{}, {}, {} bytes", name_of(kind), moment, length));
                }
                session.barrier();
                if (moment == std::string_view("unmapped")) {
                    session.barrier();
                }
            }
        }
    }
    session.close();
}

// Keys with several changed bytes, and addresses all around: whatever they reach is inside windows.
//
// The first bytes of a key are UCP's own, which it does not check, and maybe the last ones (test_keys.cc).
void changed_keys(const peer_arguments& arguments)
{
    constexpr std::size_t header_length = sizeof(std::uint64_t) + sizeof(std::uint8_t);
    constexpr std::size_t room          = 4 * 256;
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(1)) {
        for (const memory_kind kind : all_kinds) {
            const owned_window window(session, kind);
            bytes key;
            window.append_key_to(key, session);
            session.exchange(key);
            session.barrier();
            window.verify_gaps(name_of(kind));
            session.barrier();
        }
        session.close();
        return;
    }
    test::random random(arguments.seed);
    for (const memory_kind kind : all_kinds) {
        bytes expected      = session.exchange({});
        std::uint64_t first = 0; // before the key, see append_key()
        {
            std::span<const std::byte> rest = expected;
            const remote_key key(session.endpoint(), rest);
            first = key.address();
            initiator(session).succeed(key, shape_of(kind).length());
        }
        const std::size_t prefix = 2 * sizeof(std::uint64_t);
        const std::size_t length = expected.size() - prefix;
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            bytes changed(expected.begin() + prefix, expected.end());
            changed.resize(length + room, static_cast<std::byte>(random.below(256)));
            for (auto changes = random.below(6); changes > 0; --changes) {
                changed[header_length + random.below(length - header_length)] =
                    static_cast<std::byte>(random.below(256));
            }
            restore_tail(changed, std::span(expected).subspan(prefix));
            ucp_rkey_h key = nullptr;
            if (ucp_ep_rkey_unpack(session.endpoint(), changed.data(), &key) != UCS_OK) {
                continue;
            }
            const std::uint64_t address = first - 5000 + random.below(shape_of(kind).length() + 10000);
            const std::size_t count     = 1 + random.below(random.one_in(4) ? 100000 : 200);
            const bytes sent(count, std::byte{0x22});
            bytes got(count);
            const std::uint64_t operand = 0x0101010101010101; // makes no byte that of a gap
            std::uint64_t reply         = 0;
            ucp_request_param_t param{};
            session.wait(ucp_put_nbx(session.endpoint(), sent.data(), count, address, key, &param));
            session.wait(ucp_get_nbx(session.endpoint(), got.data(), count, address, key, &param));
            check(!std::ranges::contains(got, owned_window::gap), "{}: a get has read a gap", name_of(kind));
            param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            param.datatype     = ucp_dt_make_contig(sizeof(operand));
            param.reply_buffer = &reply;
            session.wait(ucp_atomic_op_nbx(session.endpoint(), UCP_ATOMIC_OP_OR, &operand, 1,
                                           address & ~std::uint64_t{7}, key, &param));
            session.flush();
            ucp_rkey_destroy(key);
        }
        session.barrier();
        session.barrier();
    }
    session.close();
}

const scenario with_changed_keys("failures.changed_keys", changed_keys);

// UCX's older protocols: the target of a get by messages treats every address as host memory.
void old_protocols(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const std::size_t length = shape_of(memory_kind::short_blocks).length();
    if (arguments.plays(1)) {
        owned_window window(session, memory_kind::short_blocks);
        bytes key;
        window.append_key_to(key, session);
        window.fill_with(std::byte{1});
        session.exchange(key);
        session.barrier();
        window.verify("what was put");
        session.barrier();
        session.close();
        return;
    }
    const bytes expected            = session.exchange({});
    std::span<const std::byte> rest = expected;
    {
        const remote_key key(session.endpoint(), rest);
        const bytes sent(length, owned_window::pattern);
        const ucp_request_param_t param{};
        check_ok(session.wait(ucp_put_nbx(session.endpoint(), sent.data(), length, key.address(), key.get(), &param)),
                 "put");
        session.flush();
        initiator(session).fail_get(key, key.address(), length, "a live window");
    }
    session.barrier();
    session.barrier();
    session.close();
}

const scenario with_old_protocols("failures.old_protocols", old_protocols);
const scenario outside_of_windows("failures.outside", outside);
const scenario on_unmapped_windows("failures.unmapped", unmapped);

class failures : public testing::TestWithParam<setting>
{
protected:
    static pair_config config(const char* name)
    {
        auto created                   = config_for(GetParam(), name, 1);
        created.expected[0].any_output = true; // it logs what it refused
        created.expected[1].any_output = true;
        return created;
    }
};

TEST_P(failures, outside_of_a_window_are_seen_by_their_initiator)
{
    if (test::moves_windows_by_rendezvous()) {
        GTEST_SKIP() << test::no_failures_by_rendezvous;
    }
    EXPECT_PAIR(config("failures.outside"));
}

TEST_P(failures, on_a_window_that_was_unmapped_are_seen_by_their_initiator)
{
    if (test::moves_windows_by_rendezvous()) {
        GTEST_SKIP() << test::no_failures_by_rendezvous;
    }
    EXPECT_PAIR(config("failures.unmapped"));
}

// Such a UCX asserts that the memory type in the request of a peer is right.
TEST_P(failures, of_changed_keys_end_nobody_and_reach_only_windows)
{
    if (test::moves_windows_by_rendezvous()) {
        GTEST_SKIP() << test::no_failures_by_rendezvous;
    }
    auto pair   = config("failures.changed_keys");
    pair.rounds = 400;
    EXPECT_PAIR(pair);
}

class failures_of_old_protocols : public failures
{
};

TEST_P(failures_of_old_protocols, puts_work_and_gets_fail_instead_of_ending_the_target)
{
    EXPECT_PAIR(config("failures.old_protocols"));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(failures_of_old_protocols); // by a UCX that has none
INSTANTIATE_TEST_SUITE_P(matrix, failures_of_old_protocols,
                         testing::Combine(testing::ValuesIn(transports({"posix", "tcp"})),
                                          testing::ValuesIn(only_old_protocols())),
                         setting_name);
INSTANTIATE_TEST_SUITE_P(matrix, failures,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "sysv", "posix_cma",
                                                                        "tcp"})),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
