// What the C++ interface returned, or the end of the tool in the words the library logged.
//
//     const held_log log;
//     ucx_layout::layout column = made(ucx_layout::layout::parse(text), log, "-l");
#pragma once

#include "failure.h"
#include "log.h"

#include <string_view>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

template <typename T>
T made(ucx_layout::result<T>&& result, const held_log& log, std::string_view what)
{
    if (!result) {
        const std::string why = log.text(ucs_status_string(result.error()));
        throw failure(what.empty() ? why : fmt::format("{}: {}", what, why));
    }
    return std::move(*result);
}

// All of them.
inline ucp_layout_attr_t attributes(const ucx_layout::layout& layout)
{
    const held_log log;
    return made(layout.query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES |
                             UCP_LAYOUT_ATTR_FIELD_EXTENT | UCP_LAYOUT_ATTR_FIELD_BLOCKS | UCP_LAYOUT_ATTR_FIELD_DEPTH |
                             UCP_LAYOUT_ATTR_FIELD_OVERLAP | UCP_LAYOUT_ATTR_FIELD_HASH |
                             UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH),
                log, "ucp_layout_query");
}

inline ucp_layout_bounds_t bounds(const ucx_layout::layout& layout, std::uint32_t source)
{
    const held_log log;
    return made(layout.query_bounds(source), log, "ucp_layout_query_bounds");
}

} // namespace ucxl::tools
