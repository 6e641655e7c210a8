// Remote keys come from outside: whatever the bytes that belong to our memory domain, unpacking gives a status and
// never a crash.
//
// A key of stock UCX begins with a bit map of memory domains and a memory type, which ucp_ep_rkey_unpack of 1.18
// takes as they are: with these bytes mutated too it crashes inside ucp_ep_rkey_unpack, so they are left alone.
// Then follow, for every domain, the length of its part and the part itself; a window's key has only our domain.
#include "remote_key.h"
#include "scenario.h"
#include "transfer.h"
#include "transports.h"

namespace ucxl::two_process
{

namespace
{

// ucp_ep_rkey_unpack is not told how long a key is: behind every changed key there is room for what its bytes may
// promise, which is up to 255 bytes for each of our domains.
constexpr std::size_t room_behind_key = 3 * 256;

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
    session in(arguments, context);
    test::random random(arguments.seed);
    const side window(in, {.kind = side_kind::window, .seed = 1}, 5000);
    const side allocated(in, {.kind = side_kind::allocated, .seed = 2}, 5000);
    for (const side* target : {&window, &allocated}) {
        const bytes other = in.exchange(pack_key(in.context(), target->memh()));
        check(other.size() > key_header_length, "the key of a window has no part of our memory domain");
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            bytes changed = other;
            changed.resize(other.size() + room_behind_key, static_cast<std::byte>(random.below(256)));
            mutate(random, std::span(changed).subspan(key_header_length));
            ucp_rkey_h key = nullptr;
            if (ucp_ep_rkey_unpack(in.endpoint(), changed.data(), &key) == UCS_OK) {
                ucp_rkey_destroy(key);
            }
        }
        ucp_rkey_h key = nullptr;
        check_ok(ucp_ep_rkey_unpack(in.endpoint(), other.data(), &key), "the key itself");
        ucp_rkey_destroy(key);
    }
    in.close();
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
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "tcp"})), both_protocols()),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
