#include "device_report.h"

#include <format>
#include <memory>
#include <string_view>
#include <vector>

#include "key_pool.h"
#include "vhca_access.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint32_t smallest_list = 4;
constexpr const char* by_self_test    = "the self-test did not find that it works";

struct line {
    const char* name;
    std::string said;
    std::string used;
    std::string reason; // why what is used is not what is said
};

const char* yes_or_no(bool value)
{
    return value ? "yes" : "no";
}

line tested(const char* name, bool said, bool used, const std::string& refusal = {})
{
    return {.name   = name,
            .said   = yes_or_no(said),
            .used   = yes_or_no(used),
            .reason = said == used ? "" : by_self_test + in_brackets(refusal)};
}

const char* name_of(address_method method)
{
    switch (method) {
    case address_method::none:
        return "none";
    case address_method::umr:
        return "umr";
    case address_method::ksm:
        return "ksm";
    }
    return "none";
}

const char* name_of(prm::wqe_fence fence)
{
    return fence == prm::wqe_fence::none ? "none" : fence == prm::wqe_fence::initiator_small ? "small" : "strong";
}

// Why atomic operations are not used although the device has some.
std::string why_no_atomics(const capabilities& said)
{
    return !said.umr_sets_atomic_right ? "a UMR may not set the atomic right"
           : said.relaxed_only         ? "they might overtake writes"
                                       : "not on 8 bytes, or not by every transport";
}

result<void> open_a_key(ibv_pd* pd)
{
    const mkey_owner key = UCXL_TRY(create_key(pd, smallest_list));
    return allow_access(pd->context, key->lkey, UCXL_TRY(random_token()));
}

line exports(ibv_pd* pd, const domain& used)
{
    const bool said   = says_it_opens_keys(pd->context);
    const auto opened = used.found.address != address_method::umr
                            ? fail(errc::unsupported, "the address of a key cannot be chosen by its bind request")
                            : open_a_key(pd);
    return {.name   = "opens keys to other functions",
            .said   = yes_or_no(said),
            .used   = yes_or_no(opened.has_value()),
            .reason = said == opened.has_value() ? ""
                      : opened                   ? "it works"
                                                 : opened.error().message};
}

std::vector<line> lines_of(ibv_pd* pd, const capabilities& said, const domain& domain)
{
    const capabilities& used = domain.caps;
    const auto same          = [](const char* name, const std::string& value) {
        return line{.name = name, .said = value, .used = value, .reason = ""};
    };
    const auto number = [](const char* name, std::uint32_t value, std::uint32_t narrowed) {
        return line{.name   = name,
                    .said   = std::to_string(value),
                    .used   = std::to_string(narrowed),
                    .reason = value == narrowed ? "" : by_self_test};
    };
    line atomics = tested("atomic operations", said.has_atomics, used.atomics, domain.found.atomics_refusal);
    if (said.has_atomics && !said.atomics) {
        atomics.reason = why_no_atomics(said);
    }
    return {
        tested("repeat blocks", said.limits.repeat_blocks, used.limits.repeat_blocks),
        tested("lists in memory", said.pointer_entries, used.pointer_entries),
        number("levels of keys", said.limits.max_nesting, used.limits.max_nesting),
        tested("nested keys by local rights", said.nested_by_local_rights, used.nested_by_local_rights),
        std::move(atomics),
        {.name   = "start addresses",
         .said   = name_of(address_method::umr),
         .used   = name_of(domain.found.address),
         .reason = domain.found.address == address_method::umr
                       ? ""
                       : by_self_test + in_brackets(domain.found.address_refusal)},
        same("keys of equal entries", yes_or_no(said.equal_entries)),
        same("fence of key changes", name_of(said.umr_fence)),
        same("atomics lock memory", yes_or_no(said.atomics_lock_memory)),
        same("relaxed order only", yes_or_no(said.relaxed_only)),
        same("log of keys", std::to_string(said.log_keys)),
        number("entries of a list", said.limits.max_list_entries, used.limits.max_list_entries),
        {.name   = "bind queue depth",
         .said   = std::to_string(domain::default_depth),
         .used   = std::to_string(domain.queue.depth()),
         .reason = domain.queue.depth() == domain::default_depth ? "" : "the send queue has no room for more"},
        exports(pd, domain),
    };
}

std::string text_of(const std::vector<line>& lines)
{
    constexpr auto row = [](std::string_view name, std::string_view said, std::string_view used,
                            std::string_view reason) {
        return reason.empty() ? std::format("{:<31}{:<9}{}\n", name, said, used)
                              : std::format("{:<31}{:<9}{:<9}{}\n", name, said, used, reason);
    };
    std::string text = row("capability", "said", "used", "reason");
    for (const line& each : lines) {
        text += row(each.name, each.said, each.used, each.reason);
    }
    return text;
}

} // namespace

result<std::string> report(const named_device& device)
{
    using pd_owner = std::unique_ptr<ibv_pd, verbs_destroyer<ibv_dealloc_pd>>;
    const pd_owner pd(ibv_alloc_pd(device.context()));
    if (pd == nullptr) {
        return fail_errno("allocating a protection domain");
    }
    const auto said = UCXL_TRY(query_capabilities(device.context()));
    auto parts      = UCXL_TRY(domain::open(pd.get(), domain::default_port, domain::default_depth));
    const domain used(pd.get(), std::move(parts));
    return std::format("{:<31}{}\n", "device", device.name()) + text_of(lines_of(pd.get(), said, used));
}

std::string choices(const domain& domain)
{
    const capabilities& used = domain.caps;
    std::string text =
        std::format("{} level{} of lists", used.limits.max_nesting, used.limits.max_nesting == 1 ? "" : "s");
    const auto add = [&](bool has, const char* name) {
        if (has) {
            text += std::format(", {}", name);
        }
    };
    add(used.pointer_entries, "lists in memory");
    add(used.limits.repeat_blocks, "repeat blocks");
    add(used.nested_by_local_rights, "local rights below the first key");
    add(used.atomics, "atomic operations");
    return text + std::format(", start addresses by {}", name_of(domain.found.address));
}

} // namespace ucxl::mlx5
