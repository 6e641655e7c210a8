// Returns the value of a result of the C++ interface, or ends the tool with the message that the library logged.
//
//     const held_log log;
//     ucx_layout::layout column = value_of(ucx_layout::layout::parse(text), log, "-l");
#pragma once

#include "failure.h"
#include "log.h"

#include <string_view>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

template <typename T>
T value_of(ucx_layout::result<T>&& result, const held_log& log, std::string_view text)
{
    if (!result) {
        const std::string reason = log.text(ucs_status_string(result.error()));
        throw failure(text.empty() ? reason : fmt::format("{}: {}", text, reason));
    }
    return std::move(*result);
}

// All attributes of a layout.
inline ucp_layout_attr_t attributes(const ucx_layout::layout& layout)
{
    const held_log log;
    return value_of(layout.query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES |
                                 UCP_LAYOUT_ATTR_FIELD_EXTENT | UCP_LAYOUT_ATTR_FIELD_BLOCKS |
                                 UCP_LAYOUT_ATTR_FIELD_DEPTH | UCP_LAYOUT_ATTR_FIELD_OVERLAP |
                                 UCP_LAYOUT_ATTR_FIELD_HASH | UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH),
                    log, "ucp_layout_query");
}

inline ucp_layout_bounds_t bounds(const ucx_layout::layout& layout, std::uint32_t source)
{
    const held_log log;
    return value_of(layout.query_bounds(source), log, "ucp_layout_query_bounds");
}

} // namespace ucxl::tools
