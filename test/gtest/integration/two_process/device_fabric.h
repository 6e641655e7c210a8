// Software devices for one pair of peers, with faults or several devices, and what they counted.
//
// Example:
//     device_fabric fabric({"--fault", "keys=100"});
//     auto config = ...; fabric.add_to(config.variables); EXPECT_PAIR(config);
//     EXPECT_EQ(fabric.end()["keys_left"], 0);
#pragma once

#include "support/process.h"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ucxl::two_process
{

// Whether the devices of this run are software: others have no faults and no such counts.
bool has_software_device();

// What the program does that holds the devices of a device_fabric, when it is called with --hold-devices.
int hold_devices();

class device_fabric
{
public:
    // Options of softhca-run.
    explicit device_fabric(const std::vector<std::string>& options = {});

    void add_to(test::environment& variables) const;
    // When all peers have ended: the counts of softhca-run --stats.
    nlohmann::json end();

private:
    test::process _holder;
    std::string _library;
    std::string _fabric;
};

} // namespace ucxl::two_process
