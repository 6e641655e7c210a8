// ucp_layout_create and ucp_layout_parse turn C parameters into builder calls.
#include "layout_table.h"
#include "ucs/layout/build.h"
#include "ucs/layout/iov_list.h"
#include "ucs/layout/text.h"
#include "ucs/sys/argument.h"

#include <cstring>
#include <format>
#include <span>
#include <utility>
#include <vector>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT |
                                       UCP_LAYOUT_PARAM_FIELD_COUNT | UCP_LAYOUT_PARAM_FIELD_DIMS |
                                       UCP_LAYOUT_PARAM_FIELD_IOV | UCP_LAYOUT_PARAM_FIELD_INTERLEAVED |
                                       UCP_LAYOUT_PARAM_FIELD_EXTENT;

element to_element(const ucp_layout_element_t& from)
{
    return from.layout == nullptr ? element{.length = from.length} : element{.nested = from.layout->value};
}

std::vector<dim> to_dims(const ucp_layout_dim_t* dims, unsigned num_dims)
{
    std::vector<dim> to(num_dims);
    for (unsigned i = 0; i < num_dims; ++i) {
        to[i] = {dims[i].count, dims[i].stride};
    }
    return to;
}

std::unexpected<error> invalid(std::string message)
{
    return fail(errc::invalid_param, std::move(message));
}

// Checks the limit before the copy, so that a wrong count cannot request its size in memory.
result<void> check_list(const char* field, const void* list, std::size_t count, std::size_t limit)
{
    if (count > limit) {
        return fail(errc::exceeds_limit, std::format("{} has {} elements, the limit is {}", field, count, limit));
    }
    if (count > 0 && list == nullptr) {
        return invalid(std::format("{} is NULL", field));
    }
    return {};
}

result<layout_ptr> create_contig(const ucp_layout_params_t& params)
{
    const std::size_t count = (params.field_mask & UCP_LAYOUT_PARAM_FIELD_COUNT) ? params.count : 1;
    return make_contig(count, to_element(params.element));
}

result<layout_ptr> create_strided(const ucp_layout_params_t& params)
{
    UCXL_TRY(check_list("dims", params.dims, params.num_dims, limits::max_dims));
    return make_strided(to_element(params.element), to_dims(params.dims, params.num_dims));
}

result<layout_ptr> create_iov(const ucp_layout_params_t& params)
{
    UCXL_TRY(check_list("iov", params.iov, params.num_iov, limits::max_entries));
    iov_list parts;
    UCXL_TRY(parts.reserve(params.num_iov));
    for (const ucp_layout_iov_t& part : std::span(params.iov, params.num_iov)) {
        UCXL_TRY(parts.add(part.source, part.offset, to_element(part.element)));
    }
    return parts.finish();
}

// As unsigned numbers, so that no distance is undefined; the list checks those that are too long. Empty buffers stay as
// empty parts, so that its messages have the caller's numbers.
result<layout_ptr> create_from_iov(const ucp_dt_iov_t* iov, std::size_t num_iov, const void* base)
{
    UCXL_TRY(check_list("iov", iov, num_iov, limits::max_entries));
    iov_list parts;
    UCXL_TRY(parts.reserve(num_iov));
    for (std::size_t i = 0; i < num_iov; ++i) {
        const auto& [buffer, length] = iov[i];
        if (buffer == nullptr && length != 0) {
            return invalid(std::format("iov[{0}].buffer is NULL, and iov[{0}].length is {1}", i, length));
        }
        const auto distance = reinterpret_cast<std::uintptr_t>(buffer) - reinterpret_cast<std::uintptr_t>(base);
        UCXL_TRY(parts.add(0, length == 0 ? 0 : static_cast<std::int64_t>(distance), {.length = length}));
    }
    return parts.finish();
}

result<layout_ptr> create_interleaved(const ucp_layout_params_t& params)
{
    UCXL_TRY(check_list("interleaved", params.interleaved, params.num_interleaved, limits::max_entries));
    std::vector<std::vector<dim>> dims(params.num_interleaved);
    std::vector<interleaved_part> parts(params.num_interleaved);
    for (std::size_t i = 0; i < params.num_interleaved; ++i) {
        const auto& from = params.interleaved[i];
        if (auto ok = check_list("interleaved[].dims", from.dims, from.num_dims, limits::max_dims); !ok) {
            return fail(ok.error().code, std::format("interleaved[{}]: {}", i, ok.error().message));
        }
        dims[i]  = to_dims(from.dims, from.num_dims);
        parts[i] = {from.source, from.offset, to_element(from.element), from.repeat, dims[i]};
    }
    return make_interleaved(parts);
}

result<layout_ptr> create_kind(const ucp_layout_params_t& params)
{
    // A C caller may pass any number, and reading an unknown number as an enumeration is undefined.
    int kind;
    static_assert(sizeof(kind) == sizeof(params.kind));
    std::memcpy(&kind, &params.kind, sizeof(kind));
    if (kind < UCP_LAYOUT_KIND_CONTIG || kind > UCP_LAYOUT_KIND_INTERLEAVED) {
        return invalid(std::format("kind {} is unknown", kind));
    }
    const auto required = [&](std::uint64_t field) { return (params.field_mask & field) != 0; };
    switch (params.kind) {
    case UCP_LAYOUT_KIND_CONTIG:
        return required(UCP_LAYOUT_PARAM_FIELD_ELEMENT) ? create_contig(params)
                                                        : invalid("element is required by kind CONTIG");
    case UCP_LAYOUT_KIND_STRIDED:
        return required(UCP_LAYOUT_PARAM_FIELD_ELEMENT) && required(UCP_LAYOUT_PARAM_FIELD_DIMS)
                   ? create_strided(params)
                   : invalid("element and dims are required by kind STRIDED");
    case UCP_LAYOUT_KIND_IOV:
        return required(UCP_LAYOUT_PARAM_FIELD_IOV) ? create_iov(params) : invalid("iov is required by kind IOV");
    case UCP_LAYOUT_KIND_INTERLEAVED:
        return required(UCP_LAYOUT_PARAM_FIELD_INTERLEAVED) ? create_interleaved(params)
                                                            : invalid("interleaved is required by kind INTERLEAVED");
    }
    std::unreachable();
}

result<layout_ptr> create(const ucp_layout_params_t& params)
{
    if (!(params.field_mask & UCP_LAYOUT_PARAM_FIELD_KIND)) {
        return invalid("kind is required");
    }
    auto created = create_kind(params);
    if (!created || !(params.field_mask & UCP_LAYOUT_PARAM_FIELD_EXTENT)) {
        return created;
    }
    if (params.extent > UCP_LAYOUT_MAX_LENGTH) {
        return fail(errc::exceeds_limit, std::format("extent {} exceeds UCP_LAYOUT_MAX_LENGTH", params.extent));
    }
    return resize(**created, params.lb, static_cast<std::int64_t>(params.extent));
}

ucs_status_t finish(const char* function, result<layout_ptr> layout, ucp_layout_h* layout_p)
{
    if (!layout) {
        return log_error(function, layout.error());
    }
    *layout_p = layout_table::instance().share(std::move(*layout)).release();
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_create(const ucp_layout_params_t* params, ucp_layout_h* layout_p)
{
    return checked(__func__, {{"params", params}, {"layout_p", layout_p}}, [&] {
        const auto status = check_field_mask("ucp_layout_create", params->field_mask, known_fields);
        return status != UCS_OK ? status : finish("ucp_layout_create", create(*params), layout_p);
    });
}

ucs_status_t ucp_layout_from_iov(const ucp_dt_iov_t* iov, size_t num_iov, const void* base, ucp_layout_h* layout_p)
{
    return checked(__func__, {{"layout_p", layout_p}},
                   [&] { return finish("ucp_layout_from_iov", create_from_iov(iov, num_iov, base), layout_p); });
}

ucs_status_t ucp_layout_parse(const char* text, ucp_layout_h* layout_p)
{
    return checked(__func__, {{"text", text}, {"layout_p", layout_p}},
                   [&] { return finish("ucp_layout_parse", parse_text(text), layout_p); });
}
