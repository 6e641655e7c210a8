// Atomics on an endpoint that has lanes for atomics of a network card: on host memory and on windows with a usable key
// by the card, on all other windows by messages. What a card does needs nothing of its target, so the target sleeps.
#include "device_fabric.h"
#include "passive_target.h"
#include "remote_words.h"
#include "scenario.h"
#include "transports.h"

#include <optional>
#include <string>

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

namespace
{

enum class target_kind { busy, sleeping };

// Words of host memory.
class host_words
{
public:
    explicit host_words(session& session) : _session(session), _words(initial_words())
    {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address    = _words.data();
        params.length     = sizeof(_words);
        check_ok(ucp_mem_map(session.context(), &params, &_memh), "ucp_mem_map");
    }

    ~host_words() { ucp_mem_unmap(_session.context(), _memh); }
    host_words(const host_words&)            = delete;
    host_words& operator=(const host_words&) = delete;

    void add_to(bytes& keys) { append_key(keys, _session.context(), _memh, _words.data()); }
    bytes content() const
    {
        const auto words = std::as_bytes(std::span(_words));
        return {words.begin(), words.end()};
    }

private:
    session& _session;
    std::array<std::uint64_t, num_words> _words;
    ucp_mem_h _memh = nullptr;
};

// Words with a gap behind each, and a window over them.
class window_words
{
public:
    explicit window_words(session& session)
    {
        for (const auto word : initial_words()) {
            _memory.insert(_memory.end(), {word, 0});
        }
        const auto layout = ucx_layout::layout::create_strided(8, {{num_words, 16}});
        check(layout.has_value(), "ucp_layout_create failed");
        auto mapped = ucx_layout::window::map(session.context(), *layout, _memory.data());
        check(mapped.has_value(), "ucp_layout_map failed");
        _window.emplace(std::move(*mapped));
    }

    void add_to(bytes& keys, session& session)
    {
        append_key(keys, session.context(), _window->memh(), _window->address());
    }

    bytes content() const
    {
        bytes words;
        for (std::size_t i = 0; i < _memory.size(); i += 2) {
            const auto word = std::as_bytes(std::span(&_memory[i], 1));
            words.insert(words.end(), word.begin(), word.end());
            check(_memory[i + 1] == 0, "the gap behind word {} was written", i / 2);
        }
        return words;
    }

private:
    std::vector<std::uint64_t> _memory;
    std::optional<ucx_layout::window> _window;
};

void use_words(session& session, const remote_key& key, std::array<std::uint64_t, num_words>& words)
{
    apply(session, key, words);
    session.side_channel().send(std::as_bytes(std::span(words)));
}

// UCP chooses again for each operation and each kind of memory: those of a window must not change those of host memory.
void of_both_kinds(const peer_arguments& arguments, target_kind window_target)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    if (arguments.plays(0)) {
        const bytes keys                = wait_passively(session);
        std::span<const std::byte> rest = keys;
        const remote_key host(session.endpoint(), rest);
        const remote_key window(session.endpoint(), rest);
        auto host_words   = initial_words();
        auto window_words = host_words;
        for (int round = 0; round < 2; ++round) {
            use_words(session, host, host_words);
            session.barrier();
            use_words(session, window, window_words);
            session.barrier();
        }
        session.close();
        return;
    }
    host_words host(session);
    window_words window(session);
    bytes keys;
    host.add_to(keys);
    window.add_to(keys, session);
    session.side_channel().send(keys);
    for (int round = 0; round < 2; ++round) {
        const bytes wanted_of_host = wait_passively(session);
        check(wanted_of_host == host.content(), "host memory is not what the operations make of it");
        session.barrier();
        std::optional<bytes> wanted;
        if (window_target == target_kind::sleeping) {
            wanted = wait_passively(session);
        }
        while (!wanted) {
            session.turn();
            wanted = session.side_channel().try_receive();
        }
        check(*wanted == window.content(), "the window is not what the operations make of it");
        session.barrier();
    }
    session.close();
}

const scenario with_busy_target("device_atomics.busy",
                                [](const peer_arguments& arguments) { of_both_kinds(arguments, target_kind::busy); });
const scenario with_sleeping_target("device_atomics.sleeping", [](const peer_arguments& arguments) {
    of_both_kinds(arguments, target_kind::sleeping);
});

struct device_setting {
    const char* name;
    const char* scenario;
    const char* tls; // null: unset
    environment initiator;
    environment target;
};

constexpr auto windows   = "UCX_LAYOUT_KEYS_WINDOWS";
constexpr auto same_host = "UCX_LAYOUT_KEYS_SAME_HOST";
constexpr auto enable    = "UCX_LAYOUT_KEYS_ENABLE";
constexpr auto rc        = "rc_x,lay_copy";
constexpr auto dc        = "dc_x,ud_x,lay_copy";

const std::vector<device_setting> settings = {
    {"copied", "device_atomics.busy", nullptr, {}, {{windows, "copies"}}},
    {"copied_rc", "device_atomics.busy", rc, {}, {{windows, "copies"}}},
    {"copied_dc", "device_atomics.busy", dc, {}, {{windows, "copies"}}},
    {"copied_on_both_sides", "device_atomics.busy", rc, {{windows, "copies"}}, {{windows, "copies"}}},
    {"refused", "device_atomics.busy", nullptr, {}, {{windows, "keys"}}},
    {"refused_rc", "device_atomics.busy", rc, {{same_host, "never"}}, {{windows, "keys"}}},
    {"without_keys", "device_atomics.busy", nullptr, {}, {{enable, "n"}}},
    {"without_keys_rc", "device_atomics.busy", rc, {}, {{enable, "n"}}},
    {"keyed", "device_atomics.sleeping", nullptr, {{same_host, "always"}}, {{windows, "keys"}}},
    {"keyed_rc", "device_atomics.sleeping", rc, {}, {{windows, "keys"}}},
    {"keyed_dc", "device_atomics.sleeping", dc, {}, {{windows, "keys"}}},
};

class device_atomics : public testing::TestWithParam<device_setting>
{
};

TEST_P(device_atomics, go_by_messages_only_where_the_device_cannot_do_them)
{
    const device_setting& setting = GetParam();
    auto config                   = config_for({{setting.name, setting.tls, false}, "y"}, setting.scenario, 1);
    config.own_variables          = {setting.initiator, setting.target};
    EXPECT_PAIR(config);
}

// Such a card would refuse atomic operations on a window by its key, whether it says so or not.
TEST(device_atomics_by_copies, where_keys_of_the_card_do_none)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "another kind of card";
    }
    const std::vector<std::string> cards[] = {
        {"--profile", "cx7"}, {"--profile", "vf"}, {"--profile", "bf3"}, {"--fault", "refuse:nested_atomic"}};
    for (const auto& options : cards) {
        SCOPED_TRACE(options[1]);
        device_fabric fabric(options);
        auto config = config_for({{"rc_x", rc, false}, "y"}, "device_atomics.busy", 1);
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        fabric.end();
    }
}

INSTANTIATE_TEST_SUITE_P(matrix, device_atomics, testing::ValuesIn(settings),
                         [](const auto& each) { return std::string(each.param.name); });

} // namespace

} // namespace ucxl::two_process
