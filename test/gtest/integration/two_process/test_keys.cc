// Remote keys come from outside. Whatever the bytes of our memory domain are, unpacking returns a status and never
// crashes.
//
// A key of stock UCX begins with a bit map of memory domains and a memory type. ucp_ep_rkey_unpack of 1.18 does not
// check them and crashes if they are changed, so this test leaves them alone. Then the length and the bytes of each
// domain's part follow; a window's key has only our domain. What newer UCXs put behind the parts is left alone, too.
#include "remote_key.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

namespace ucxl::two_process
{

namespace
{

// ucp_ep_rkey_unpack does not get the length of a key. So behind every changed key there is room for what its bytes may
// announce: up to 255 bytes for each of our domains, and what may follow.
constexpr std::size_t room_behind_key = 4 * 256;

constexpr std::size_t key_header_length = sizeof(std::uint64_t) + sizeof(std::uint8_t);

void mutate(test::random& random, std::span<std::byte> key)
{
    for (auto changes = 1 + random.below(4); changes > 0; --changes) {
        key[random.below(key.size())] = static_cast<std::byte>(random.below(256));
    }
}

void hostile_keys(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    test::random random(arguments.seed);
    const side window(session, {.kind = side_kind::window, .seed = 1}, 5000);
    const side allocated(session, {.kind = side_kind::allocated, .seed = 2}, 5000);
    for (const side* target : {&window, &allocated}) {
        const bytes other = session.exchange(pack_key(session.context(), target->memh()));
        check(other.size() > key_header_length, "the key of a window has no part of our memory domain");
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            bytes changed = other;
            changed.resize(other.size() + room_behind_key, static_cast<std::byte>(random.below(256)));
            mutate(random, std::span(changed).subspan(key_header_length));
            restore_tail(changed, other);
            ucp_rkey_h key = nullptr;
            if (ucp_ep_rkey_unpack(session.endpoint(), changed.data(), &key) == UCS_OK) {
                ucp_rkey_destroy(key);
            }
        }
        ucp_rkey_h key = nullptr;
        check_ok(ucp_ep_rkey_unpack(session.endpoint(), other.data(), &key), "the key itself");
        ucp_rkey_destroy(key);
    }
    session.close();
}

const scenario hostile("hostile_keys", hostile_keys);

class remote_keys : public testing::TestWithParam<setting>
{
};

TEST_P(remote_keys, hostile_bytes_never_crash)
{
    auto config = config_for(GetParam(), "hostile_keys", 3000);
    for (auto& peer : config.expected) {
        peer.any_output = true; // every refusal is logged
    }
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, remote_keys,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "tcp"}, {"rc_x", "far"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
