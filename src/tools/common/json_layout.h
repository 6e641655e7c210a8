// A layout as a JSON object that mirrors ucp_layout_params_t; the manual page of ucx_layout_info has the schema.
//
//     {"kind": "strided", "element": 64, "dims": [{"count": 4096, "stride": 128}]}
//
// An element is a number (bytes), an object (a nested layout) or a string (a nested layout as text). Nothing is
// guessed: an unknown name, a missing name or a value out of range is an error that names its place, such as
// "iov[3].element.kind".
#pragma once

#include "failure.h"

#include <string>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

class json_layout_error : public failure
{
public:
    using failure::failure;
};

ucx_layout::layout parse_json_layout(const std::string& text);

} // namespace ucxl::tools
