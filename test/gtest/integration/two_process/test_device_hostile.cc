// Keys and addresses that reach too far, are out of date or were made up: the initiator gets an error, and every byte
// of the owner's memory is as before.
#include "device_fabric.h"
#include "remote_key.h"
#include "scenario.h"
#include "strided_window.h"
#include "support/random.h"
#include "transports.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::two_process
{

namespace
{

constexpr strided_shape shape{.block = 64, .number = 512};
constexpr std::byte written{0x77};
constexpr std::size_t forged_length = 4096; // of a put with a forged key

enum class key_source : std::uint8_t {
    window,
    other_domain, // of the same window, in another context of the owner
    other_device, // of the same window; those of two devices are exchanged
};

struct attempt {
    const char* name;
    bool is_stale;       // the window is unmapped before
    std::int64_t offset; // from the window's address
    std::size_t length;
    std::uint64_t flipped;     // bits of the device's part of the key
    bool is_of_memory = false; // not at the address of the window
    key_source source = key_source::window;

    bool has_right_key() const { return flipped == 0 && source == key_source::window; }
};

constexpr auto whole          = static_cast<std::int64_t>(shape.length());
constexpr auto tried_variable = "UCXL_TRIED_ACCESS"; // the index of one of these

constexpr attempt tries[] = {
    {"before", false, -4096, 4096, 0},
    {"across_the_start", false, -1, 4096, 0},
    {"behind", false, whole, 4096, 0},
    {"across_the_end", false, whole - 4095, 4096, 0},
    {"far_across_the_end", false, 0, 4 * shape.length(), 0},
    {"far_away", false, std::int64_t{1} << 40, 4096, 0},
    {"memory_below_the_window", false, 0, 4096, 0, true},
    {"unmapped", true, 0, 4096, 0},
    {"unmapped_whole", true, 0, shape.length(), 0},
    {"another_key", false, 0, 4096, 0x1f00},
    {"another_tag", false, 0, 4096, 0x5},
    {"no_key", false, 0, 4096, 0xffffff00},
    {"unmapped_and_another_tag", true, 0, 4096, 0x5},
    {"another_domain", false, 0, 4096, 0, false, key_source::other_domain},
    {"another_device", false, 0, 4096, 0, false, key_source::other_device},
};

// Where the parts of devices begin. Each has 8 bytes, and a mark that no other part has.
std::vector<std::size_t> parts_of_devices(const bytes& packed)
{
    constexpr std::size_t header = sizeof(std::uint64_t) + sizeof(std::uint8_t);
    std::vector<std::size_t> all;
    for (std::size_t at = header; at < packed.size(); at += 1 + std::to_integer<std::size_t>(packed[at])) {
        if (std::to_integer<unsigned>(packed[at]) == 8 && packed[at + 8] == std::byte{0xff}) {
            all.push_back(at + 1);
        }
    }
    check(!all.empty(), "no part of the key is that of a window on a device");
    return all;
}

void change_key(bytes& packed, std::uint64_t flipped)
{
    const auto at     = parts_of_devices(packed).front();
    std::uint64_t key = 0;
    std::memcpy(&key, &packed[at], sizeof(key));
    key ^= flipped;
    std::memcpy(&packed[at], &key, sizeof(key));
}

bytes key_from(ucp_context_h context, const strided_window& window, key_source source)
{
    ucp_mem_h memh = nullptr;
    check_ok(ucp_layout_window_memh(window.get().get(), context, &memh), "ucp_layout_window_memh");
    bytes key = pack_key(context, memh);
    if (source == key_source::other_device) {
        const auto parts = parts_of_devices(key);
        check(parts.size() == 2, "{} devices have keys, not two", parts.size());
        std::swap_ranges(&key[parts[0]], &key[parts[0]] + sizeof(std::uint64_t), &key[parts[1]]);
    }
    return key;
}

// In the adversarial order what lies inside the window may be written before the device finds what does not. The peer
// has the right to write there.
bool may_be_written(const attempt& tried, std::size_t i)
{
    const auto at = static_cast<std::int64_t>(i);
    return std::getenv("SOFTHCA_ORDER") != nullptr && !tried.is_stale && !tried.is_of_memory && tried.has_right_key() &&
           at >= tried.offset && at - tried.offset < static_cast<std::int64_t>(tried.length);
}

void own(session& session, ucp_context_h context, const attempt& tried, bool reads)
{
    std::optional<context_handle> other;
    if (tried.source == key_source::other_domain) {
        other.emplace(session.arguments());
    }
    strided_window window(context, shape);
    const strided_window neighbour(context, shape);
    window.fill(9);
    bytes message(2 * sizeof(std::uint64_t));
    const auto address = reinterpret_cast<std::uint64_t>(window.address());
    const auto memory  = reinterpret_cast<std::uint64_t>(window.memory());
    std::memcpy(message.data(), &address, sizeof(address));
    std::memcpy(message.data() + sizeof(address), &memory, sizeof(memory));
    const bytes key = key_from(other ? other->get() : context, window, tried.source);
    message.insert(message.end(), key.begin(), key.end());
    session.exchange(message);
    if (tried.is_stale) {
        window.unmap();
    }
    session.barrier();
    session.barrier();
    for (std::size_t i = 0; i < window.length(); ++i) {
        if (!reads && window.packed(i) == written && may_be_written(tried, i)) {
            window.packed(i) = strided_window::byte_of(9, i);
        }
    }
    window.verify(9, "after the attempt");
    neighbour.verify_untouched("after the attempt");
}

// Gets from endpoints with error handling go by messages: they end with a status, and the endpoint works on. UCX 1.20
// lets the card do them (UCP_PROTO_COMMON_INIT_FLAG_ERR_HANDLING of get/zcopy), and then the endpoint fails.
ucs_status_t get(session& session, std::uint64_t target, std::size_t length, ucp_rkey_h key)
{
    const ucp_request_param_t param{};
    bytes buffer(length, std::byte{0x55});
    const auto status =
        session.wait(ucp_get_nbx(session.endpoint(), buffer.data(), buffer.size(), target, key, &param));
    check(std::ranges::count(buffer, std::byte{0x55}) == std::ssize(buffer), "a refused get has brought bytes");
    return status;
}

void put(session& session, std::uint64_t target, std::size_t length, ucp_rkey_h key)
{
    const ucp_request_param_t param{};
    const bytes buffer(length, written);
    const auto status =
        session.wait(ucp_put_nbx(session.endpoint(), buffer.data(), buffer.size(), target, key, &param));
    const auto flush = session.wait(ucp_ep_flush_nbx(session.endpoint(), &param));
    check(status != UCS_OK || flush != UCS_OK || session.endpoint_error() != UCS_OK, "the put was UCS_OK");
    while (session.endpoint_error() == UCS_OK) {
        session.turn();
    }
}

void act(session& session, const attempt& tried, bool reads)
{
    const bytes message = session.exchange({});
    std::uint64_t address[2];
    std::memcpy(address, message.data(), sizeof(address));
    bytes packed(message.begin() + sizeof(address), message.end());
    const bytes original = packed;
    change_key(packed, tried.flipped);
    packed.resize(packed.size() + 256);
    restore_tail(packed, original);
    session.barrier();
    ucp_rkey_h key = nullptr;
    check_ok(ucp_ep_rkey_unpack(session.endpoint(), packed.data(), &key), "ucp_ep_rkey_unpack");
    const std::uint64_t base = tried.is_of_memory ? address[1] : address[0];
    const auto target        = base + static_cast<std::uint64_t>(tried.offset);
    if (reads) {
        const auto status     = get(session, target, tried.length, key);
        const bool is_by_card = status == UCS_ERR_CONNECTION_RESET && session.endpoint_error() == status;
        check(status == UCS_ERR_INVALID_ADDR || is_by_card, "the get ended with {}", ucs_status_string(status));
    } else {
        put(session, target, tried.length, key);
    }
    ucp_rkey_destroy(key);
}

void hostile(const peer_arguments& arguments, bool reads)
{
    const char* const number = std::getenv(tried_variable);
    check(number != nullptr, "{} says which access is tried", tried_variable);
    const attempt& tried = tries[std::strtoul(number, nullptr, 10)];
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(1)) {
        own(session, context.get(), tried, reads);
    } else {
        act(session, tried, reads);
        session.barrier();
    }
    session.abandon();
}

const scenario puts("hostile.put", [](const peer_arguments& arguments) { hostile(arguments, false); });
const scenario gets("hostile.get", [](const peer_arguments& arguments) { hostile(arguments, true); });

// Marks of hosts that were made up choose another way at most: what is put arrives, and nowhere else.
void own_window_of_forged_keys(session& session, ucp_context_h context, unsigned rounds)
{
    strided_window window(context, shape);
    const strided_window neighbour(context, shape);
    const auto address = reinterpret_cast<std::uint64_t>(window.address());
    bytes message(sizeof(address));
    std::memcpy(message.data(), &address, sizeof(address));
    const bytes key = key_from(context, window, key_source::window);
    message.insert(message.end(), key.begin(), key.end());
    window.fill(9);
    session.exchange(message);
    for (unsigned round = 0; round < rounds; ++round) {
        session.barrier();
        for (std::size_t i = 0; i < forged_length; ++i) {
            check(window.packed(i) == written, "byte {} is wrong after put {}", i, round);
            window.packed(i) = strided_window::byte_of(9, i);
        }
        window.verify(9, "after a put");
        neighbour.verify_untouched("after a put");
        session.barrier();
    }
}

void put_with_forged_keys(session& session, unsigned rounds, std::uint64_t seed)
{
    const bytes message   = session.exchange({});
    std::uint64_t address = 0;
    std::memcpy(&address, message.data(), sizeof(address));
    const bytes original(message.begin() + sizeof(address), message.end());
    const auto mark_at = parts_of_devices(original).front() + sizeof(std::uint32_t); // behind the key
    test::random random(seed);
    for (unsigned round = 0; round < rounds; ++round) {
        constexpr std::uint32_t first_marks[] = {0xffffffff, 0xfffffffe, 0xfffffffd, 0xff000000, 0, 1};
        std::uint32_t mark                    = static_cast<std::uint32_t>(random.next());
        if (round < std::size(first_marks)) {
            mark = first_marks[round];
        } else if (random.one_in(2)) {
            mark |= 0xff000000;
        }
        bytes packed = original;
        std::memcpy(&packed[mark_at], &mark, sizeof(mark));
        packed.resize(packed.size() + 256);
        restore_tail(packed, original);
        ucp_rkey_h key = nullptr;
        check_ok(ucp_ep_rkey_unpack(session.endpoint(), packed.data(), &key), "ucp_ep_rkey_unpack");
        const bytes sent(forged_length, written);
        const ucp_request_param_t param{};
        check_ok(session.wait(ucp_put_nbx(session.endpoint(), sent.data(), sent.size(), address, key, &param)), "put");
        check_ok(session.wait(ucp_ep_flush_nbx(session.endpoint(), &param)), "flush");
        ucp_rkey_destroy(key);
        session.barrier();
        session.barrier();
    }
}

void forge_marks(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(1)) {
        own_window_of_forged_keys(session, context.get(), arguments.rounds);
    } else {
        put_with_forged_keys(session, arguments.rounds, arguments.seed);
    }
    session.abandon();
}

const scenario forged_marks("hostile.forged_marks", forge_marks);

class forged_marks_of_hosts : public testing::TestWithParam<transport_set>
{
};

TEST_P(forged_marks_of_hosts, do_no_harm)
{
    auto config       = config_for({GetParam(), "y"}, "hostile.forged_marks", 60);
    config.deadline_s = 30;
    config.variables.emplace_back("UCX_ZCOPY_THRESH", "0"); // by the device, not by messages
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, forged_marks_of_hosts, testing::ValuesIn(transports({}, {"rc_x", "dc_x", "far"})),
                         [](const auto& each) { return each.param.name; });

class hostile_access : public testing::TestWithParam<std::tuple<unsigned, transport_set>>
{
};

TEST_P(hostile_access, is_an_error_of_the_initiator)
{
    const auto [number, transports] = GetParam();
    auto config                     = config_for({transports, "y"}, "hostile.put", 1);
    config.expected[0].any_output   = true;
    config.expected[1].any_output   = true; // its endpoint fails, too
    config.deadline_s               = 15;
    config.variables.emplace_back("UCX_ZCOPY_THRESH", "0"); // by the device, not by messages
    config.variables.emplace_back(tried_variable, std::to_string(number));
    std::optional<device_fabric> two_devices;
    if (tries[number].source == key_source::other_device) {
        if (!has_software_device()) {
            GTEST_SKIP() << "another number of software devices";
        }
        two_devices.emplace(std::vector<std::string>{"--devices", "2"});
        two_devices->add_to(config.variables);
    }
    EXPECT_PAIR(config);
    // A get by messages does not use the key.
    if (tries[number].has_right_key() && !tries[number].is_of_memory) {
        config.scenario = "hostile.get";
        EXPECT_PAIR(config);
    }
}

INSTANTIATE_TEST_SUITE_P(matrix, hostile_access,
                         testing::Combine(testing::Range(0u, static_cast<unsigned>(std::size(tries))),
                                          testing::ValuesIn(transports({}, {"rc_x", "dc_x"}))),
                         [](const auto& each) {
                             return std::string(tries[std::get<0>(each.param)].name) + "_" +
                                    std::get<1>(each.param).name;
                         });

} // namespace

} // namespace ucxl::two_process
