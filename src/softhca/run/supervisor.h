// Applies the changes of --fault that come at a time, also while no program does anything with the devices.
#pragma once

#include <memory>

#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/host/linux_host.h"

namespace ucxl::softhca::run
{

class supervisor
{
public:
    // Null when no rule has a time.
    static std::unique_ptr<supervisor> start(const fabric_memory& memory, const fault_plan& faults);

    ~supervisor();
    supervisor(const supervisor&)            = delete;
    supervisor& operator=(const supervisor&) = delete;

private:
    explicit supervisor(const fabric_memory& memory);
    static void on_wake(void* self);

    linux_host _host;
    std::unique_ptr<fabric> _fabric;
};

} // namespace ucxl::softhca::run
