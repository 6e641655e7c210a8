// The settings for every kind of transfer: the transports, and one of UCP's two protocol implementations.
#pragma once

#include "pair.h"

#include <initializer_list>
#include <ostream>
#include <string_view>
#include <tuple>
#include <vector>

namespace ucxl::two_process
{

struct transport_set {
    const char* name;
    const char* tls;       // UCX_TLS, null: unset
    bool alone;            // one process that talks to itself
    environment options{}; // besides UCX_TLS
};

inline void PrintTo(const transport_set& set, std::ostream* to)
{
    *to << set.name;
}

// Whether the transports are those of an RDMA device (UCXL_TEST_DEVICE), not those of the host.
bool is_on_device();

const std::vector<transport_set>& all_transports();
// Those of these names: of the first list on the host, of the second one on a device.
std::vector<transport_set> transports(std::initializer_list<std::string_view> names,
                                      std::initializer_list<std::string_view> on_device = {});

// As UCX is set, a device repeats a request for 8 s and more before a dead peer is noticed.
void notice_failures_soon(environment& variables);

// UCX_TLS and UCX_PROTO_ENABLE: the parameter of most tests.
using setting = std::tuple<transport_set, const char*>;

std::string setting_name(const testing::TestParamInfo<setting>& info);
pair_config config_for(const setting& choice, const char* scenario, unsigned rounds);

// What UCX_PROTO_ENABLE is set to: "y", and "n" if this UCX still has its older protocols whole.
std::vector<const char*> all_protocols();

inline auto both_protocols()
{
    return testing::ValuesIn(all_protocols());
}

// "y", and on the host also "n": on a device the older protocols run with one set of transports only.
std::vector<const char*> protocols_of_most();

// Only the older protocols; none if this UCX does not have them.
std::vector<const char*> only_old_protocols();

} // namespace ucxl::two_process
