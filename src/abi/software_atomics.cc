#include "software_atomics.h"

#include "component.h"
#include "library.h"
#include "log.h"
#include "sys/search_order.h"
#include "ucx.h"

#include <array>
#include <bit>
#include <exception>
#include <string_view>

namespace ucxl::abi
{

namespace
{

struct known_protocol {
    const char* symbol;
    std::string_view name;
};

constexpr std::array protocols = {known_protocol{"ucp_get_amo_post_proto", "amo/post/sw"},
                                  known_protocol{"ucp_get_amo_fetch_proto", "amo/fetch/sw"}};

std::array<void (*)(), protocols.size()> stock_probes{};
atomics_choice choice_of_atomics = nullptr;

constexpr std::uint64_t bit_of(unsigned domain)
{
    return domain < 64 ? std::uint64_t{1} << domain : 0;
}

const uct_component* component_of(std::uint64_t reachable, const std::uint8_t* components, unsigned domain)
{
    if ((reachable & bit_of(domain)) == 0 || components == nullptr) {
        return nullptr;
    }
    return component_at(components[std::popcount(reachable & (bit_of(domain) - 1))]);
}

template <typename Config>
bool is_atomic_lane(const Config& endpoint, std::size_t lane)
{
    return (endpoint.lanes[lane].types >> atomic_lane_bit & 1) != 0;
}

template <typename Config>
remote_memory describe(const Config& endpoint, const remote_key_config& key)
{
    remote_memory memory{.type = key.memory_type, .is_reached_by_atomics = false, .components = {}};
    for (std::size_t i = 0; i < endpoint.num_lanes; ++i) {
        memory.is_reached_by_atomics |=
            is_atomic_lane(endpoint, i) && (key.domains & bit_of(endpoint.lanes[i].peer_domain)) != 0;
    }
    for (auto rest = key.domains; rest != 0; rest &= rest - 1) {
        memory.components.push_back(component_of(endpoint.reachable_domains, endpoint.domain_component,
                                                 static_cast<unsigned>(std::countr_zero(rest))));
    }
    return memory;
}

bool is_chosen(const remote_memory& memory) noexcept
{
    return choice_of_atomics(memory);
}

template <typename Result, std::size_t Protocol>
Result stock_probe(const probe_params* params)
{
    return reinterpret_cast<Result (*)(const probe_params*)>(stock_probes[Protocol])(params);
}

// UCP's parameters point to a copy of the endpoint's configuration while the stock function runs: other threads may
// read the original.
template <typename Result, typename Config, std::size_t Protocol>
Result probe_without_atomic_lanes(probe_params& params)
{
    Config copy = *static_cast<const Config*>(params.endpoint);
    for (std::size_t i = 0; i < copy.num_lanes; ++i) {
        copy.lanes[i].types &= ~(1u << atomic_lane_bit);
    }
    struct restored {
        probe_params& params;
        const void* endpoint;
        ~restored() { params.endpoint = endpoint; }
    } const restore{params, params.endpoint};
    params.endpoint = &copy;
    return stock_probe<Result, Protocol>(&params);
}

// UCP's parameters are a variable of its caller, which is not constant.
template <typename Result, typename Config, std::size_t Protocol>
Result probe(probe_params* params)
{
    const auto* const endpoint = static_cast<const Config*>(params->endpoint);
    bool is_wanted             = false;
    try {
        is_wanted = endpoint != nullptr && params->remote_key != nullptr &&
                    endpoint->num_lanes <= std::size(endpoint->lanes) &&
                    is_chosen(describe(*endpoint, *params->remote_key));
    } catch (const std::exception& failure) {
        ucs_debug("ucx-layout: %s is left to UCX: %s", protocols[Protocol].name.data(), failure.what());
    }
    return is_wanted ? probe_without_atomic_lanes<Result, Config, Protocol>(*params)
                     : stock_probe<Result, Protocol>(params);
}

template <typename Result, typename Config>
std::array<void (*)(), protocols.size()> probes()
{
    return {reinterpret_cast<void (*)()>(probe<Result, Config, 0>),
            reinterpret_cast<void (*)()>(probe<Result, Config, 1>)};
}

std::array<void (*)(), protocols.size()> probes_for(const form& form)
{
    switch (form.ep_config) {
    case ep_config_variant::v1_16:
        return form.probes_return_status ? probes<ucs_status_t, ep_config_1_16>() : probes<void, ep_config_1_16>();
    case ep_config_variant::v1_18:
        return probes<void, ep_config_1_18>();
    case ep_config_variant::v1_21:
        return probes<void, ep_config_1_21>();
    }
    return {};
}

} // namespace

bool offer_software_atomics(atomics_choice choice)
{
    std::array<ucp_protocol*, protocols.size()> found{};
    for (std::size_t i = 0; i < protocols.size(); ++i) {
        found[i] = find_object<ucp_protocol>(protocols[i].symbol);
        if (found[i] == nullptr || found[i]->name == nullptr || found[i]->name != protocols[i].name ||
            file_of(reinterpret_cast<const void*>(found[i]->probe)) != attached_file()) {
            return false;
        }
    }
    choice_of_atomics = choice;
    const auto own    = probes_for(*attached());
    for (std::size_t i = 0; i < protocols.size(); ++i) {
        stock_probes[i] = found[i]->probe;
        found[i]->probe = own[i];
    }
    return true;
}

} // namespace ucxl::abi
