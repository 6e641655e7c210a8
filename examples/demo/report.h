// The result as a table for people, or as JSON.
#pragma once

#include "pattern.h"
#include "row.h"

#include <string>
#include <vector>

namespace examples
{

// A name for people, and the value of UCX_TLS; an empty value leaves UCX its default.
struct transport {
    std::string name;
    std::string ucx_tls;
    std::string device; // the card's name; empty if the transports need none
    bool is_software;

    bool is_device() const { return !device.empty(); }
};

void print_transport(const transport& used);
void print_row(const row& result, const pattern& pattern);
void print_json(const pattern_list& patterns, const std::vector<transport>& transports, const std::vector<row>& rows,
                std::size_t verified);

} // namespace examples
