// What changes in the files of sysfs while programs run: the state of ports, their counters, and whether a device is
// there at all.
#pragma once

#include <string>
#include <vector>

#include "softhca/core/fabric.h"
#include "tree.h"

namespace ucxl::softhca
{

// The files of a port that change, by their path below the port's folder.
struct live_file {
    std::string path;
    sysfs_value value;
};
std::vector<live_file> port_files();

class live_files final : public sysfs_source
{
public:
    explicit live_files(const fabric& device) : _device(device) {}

    bool present(function_id function) const override;
    std::string text(function_id function, sysfs_value value) const override;

private:
    const fabric& _device;
};

} // namespace ucxl::softhca
