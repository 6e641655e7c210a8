// The forms of UCX's private interface, one per release that changed something we use, and the choice of the form that
// the loaded UCX has.
//
// A wrong choice would be undefined behaviour inside UCX. So the version and the exported symbols must name the same
// form; everything else is refused. The symbols are needed because one minor has two forms (1.22), and because a
// development build may carry the number of a release and not its structures.
//
// Example: auto form = UCXL_TRY(choose_form(facts_of(library)));
#pragma once

#include "sys/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ucxl::abi
{

// An exported function that came with one release tells the structures of that release.
inline constexpr std::array markers = {
    "uct_md_base_md_query", "ucs_config_doc_nop",         "uct_iface_fill_info_str_buf", "uct_rkey_unpack_v2",
    "uct_ep_get_device_ep", "uct_iface_mem_element_pack", "uct_md_mem_elem_pack",        "uct_md_mem_query_v2",
    "uct_ep_put_sgl_zcopy", "uct_md_mem_elem_release",    "uct_ep_get_sgl_zcopy",        "uct_ep_outstanding_purge",
};

// Bit i: markers[i] is exported.
using marker_set = std::uint32_t;

constexpr marker_set marked(std::span<const char* const> names)
{
    marker_set set = 0;
    for (const char* const name : names) {
        for (std::size_t i = 0; i < markers.size(); ++i) {
            set |= std::string_view(markers[i]) == name ? 1u << i : 0u;
        }
    }
    return set;
}

// The variants of each structure are named after the first release that has them.
enum class md_attr_variant : std::uint8_t { v1_16, v1_18, v1_22 };
enum class perf_attr_variant : std::uint8_t { v1_16, v1_17, v1_19 };
enum class internal_ops_variant : std::uint8_t { v1_16, v1_20, v1_21, v1_22, v1_23 };

// What an endpoint of UCP consists of.
enum class ep_config_variant : std::uint8_t { v1_16, v1_18, v1_21 };

struct form {
    const char* releases; // which releases of UCX have this form
    unsigned minor;
    marker_set exported;
    md_attr_variant md_attr;
    perf_attr_variant perf_attr;
    internal_ops_variant internal_ops;
    ep_config_variant ep_config;
    unsigned num_memory_types; // also the number of an unknown type; grew with 1.17 and 1.21
    bool unpack_takes_params;  // from 1.19: rkey_unpack has params as its third argument
    bool alloc_takes_sys_dev;  // from 1.19: mem_alloc has a system device as its fifth argument
    bool hides_alloc_errors;   // from 1.18: UCX logs no refused allocation that it asked for with HIDE_ERRORS
    bool selects_by_access;    // from 1.19: a domain without keys must list host memory as accessible
    bool packs_elements;       // from 1.21: domains have mem_elem_pack
    bool releases_elements;    // from 1.22.1: domains have mem_elem_release
    bool aligns_registrations; // from 1.17: each use of the registration cache has an alignment, not the cache
    bool merges_registrations; // from 1.18: the registration cache has an operation `merge`
    bool probes_return_status; // until 1.16: protocols of UCP return a status when they are probed
    bool has_memory_flags;     // from 1.22: memory has flags, and an interface a control device
};

// All forms, oldest first.
std::span<const form> all_forms();

// What was found in the process.
struct ucx_facts {
    unsigned major;
    unsigned minor;
    unsigned release;
    std::string file; // of libucp
    marker_set exported;
    std::size_t base_iface_length; // bytes, from the class objects of libuct
    std::size_t base_ep_length;
};

// Errors: unsupported; the message is one line with what was found, where, and what to do.
result<const form*> choose_form(const ucx_facts& facts);

} // namespace ucxl::abi
