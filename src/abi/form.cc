#include "form.h"

#include "uct.h"

#include <algorithm>

namespace ucxl::abi
{

namespace
{

constexpr unsigned ucx_major = 1;

// The markers of a form, by the first release that has each.
constexpr const char* since_1_17[]   = {"uct_md_base_md_query", "ucs_config_doc_nop"};
constexpr const char* since_1_18[]   = {"uct_iface_fill_info_str_buf"};
constexpr const char* since_1_19[]   = {"uct_rkey_unpack_v2"};
constexpr const char* since_1_20[]   = {"uct_ep_get_device_ep"};
constexpr const char* only_1_20[]    = {"uct_iface_mem_element_pack"};
constexpr const char* since_1_21[]   = {"uct_md_mem_elem_pack"};
constexpr const char* since_1_22[]   = {"uct_md_mem_query_v2", "uct_ep_put_sgl_zcopy"};
constexpr const char* after_1_22_0[] = {"uct_md_mem_elem_release"};
constexpr const char* since_1_23[]   = {"uct_ep_get_sgl_zcopy", "uct_ep_outstanding_purge"};

constexpr form v1_16 = {
    .releases             = "1.16",
    .minor                = 16,
    .exported             = 0,
    .md_attr              = md_attr_variant::v1_16,
    .perf_attr            = perf_attr_variant::v1_16,
    .internal_ops         = internal_ops_variant::v1_16,
    .ep_config            = ep_config_variant::v1_16,
    .num_memory_types     = 6,
    .unpack_takes_params  = false,
    .alloc_takes_sys_dev  = false,
    .hides_alloc_errors   = false,
    .selects_by_access    = false,
    .packs_elements       = false,
    .releases_elements    = false,
    .aligns_registrations = false,
    .merges_registrations = false,
    .probes_return_status = true,
    .has_memory_flags     = false,
};

// Each form is the one before it with some changes.
constexpr form v1_17 = [] {
    form changed     = v1_16;
    changed.releases = "1.17";
    changed.minor    = 17;
    changed.exported |= marked(since_1_17);
    changed.perf_attr            = perf_attr_variant::v1_17;
    changed.num_memory_types     = 9;
    changed.aligns_registrations = true;
    changed.probes_return_status = false;
    return changed;
}();

constexpr form v1_18 = [] {
    form changed     = v1_17;
    changed.releases = "1.18";
    changed.minor    = 18;
    changed.exported |= marked(since_1_18);
    changed.md_attr              = md_attr_variant::v1_18;
    changed.ep_config            = ep_config_variant::v1_18;
    changed.hides_alloc_errors   = true;
    changed.merges_registrations = true;
    return changed;
}();

constexpr form v1_19 = [] {
    form changed     = v1_18;
    changed.releases = "1.19";
    changed.minor    = 19;
    changed.exported |= marked(since_1_19);
    changed.perf_attr           = perf_attr_variant::v1_19;
    changed.unpack_takes_params = true;
    changed.alloc_takes_sys_dev = true;
    changed.selects_by_access   = true;
    return changed;
}();

constexpr form v1_20 = [] {
    form changed     = v1_19;
    changed.releases = "1.20";
    changed.minor    = 20;
    changed.exported |= marked(since_1_20) | marked(only_1_20);
    changed.internal_ops = internal_ops_variant::v1_20;
    return changed;
}();

constexpr form v1_21 = [] {
    form changed             = v1_20;
    changed.releases         = "1.21";
    changed.minor            = 21;
    changed.exported         = (changed.exported & ~marked(only_1_20)) | marked(since_1_21);
    changed.internal_ops     = internal_ops_variant::v1_21;
    changed.ep_config        = ep_config_variant::v1_21;
    changed.num_memory_types = 10;
    changed.packs_elements   = true;
    return changed;
}();

constexpr form v1_22_0 = [] {
    form changed     = v1_21;
    changed.releases = "1.22.0";
    changed.minor    = 22;
    changed.exported |= marked(since_1_22);
    changed.md_attr          = md_attr_variant::v1_22;
    changed.internal_ops     = internal_ops_variant::v1_22;
    changed.has_memory_flags = true;
    return changed;
}();

constexpr form v1_22_1 = [] {
    form changed     = v1_22_0;
    changed.releases = "1.22 after 1.22.0";
    changed.exported |= marked(after_1_22_0);
    changed.releases_elements = true;
    return changed;
}();

constexpr form v1_23 = [] {
    form changed     = v1_22_1;
    changed.releases = "1.23";
    changed.minor    = 23;
    changed.exported |= marked(since_1_23);
    changed.internal_ops = internal_ops_variant::v1_23;
    return changed;
}();

constexpr std::array forms = {v1_16, v1_17, v1_18, v1_19, v1_20, v1_21, v1_22_0, v1_22_1, v1_23};

std::string version_of(const ucx_facts& facts)
{
    return std::format("UCX {}.{}.{} in {}", facts.major, facts.minor, facts.release, facts.file);
}

std::string known_releases()
{
    return std::format("{}.{} to {}.{}", ucx_major, forms.front().minor, ucx_major, forms.back().minor);
}

// The first marker whose presence differs from that of the form.
std::string difference(const form& form, marker_set exported)
{
    for (std::size_t i = 0; i < markers.size(); ++i) {
        if (((form.exported ^ exported) >> i & 1) != 0) {
            return std::format("it {} {}", (exported >> i & 1) != 0 ? "exports" : "does not export", markers[i]);
        }
    }
    return {};
}

result<const form*> form_of(const ucx_facts& facts)
{
    if (facts.major < ucx_major || (facts.major == ucx_major && facts.minor < forms.front().minor)) {
        return fail(errc::unsupported, std::format("{} is too old: ucx-layout works with UCX {}. Use a newer UCX",
                                                   version_of(facts), known_releases()));
    }
    if (facts.major > ucx_major || facts.minor > forms.back().minor) {
        return fail(errc::unsupported,
                    std::format("{} is newer than this ucx-layout, which works with UCX {}. Use a newer ucx-layout",
                                version_of(facts), known_releases()));
    }
    const form* same_minor = nullptr;
    for (const form& form : forms) {
        if (form.minor == facts.minor) {
            if (form.exported == facts.exported) {
                return &form;
            }
            same_minor = &form;
        }
    }
    return fail(errc::unsupported,
                std::format("{} is no release of UCX {}.{}: {}. Use a released UCX {}", version_of(facts), facts.major,
                            facts.minor, difference(*same_minor, facts.exported), known_releases()));
}

} // namespace

std::span<const form> all_forms()
{
    return forms;
}

result<const form*> choose_form(const ucx_facts& facts)
{
    const form* const form              = UCXL_TRY(form_of(facts));
    constexpr std::size_t stats_pointer = sizeof(void*); // a build with statistics appends this to every base object
    if (facts.base_iface_length == sizeof(base_iface) + stats_pointer &&
        facts.base_ep_length == sizeof(base_ep) + stats_pointer) {
        return fail(errc::unsupported,
                    std::format("{} was built with --enable-stats, which changes its private structures. Use a UCX "
                                "built without it",
                                version_of(facts)));
    }
    if (facts.base_iface_length != sizeof(base_iface) || facts.base_ep_length != sizeof(base_ep)) {
        return fail(errc::unsupported,
                    std::format("{} has base structures of {} and {} bytes instead of {} and {}: it is no unmodified "
                                "release. Use a released UCX {}",
                                version_of(facts), facts.base_iface_length, facts.base_ep_length, sizeof(base_iface),
                                sizeof(base_ep), known_releases()));
    }
    return form;
}

} // namespace ucxl::abi
