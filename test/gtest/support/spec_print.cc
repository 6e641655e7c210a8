// Specs and segments as text.
#include "spec.h"

#include <format>

namespace ucxl::test
{

namespace
{

std::string to_string(const std::vector<dim>& dims)
{
    std::string text = "{";
    for (const dim& along : dims) {
        text += std::format("{}{{{}, {}}}", text.size() > 1 ? ", " : "", along.count, along.stride);
    }
    return text + "}";
}

} // namespace

std::string to_string(const spec& of)
{
    const auto parts = [&](bool is_interleaved) {
        std::string text = "({";
        for (const spec_part& part : of.parts) {
            text += std::format("{}{{{}, {}, {}", text.size() > 2 ? ", " : "", part.source, part.offset,
                                to_string(*part.item));
            text += is_interleaved ? std::format(", {}, {}}}", part.repeat, to_string(part.dims)) : "}";
        }
        return text + "})";
    };
    switch (of.what) {
    case spec::kind::block:
        return std::format("spec::block({})", of.length);
    case spec::kind::contig:
        return std::format("spec::contig({}, {})", of.count, to_string(*of.item));
    case spec::kind::strided:
        return std::format("spec::strided({}, {})", to_string(*of.item), to_string(of.dims));
    case spec::kind::iov:
        return "spec::iov" + parts(false);
    case spec::kind::interleaved:
        return "spec::interleaved" + parts(true);
    case spec::kind::resized:
        return std::format("spec::resized({}, {}, {})", to_string(*of.item), of.lb, of.extent);
    }
    return {};
}

std::string to_string(const std::vector<segment>& segments)
{
    std::string text;
    for (const segment& next : segments) {
        text += std::format("{}:{}+{} ", next.source, next.offset, next.length);
    }
    return text;
}

} // namespace ucxl::test
