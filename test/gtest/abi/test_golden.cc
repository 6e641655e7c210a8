// The forms against golden files: one per release, with sizes, offsets and symbols that were measured on the headers
// and libraries of that release. A form that drifts from its release fails here.
#include "abi/messages.h"
#include "abi/software_atomics.h"
#include "abi/uct_forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace
{

using namespace ucxl::abi;

using numbers = std::map<std::string, std::size_t>;

struct golden {
    numbers lengths; // structures, members as structure.member, and bit numbers
    marker_set exported = 0;
};

golden read_golden(const std::string& release)
{
    golden read;
    std::ifstream file(std::string(UCXL_GOLDEN_DIR) + "/" + release + ".txt");
    EXPECT_TRUE(file.is_open()) << release;
    for (std::string name, value; file >> name >> value;) {
        if (name == "exports") {
            const char* const symbol = value.c_str();
            const marker_set bit     = marked({&symbol, 1});
            EXPECT_NE(bit, 0u) << value << " is no marker";
            read.exported |= bit;
        } else {
            read.lengths[name] = std::stoul(value);
        }
    }
    EXPECT_FALSE(read.lengths.empty());
    return read;
}

#define MEMBER(type, name, member) {std::string(name) + "." #member, offsetof(type, member)}

template <typename Attr>
numbers members_of_md_attr()
{
    const char* const n = "uct_md_attr_v2";
    return {MEMBER(Attr, n, field_mask),       MEMBER(Attr, n, max_alloc),
            MEMBER(Attr, n, max_reg),          MEMBER(Attr, n, flags),
            MEMBER(Attr, n, reg_mem_types),    MEMBER(Attr, n, reg_nonblock_mem_types),
            MEMBER(Attr, n, cache_mem_types),  MEMBER(Attr, n, detect_mem_types),
            MEMBER(Attr, n, alloc_mem_types),  MEMBER(Attr, n, access_mem_types),
            MEMBER(Attr, n, dmabuf_mem_types), MEMBER(Attr, n, reg_cost),
            MEMBER(Attr, n, component_name),   MEMBER(Attr, n, rkey_packed_size),
            MEMBER(Attr, n, local_cpus),       MEMBER(Attr, n, exported_mkey_packed_size),
            MEMBER(Attr, n, global_id),        MEMBER(Attr, n, reg_alignment)};
}

numbers md_attr_numbers(md_attr_variant variant)
{
    if (variant == md_attr_variant::v1_16) {
        auto found              = members_of_md_attr<md_attr_1_16>();
        found["uct_md_attr_v2"] = sizeof(md_attr_1_16);
        return found;
    }
    auto found                            = members_of_md_attr<md_attr_1_18>();
    found["uct_md_attr_v2.gva_mem_types"] = offsetof(md_attr_1_18, gva_mem_types);
    found["uct_md_attr_v2"]               = sizeof(md_attr_1_18);
    if (variant == md_attr_variant::v1_22) {
        found["uct_md_attr_v2"]                    = sizeof(md_attr_1_22);
        found["uct_md_attr_v2.required_mem_flags"] = offsetof(md_attr_1_22, required_mem_flags);
    }
    return found;
}

template <typename Attr>
numbers members_of_perf_attr()
{
    const char* const n = "uct_perf_attr";
    const auto bit      = [](std::uint64_t mask) { return static_cast<std::size_t>(std::countr_zero(mask)); };
    numbers found       = {{n, sizeof(Attr)},
                           MEMBER(Attr, n, field_mask),
                           MEMBER(Attr, n, operation),
                           MEMBER(Attr, n, local_memory_type),
                           MEMBER(Attr, n, remote_memory_type),
                           MEMBER(Attr, n, local_sys_device),
                           MEMBER(Attr, n, remote_sys_device),
                           MEMBER(Attr, n, send_pre_overhead),
                           MEMBER(Attr, n, send_post_overhead),
                           MEMBER(Attr, n, recv_overhead),
                           MEMBER(Attr, n, bandwidth),
                           MEMBER(Attr, n, latency),
                           MEMBER(Attr, n, max_inflight_eps)};
    found["UCT_PERF_ATTR_FIELD_LATENCY"]          = bit(Attr::has_latency);
    found["UCT_PERF_ATTR_FIELD_MAX_INFLIGHT_EPS"] = bit(Attr::has_max_inflight_eps);
    if constexpr (requires { Attr::has_flags; }) {
        found.insert(MEMBER(Attr, n, flags));
        found["UCT_PERF_ATTR_FIELD_FLAGS"] = bit(Attr::has_flags);
    }
    if constexpr (requires { Attr::has_path_bandwidth; }) {
        found.insert(MEMBER(Attr, n, path_bandwidth));
        found["UCT_PERF_ATTR_FIELD_PATH_BANDWIDTH"] = bit(Attr::has_path_bandwidth);
    }
    return found;
}

numbers perf_attr_numbers(perf_attr_variant variant)
{
    switch (variant) {
    case perf_attr_variant::v1_16:
        return members_of_perf_attr<perf_attr_1_16>();
    case perf_attr_variant::v1_17:
        return members_of_perf_attr<perf_attr_1_17>();
    case perf_attr_variant::v1_19:
        return members_of_perf_attr<perf_attr_1_19>();
    }
    return {};
}

numbers internal_ops_numbers(internal_ops_variant variant)
{
    const std::map<internal_op, std::string> names = {
        {internal_op::iface_query_v2, "iface_query_v2"},
        {internal_op::iface_estimate_perf, "iface_estimate_perf"},
        {internal_op::iface_vfs_refresh, "iface_vfs_refresh"},
        {internal_op::iface_mem_element_pack, "iface_mem_element_pack"},
        {internal_op::ep_query, "ep_query"},
        {internal_op::ep_invalidate, "ep_invalidate"},
        {internal_op::ep_connect_to_ep_v2, "ep_connect_to_ep_v2"},
        {internal_op::iface_is_reachable_v2, "iface_is_reachable_v2"},
        {internal_op::ep_is_connected, "ep_is_connected"},
        {internal_op::ep_get_device_ep, "ep_get_device_ep"},
        {internal_op::ep_put_sgl_zcopy, "ep_put_sgl_zcopy"},
        {internal_op::ep_get_sgl_zcopy, "ep_get_sgl_zcopy"},
        {internal_op::ep_outstanding_purge, "ep_outstanding_purge"},
    };
    numbers found;
    std::size_t offset = 0;
    for (const auto op : internal_ops_of(variant)) {
        found["uct_iface_internal_ops." + names.at(op)] = offset;
        offset += sizeof(void*);
    }
    found["uct_iface_internal_ops"] = offset;
    return found;
}

// What the loaded UCX takes of our longest table of domain operations is a beginning of it.
numbers md_ops_numbers(std::size_t length)
{
    const char* const n = "uct_md_ops";
    numbers all         = {MEMBER(uct_md_ops, n, close),
                           MEMBER(uct_md_ops, n, query),
                           MEMBER(uct_md_ops, n, mem_alloc),
                           MEMBER(uct_md_ops, n, mem_free),
                           MEMBER(uct_md_ops, n, mem_advise),
                           MEMBER(uct_md_ops, n, mem_reg),
                           MEMBER(uct_md_ops, n, mem_dereg),
                           MEMBER(uct_md_ops, n, mem_query),
                           MEMBER(uct_md_ops, n, mkey_pack),
                           MEMBER(uct_md_ops, n, mem_attach),
                           MEMBER(uct_md_ops, n, detect_memory_type),
                           MEMBER(uct_md_ops, n, mem_elem_pack),
                           MEMBER(uct_md_ops, n, mem_elem_release)};
    std::erase_if(all, [&](const auto& member) { return member.second >= length; });
    all["uct_md_ops"] = length;
    return all;
}

numbers fixed_numbers()
{
    return {{"uct_component", sizeof(uct_component)},
            {"uct_md", sizeof(uct_md)},
            {"uct_base_iface", sizeof(base_iface)},
            {"uct_base_ep", sizeof(base_ep)},
            {"uct_iface_config", sizeof(uct_iface_config)},
            {"uct_tl", sizeof(tl)},
            {"uct_tl_device_resource", sizeof(tl_device_resource)},
            {"uct_iface_ops", sizeof(uct_iface_ops_t)},
            {"uct_iface_attr", sizeof(uct_iface_attr_t)},
            {"uct_md_mem_dereg_params", sizeof(mem_dereg_params)},
            {"ucs_config_global_list_entry", sizeof(ucs_config_global_list_entry_t)},
            {"ucs_class", sizeof(ucs_class_t)},
            {"ucp_am_handler", sizeof(ucp_am_handler)},
            {"ucp_atomic_req_hdr", sizeof(atomic_request)}};
}

template <typename Config>
numbers members_of_ep_config()
{
    using lane = std::remove_extent_t<decltype(Config::lanes)>;
    return {{"ucp_ep_config_key", sizeof(Config)},
            {"ucp_ep_config_key.lanes", offsetof(Config, lanes)},
            {"ucp_ep_config_key.reachable_md_map", offsetof(Config, reachable_domains)},
            {"ucp_ep_config_key.dst_md_cmpts", offsetof(Config, domain_component)},
            {"ucp_ep_config_key_lane", sizeof(lane)},
            {"ucp_ep_config_key_lane.dst_md_index", offsetof(lane, peer_domain)},
            {"ucp_ep_config_key_lane.lane_types", offsetof(lane, types)}};
}

numbers ep_config_numbers(ep_config_variant variant)
{
    switch (variant) {
    case ep_config_variant::v1_16:
        return members_of_ep_config<ep_config_1_16>();
    case ep_config_variant::v1_18:
        return members_of_ep_config<ep_config_1_18>();
    case ep_config_variant::v1_21:
        return members_of_ep_config<ep_config_1_21>();
    }
    return {};
}

// Until 1.16, `probe` is where `init` was.
numbers probe_numbers()
{
    return {{"ucp_proto.probe", offsetof(ucp_protocol, probe)},
            {"ucp_proto_init_params.ep_config_key", offsetof(probe_params, endpoint)},
            {"ucp_proto_init_params.rkey_config_key", offsetof(probe_params, remote_key)},
            {"ucp_rkey_config_key.md_map", offsetof(remote_key_config, domains)},
            {"ucp_rkey_config_key.mem_type", offsetof(remote_key_config, memory_type)},
            {"UCP_LANE_TYPE_AMO", atomic_lane_bit}};
}

numbers numbers_of(const form& form, const golden& measured)
{
    numbers all = fixed_numbers();
    all.merge(md_attr_numbers(form.md_attr));
    all.merge(perf_attr_numbers(form.perf_attr));
    all.merge(internal_ops_numbers(form.internal_ops));
    all.merge(ep_config_numbers(form.ep_config));
    all.merge(probe_numbers());
    all.merge(md_ops_numbers(measured.lengths.at("uct_md_ops")));
    const char* const doc_symbol = "ucs_config_doc_nop";
    const marker_set doc_nop     = marked({&doc_symbol, 1});
    const std::size_t field  = (form.exported & doc_nop) != 0 ? sizeof(config_field_1_17) : sizeof(config_field_1_16);
    all["ucs_config_field"]  = field;
    all["ucs_config_parser"] = field - offsetof(config_field_1_16, parser);
    all["ucs_memory_info"]   = form.has_memory_flags ? sizeof(memory_info_1_22) : offsetof(memory_info_1_22, mem_flags);
    all["uct_md_mem_attr"]   = form.has_memory_flags ? sizeof(mem_attr) : offsetof(mem_attr, mem_flags);
    if (form.has_memory_flags) {
        all["ucs_memory_info.mem_flags"] = offsetof(memory_info_1_22, mem_flags);
        all["uct_md_mem_attr.mem_flags"] = offsetof(mem_attr, mem_flags);
        all["uct_iface_attr.ctl_device"] = ctl_device_offset;
    }
    return all;
}

form form_named(const char* releases)
{
    for (const auto& form : all_forms()) {
        if (std::string_view(form.releases) == releases) {
            return form;
        }
    }
    throw std::out_of_range(releases);
}

struct measured_release {
    const char* file;
    const char* form;
};

class golden_file : public testing::TestWithParam<measured_release>
{
};

TEST_P(golden_file, agrees_with_the_form_in_every_number)
{
    const auto measured = read_golden(GetParam().file);
    const form form     = form_named(GetParam().form);
    const auto ours     = numbers_of(form, measured);
    EXPECT_EQ(ours, measured.lengths);
}

TEST_P(golden_file, agrees_with_the_form_in_every_symbol)
{
    EXPECT_EQ(form_named(GetParam().form).exported, read_golden(GetParam().file).exported);
}

// mem_elem_pack and mem_elem_release came with these symbols. A table that is too short would be read past its end.
TEST_P(golden_file, asks_for_no_more_domain_operations_than_ours_have)
{
    EXPECT_LE(read_golden(GetParam().file).lengths.at("uct_md_ops"), sizeof(uct_md_ops));
}

constexpr measured_release releases[] = {
    {"1.16.0", "1.16"}, {"1.17.0", "1.17"}, {"1.18.1", "1.18"},   {"1.19.1", "1.19"},
    {"1.20.1", "1.20"}, {"1.21.0", "1.21"}, {"1.22.0", "1.22.0"}, {"1.22.x", "1.22 after 1.22.0"},
    {"1.23.0", "1.23"}};

INSTANTIATE_TEST_SUITE_P(releases, golden_file, testing::ValuesIn(releases), [](const auto& each) {
    std::string name = each.param.file;
    std::ranges::replace(name, '.', '_');
    return "ucx_" + name;
});

TEST(golden_files, exist_for_every_form)
{
    EXPECT_EQ(std::size(releases), all_forms().size());
}

} // namespace
