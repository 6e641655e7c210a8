// UCP's software atomics: an active message asks the target to do the operation. UCP never offers them on an endpoint
// that has lanes for atomics of a device, because atomics of a device and of a CPU on one word are not atomic to each
// other. libucp exports the two protocols that decide so; a build that hides them has none.
//
// Example: offer_software_atomics([](const remote_memory& memory) { return is_window(memory.type); });
#pragma once

#include "uct.h"

#include "form.h"

#include <vector>

namespace ucxl::abi
{

// A protocol that UCP may choose for an operation. The members behind these differ between releases.
struct ucp_protocol {
    const char* name;
    const char* description;
    unsigned flags;
    unsigned datatypes; // from 1.22, padding before
    void (*probe)();    // offers the protocol; until 1.16 it returns a status
};

// What UCP asks a protocol about. The members behind these differ between releases.
struct probe_params {
    void* worker;
    const void* operation;
    std::uint64_t configurations; // of the endpoint and of the remote key, in 1 byte each until 1.20, then in 2
    const void* endpoint;         // ep_config_key
    const struct remote_key_config* remote_key; // null if the operation has no remote memory
};

// The remote keys of one configuration. The members behind these are not needed.
struct remote_key_config {
    std::uint64_t
        domains; // bits, by the numbers of memory domains at the peer: there is a key, and it can be used here
    std::uint8_t other_members[4];
    std::uint32_t memory_type; // ucs_memory_type_t
};

inline constexpr unsigned atomic_lane_bit = 5; // UCP_LANE_TYPE_AMO

// Until 1.20.
struct lane_1_16 {
    std::uint8_t resource;
    std::uint8_t peer_domain; // number of the memory domain at the peer
    std::uint8_t peer_system_device;
    std::uint8_t path;
    std::uint32_t types; // bits
    std::size_t segment_length;
};

// From 1.21.
struct lane_1_21 {
    std::uint8_t resource;
    std::uint8_t peer_domain;
    std::uint8_t peer_system_device;
    std::uint8_t path;
    std::uint32_t types;
    std::uint8_t port_speed;
    std::size_t segment_length;
};

// The configuration of an endpoint. UCX has 16 lanes until 1.17, then 64.
template <typename Lane, std::size_t MaxLanes>
struct ep_config {
    std::uint8_t num_lanes;
    Lane lanes[MaxLanes];
    std::uint8_t single_lanes[5];
    std::uint8_t rma_lanes[MaxLanes];
    std::uint8_t rma_bw_lanes[MaxLanes];
    std::uint8_t rkey_ptr_lane;
    std::uint8_t amo_lanes[MaxLanes];
    std::uint8_t am_bw_lanes[MaxLanes];
    std::uint64_t rma_bw_domains;
    std::uint64_t rma_domains;
    std::uint64_t reachable_domains;      // at the peer
    const std::uint8_t* domain_component; // for each bit above, the index of the component in this process
    std::uint32_t error_mode;
    unsigned flags;
    unsigned peer_version;
};

using ep_config_1_16 = ep_config<lane_1_16, 16>;
using ep_config_1_18 = ep_config<lane_1_16, 64>;
using ep_config_1_21 = ep_config<lane_1_21, 64>;

// What an endpoint can do with remote memory, as far as atomics need to know.
struct remote_memory {
    std::uint32_t type;                           // ucs_memory_type_t
    bool is_reached_by_atomics;                   // a lane for atomics has a key
    std::vector<const uct_component*> components; // whose keys can be used here; null for an unknown component
};

// Whether UCP shall ask for software atomics as if the endpoint had no lanes for atomics.
using atomics_choice = bool (*)(const remote_memory& memory);

// Asks `choice` from now on before UCP leaves out software atomics. Called once, before any worker exists. Returns
// false and changes nothing if libucp's protocols are not the known ones.
bool offer_software_atomics(atomics_choice choice);

} // namespace ucxl::abi
