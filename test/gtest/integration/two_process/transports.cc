#include "transports.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <ucp/api/ucp.h>

namespace ucxl::two_process
{

namespace
{

// UCX 1.22 removed put and get by messages from the older protocols, with memory of any kind.
bool has_old_protocols()
{
    static const bool has = [] {
        unsigned major, minor, release;
        ucp_get_version(&major, &minor, &release);
        const bool removed = std::pair(major, minor) >= std::pair(1u, 22u);
        if (removed) {
            std::printf("No tests with UCX_PROTO_ENABLE=n: UCX %u.%u has no put and get by messages with it.\n", major,
                        minor);
        }
        return !removed;
    }();
    return has;
}

} // namespace

std::vector<const char*> only_old_protocols()
{
    return has_old_protocols() ? std::vector{"n"} : std::vector<const char*>{};
}

std::vector<const char*> protocols_of_most()
{
    return is_on_device() ? std::vector{"y"} : all_protocols();
}

std::vector<const char*> all_protocols()
{
    std::vector<const char*> all = only_old_protocols();
    all.insert(all.begin(), "y");
    return all;
}

const std::vector<transport_set>& all_transports()
{
    static const std::vector<transport_set> of_the_host = {
        {"default", nullptr, false},      {"posix", "posix,lay_copy", false},
        {"sysv", "sysv,lay_copy", false}, {"posix_cma", "posix,cma,lay_copy", false},
        {"tcp", "tcp,lay_copy", false},   {"self", "self,lay_copy", true},
        {"self_default", nullptr, true},
    };
    // With keys for all windows, unless the name says otherwise. "default" is what two processes of one host do by
    // themselves; "far" is the same as if they were on two hosts.
    static const environment keys     = {{"UCX_LAYOUT_KEYS_WINDOWS", "keys"}};
    static const environment far_keys = {{"UCX_LAYOUT_KEYS_WINDOWS", "keys"}, {"UCX_LAYOUT_KEYS_SAME_HOST", "always"}};
    static const std::vector<transport_set> of_a_device = {
        {"rc_x", "rc_x,lay_copy", false, keys},
        {"rc_v", "rc_v,lay_copy", false, keys},
        {"dc_x", "dc_x,ud_x,lay_copy", false, keys},
        {"ud_x", "ud_x,lay_copy", false, keys},
        {"ud_v", "ud_v,lay_copy", false, keys},
        {"rc_alone", "rc_x,lay_copy", true, keys},
        {"rc_x_auto", "rc_x,lay_copy", false},
        {"far", nullptr, false, far_keys},
        {"default", nullptr, false},
    };
    return is_on_device() ? of_a_device : of_the_host;
}

bool is_on_device()
{
    return std::getenv("UCXL_TEST_DEVICE") != nullptr;
}

std::vector<transport_set> transports(std::initializer_list<std::string_view> on_host,
                                      std::initializer_list<std::string_view> on_device)
{
    const auto names = is_on_device() ? on_device : on_host;
    std::vector<transport_set> some;
    std::ranges::copy_if(all_transports(), std::back_inserter(some),
                         [&](const auto& each) { return std::ranges::find(names, each.name) != names.end(); });
    return some;
}

void notice_failures_soon(environment& variables)
{
    for (const auto& [name, value] : environment{{"KEEPALIVE_INTERVAL", "100ms"},
                                                 {"RC_TIMEOUT", "50ms"},
                                                 {"RC_RETRY_COUNT", "1"},
                                                 {"UD_TIMEOUT", "1s"},
                                                 {"WARN_UNUSED_ENV_VARS", "n"}}) {
        variables.emplace_back("UCX_" + name, value);
    }
}

std::string setting_name(const testing::TestParamInfo<setting>& info)
{
    const auto& [transports, protocols] = info.param;
    return std::string(transports.name) + (*protocols == 'y' ? "_v2" : "_v1");
}

pair_config config_for(const setting& choice, const char* scenario, unsigned rounds)
{
    const auto& [transports, protocols] = choice;
    pair_config config{.scenario = scenario, .variables = {{"UCX_PROTO_ENABLE", protocols}}, .rounds = rounds};
    if (transports.tls != nullptr) {
        config.variables.emplace_back("UCX_TLS", transports.tls);
    }
    config.variables.insert(config.variables.end(), transports.options.begin(), transports.options.end());
    if (transports.alone) {
        config.programs[1] = peer_program::none;
    }
    return config;
}

} // namespace ucxl::two_process
