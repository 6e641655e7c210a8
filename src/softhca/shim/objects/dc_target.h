// Targets of dynamic connections (DCT) as the kernel's driver treats them. To verbs a target is a queue pair. The
// device makes it only when its state becomes RTR, and then it gets its number.
#pragma once

#include <cstdint>

#include "device_file.h"
#include "mailbox.h"
#include "prm/qp.h"

namespace ucxl::softhca
{

// What the states before RTR have collected for the device's command.
struct dc_target {
    mailbox<prm::create_dct_in> command{prm::command::create_dct};
};

// Drains the target first, as the device wants: 0 or an errno.
int destroy_target(device_file& file, std::uint32_t dctn);

} // namespace ucxl::softhca
