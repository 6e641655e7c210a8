// ucp_layout_plan_*, ucp_layout_gather, _scatter and _copy: the pack engine behind checks of its arguments.
//
// The checks of a transfer read only a few words: they take no lock, allocate nothing, and do not visit every source.
#include "handle.h"
#include "ucs/layout/build.h"
#include "ucs/sys/argument.h"

#include <format>

using namespace ucxl;

struct ucp_layout_plan {
    const pack_plan_ptr plan;
    const std::uint64_t count;
    const std::uint32_t num_sources; // of the layout; `count` = 0 has none, but takes as many bases
};

namespace
{

constexpr std::uint64_t known_param_fields = UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT;
constexpr std::uint64_t known_attr_fields  = UCP_LAYOUT_PLAN_ATTR_FIELD_PACKED_LENGTH |
                                            UCP_LAYOUT_PLAN_ATTR_FIELD_NUM_SOURCES | UCP_LAYOUT_PLAN_ATTR_FIELD_COUNT;

// One side of a transfer, with the names of its parameters in the public function.
struct side {
    const pack_plan& plan;
    std::uint32_t num_sources;
    void* const* bases;
    std::uint32_t num_bases;
    std::size_t offset;
    const char* prefix = "";

    // Reads pointers to void as pointers to bytes: both are the same word, and no compiler assumes they differ.
    base_list list() const { return {reinterpret_cast<std::byte* const*>(bases), num_bases}; }
};

ucs_status_t check(const char* function, const side& checked, std::size_t length)
{
    if (checked.num_bases != checked.num_sources) [[unlikely]] {
        ucs_error("%s: num_%sbases is %u, the layout has %u sources", function, checked.prefix, checked.num_bases,
                  checked.num_sources);
        return UCS_ERR_INVALID_PARAM;
    }
    const std::uint64_t packed_length = checked.plan.packed_length();
    if (checked.offset > packed_length || length > packed_length - checked.offset) [[unlikely]] {
        ucs_error("%s: %soffset %zu and length %zu exceed the packed length %lu", function, checked.prefix,
                  checked.offset, length, packed_length);
        return UCS_ERR_INVALID_PARAM;
    }
    if (length > 0 && (checked.bases == nullptr || (checked.num_sources == 1 && checked.bases[0] == nullptr)))
        [[unlikely]] {
        ucs_error("%s: %sbases%s is NULL", function, checked.prefix, checked.bases == nullptr ? "" : "[0]");
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

// run() moves the bytes; `memory` is the contiguous side.
template <typename Run>
ucs_status_t transfer(const char* function, const side& described, std::size_t length, const required& memory,
                      Run&& run)
{
    const auto status = check(function, described, length);
    if (status != UCS_OK || length == 0) [[unlikely]] {
        return status;
    }
    if (memory.value == nullptr) [[unlikely]] {
        return check_required(function, {memory});
    }
    run();
    return UCS_OK;
}

ucs_status_t gather(const char* function, const side& described, std::size_t length, void* dst)
{
    return transfer(function, described, length, {"dst", dst},
                    [&] { described.plan.gather(described.list(), described.offset, length, dst); });
}

ucs_status_t scatter(const char* function, const side& described, std::size_t length, const void* src)
{
    return transfer(function, described, length, {"src", src},
                    [&] { described.plan.scatter(described.list(), described.offset, length, src); });
}

ucs_status_t copy(const char* function, const side& to, const side& from, std::size_t length)
{
    auto status = check(function, to, length);
    if (status == UCS_OK) {
        status = check(function, from, length);
    }
    if (status == UCS_OK && length > 0) {
        pack_plan::copy(to.plan, to.list(), to.offset, from.plan, from.list(), from.offset, length);
    }
    return status;
}

// Calls run(plan) with the plan of the layout.
template <typename Run>
ucs_status_t with_plan(const char* function, ucp_layout* layout, Run&& run) noexcept
{
    return checked(function, {{"layout", layout}}, [&] {
        if (const pack_plan* const compiled = layout->compiled_plan(); compiled != nullptr) [[likely]] {
            return run(*compiled);
        }
        const auto created = layout->plan();
        return created ? run(**created) : log_error(function, created.error());
    });
}

result<pack_plan_ptr> compile(ucp_layout& layout, std::uint64_t count)
{
    if (count == 1) {
        return layout.plan();
    }
    return make_contig(count, {.nested = layout.value})
        .transform_error(
            [&](error&& failure) { return error{failure.code, std::format("count {}: {}", count, failure.message)}; })
        .and_then([](layout_ptr&& repeated) { return pack_plan::compile(std::move(repeated)); });
}

ucs_status_t create(ucp_layout& layout, const ucp_layout_plan_params_t* params, ucp_layout_plan_h* plan_p)
{
    const std::uint64_t mask = params == nullptr ? 0 : params->field_mask;
    if (const auto status = check_field_mask("ucp_layout_plan_create", mask, known_param_fields); status != UCS_OK) {
        return status;
    }
    const std::uint64_t count = (mask & UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT) ? params->count : 1;
    auto compiled             = compile(layout, count);
    if (!compiled) {
        return log_error("ucp_layout_plan_create", compiled.error());
    }
    *plan_p = new ucp_layout_plan{std::move(*compiled), count, layout.value->num_sources()};
    return UCS_OK;
}

ucs_status_t query(const ucp_layout_plan& plan, ucp_layout_plan_attr_t& attr)
{
    if (const auto status = check_field_mask("ucp_layout_plan_query", attr.field_mask, known_attr_fields);
        status != UCS_OK) {
        return status;
    }
    if (attr.field_mask & UCP_LAYOUT_PLAN_ATTR_FIELD_PACKED_LENGTH) {
        attr.packed_length = plan.plan->packed_length();
    }
    if (attr.field_mask & UCP_LAYOUT_PLAN_ATTR_FIELD_NUM_SOURCES) {
        attr.num_sources = plan.num_sources;
    }
    if (attr.field_mask & UCP_LAYOUT_PLAN_ATTR_FIELD_COUNT) {
        attr.count = plan.count;
    }
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_plan_create(ucp_layout_h layout, const ucp_layout_plan_params_t* params,
                                    ucp_layout_plan_h* plan_p)
{
    return checked(__func__, {{"layout", layout}, {"plan_p", plan_p}}, [&] { return create(*layout, params, plan_p); });
}

void ucp_layout_plan_destroy(ucp_layout_plan_h plan)
{
    delete plan;
}

ucs_status_t ucp_layout_plan_query(ucp_layout_plan_h plan, ucp_layout_plan_attr_t* attr)
{
    return checked(__func__, {{"plan", plan}, {"attr", attr}}, [&] { return query(*plan, *attr); });
}

ucs_status_t ucp_layout_plan_gather(ucp_layout_plan_h plan, void* const* bases, uint32_t num_bases, size_t offset,
                                    size_t length, void* dst)
{
    constexpr auto name = "ucp_layout_plan_gather";
    return checked(name, {{"plan", plan}}, [&] {
        return gather(name, {*plan->plan, plan->num_sources, bases, num_bases, offset}, length, dst);
    });
}

ucs_status_t ucp_layout_plan_scatter(ucp_layout_plan_h plan, void* const* bases, uint32_t num_bases, size_t offset,
                                     size_t length, const void* src)
{
    constexpr auto name = "ucp_layout_plan_scatter";
    return checked(name, {{"plan", plan}}, [&] {
        return scatter(name, {*plan->plan, plan->num_sources, bases, num_bases, offset}, length, src);
    });
}

ucs_status_t ucp_layout_plan_copy(ucp_layout_plan_h dst_plan, void* const* dst_bases, uint32_t num_dst_bases,
                                  size_t dst_offset, ucp_layout_plan_h src_plan, void* const* src_bases,
                                  uint32_t num_src_bases, size_t src_offset, size_t length)
{
    constexpr auto name = "ucp_layout_plan_copy";
    return checked(name, {{"dst_plan", dst_plan}, {"src_plan", src_plan}}, [&] {
        return copy(name, {*dst_plan->plan, dst_plan->num_sources, dst_bases, num_dst_bases, dst_offset, "dst_"},
                    {*src_plan->plan, src_plan->num_sources, src_bases, num_src_bases, src_offset, "src_"}, length);
    });
}

ucs_status_t ucp_layout_gather(ucp_layout_h layout, void* const* bases, uint32_t num_bases, size_t offset,
                               size_t length, void* dst)
{
    constexpr auto name = "ucp_layout_gather";
    return with_plan(name, layout, [&](const pack_plan& plan) {
        return gather(name, {plan, layout->value->num_sources(), bases, num_bases, offset}, length, dst);
    });
}

ucs_status_t ucp_layout_scatter(ucp_layout_h layout, void* const* bases, uint32_t num_bases, size_t offset,
                                size_t length, const void* src)
{
    constexpr auto name = "ucp_layout_scatter";
    return with_plan(name, layout, [&](const pack_plan& plan) {
        return scatter(name, {plan, layout->value->num_sources(), bases, num_bases, offset}, length, src);
    });
}

ucs_status_t ucp_layout_copy(ucp_layout_h dst_layout, void* const* dst_bases, uint32_t num_dst_bases, size_t dst_offset,
                             ucp_layout_h src_layout, void* const* src_bases, uint32_t num_src_bases, size_t src_offset,
                             size_t length)
{
    constexpr auto name = "ucp_layout_copy";
    return checked(name, {{"dst_layout", dst_layout}, {"src_layout", src_layout}}, [&] {
        return with_plan(name, dst_layout, [&](const pack_plan& dst_plan) {
            return with_plan(name, src_layout, [&](const pack_plan& src_plan) {
                return copy(
                    name, {dst_plan, dst_layout->value->num_sources(), dst_bases, num_dst_bases, dst_offset, "dst_"},
                    {src_plan, src_layout->value->num_sources(), src_bases, num_src_bases, src_offset, "src_"}, length);
            });
        });
    });
}
