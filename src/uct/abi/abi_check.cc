#include "abi_check.h"

#include "uct_abi_1_18.h"

#include <ucp/api/ucp.h>

namespace ucxl::abi
{

namespace
{

constexpr std::size_t stats_pointer = sizeof(void*); // a build with statistics appends this to every base object

} // namespace

ucx_facts loaded_ucx()
{
    ucx_facts facts{};
    ucp_get_version(&facts.major, &facts.minor, &facts.release);
    facts.base_iface_length = uct_base_iface_t_class.size;
    facts.base_ep_length    = uct_base_ep_t_class.size;
    return facts;
}

result<void> abi_check(const ucx_facts& facts)
{
    const std::string supported = std::to_string(ucx_major) + "." + std::to_string(ucx_minor) + ".x";
    const std::string loaded =
        std::to_string(facts.major) + "." + std::to_string(facts.minor) + "." + std::to_string(facts.release);
    if (facts.major != ucx_major || facts.minor != ucx_minor) {
        return fail(errc::unsupported, "UCX " + loaded + " is loaded, but this ucx-layout was built for UCX " +
                                           supported + ": use that UCX, or an ucx-layout made for yours");
    }
    if (facts.base_iface_length == sizeof(base_iface) + stats_pointer &&
        facts.base_ep_length == sizeof(base_ep) + stats_pointer) {
        return fail(errc::unsupported, "the UCX " + loaded +
                                           " that is loaded was built with --enable-stats, which changes its private "
                                           "structures: use a UCX " +
                                           supported + " built without it");
    }
    if (facts.base_iface_length != sizeof(base_iface) || facts.base_ep_length != sizeof(base_ep)) {
        return fail(errc::unsupported,
                    "the UCX " + loaded + " that is loaded has base structures of " +
                        std::to_string(facts.base_iface_length) + " and " + std::to_string(facts.base_ep_length) +
                        " bytes instead of " + std::to_string(sizeof(base_iface)) + " and " +
                        std::to_string(sizeof(base_ep)) + ": it is not an unmodified release of " + supported);
    }
    return {};
}

} // namespace ucxl::abi
