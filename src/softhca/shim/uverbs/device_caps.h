// The capabilities of a function, as QUERY_HCA_CAP reports them.
#pragma once

#include "prm/hca_cap_pages.h"
#include "softhca/shim/objects/device_file.h"

namespace ucxl::softhca
{

class device_caps
{
public:
    // Reads the current values of a page: 0 or an errno.
    int query(device_file& file, prm::cap_page page);

    auto general() { return (*_out).at(prm::query_hca_cap_out::general); }
    auto atomic() { return (*_out).at(prm::query_hca_cap_out::atomic); }
    auto device_memory() { return (*_out).at(prm::query_hca_cap_out::device_memory); }

private:
    prm::storage<prm::query_hca_cap_out> _out;
};

} // namespace ucxl::softhca
