// Handing a spec to the builders under test.
#include "spec.h"

namespace ucxl::test
{

namespace
{

result<element> element_of(const spec& of)
{
    if (of.what == spec::kind::block) {
        return element{of.length, nullptr};
    }
    auto nested = build(of);
    return nested ? result<element>(element{0, *nested}) : std::unexpected(std::move(nested.error()));
}

result<layout_ptr> build_iov(const spec& of)
{
    std::vector<iov_part> parts;
    for (const spec_part& part : of.parts) {
        auto item = element_of(*part.item);
        if (!item) {
            return std::unexpected(std::move(item.error()));
        }
        parts.push_back({part.source, part.offset, *item});
    }
    return make_iov(parts);
}

result<layout_ptr> build_interleaved(const spec& of)
{
    std::vector<interleaved_part> parts;
    for (const spec_part& part : of.parts) {
        auto item = element_of(*part.item);
        if (!item) {
            return std::unexpected(std::move(item.error()));
        }
        parts.push_back({part.source, part.offset, *item, part.repeat, part.dims});
    }
    return make_interleaved(parts);
}

} // namespace

result<layout_ptr> build(const spec& of)
{
    if (of.what == spec::kind::iov) {
        return build_iov(of);
    }
    if (of.what == spec::kind::interleaved) {
        return build_interleaved(of);
    }
    if (of.what == spec::kind::block) {
        return make_contig(1, {of.length, nullptr});
    }
    auto item = element_of(*of.item);
    if (!item) {
        return std::unexpected(std::move(item.error()));
    }
    if (of.what == spec::kind::contig) {
        return make_contig(of.count, *item);
    }
    if (of.what == spec::kind::strided) {
        return make_strided(*item, of.dims);
    }
    auto whole = make_contig(1, *item);
    return whole ? resize(**whole, of.lb, of.extent) : std::unexpected(std::move(whole.error()));
}

} // namespace ucxl::test
