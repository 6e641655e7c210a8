#include "change.h"

#include "softhca/core/arena/device_failure.h"
#include "softhca/shim/fault_spec.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/host/linux_host.h"
#include "softhca/shim/settings.h"
#include "softhca/shim/system/process_identity.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <stdexcept>

namespace ucxl::softhca::run
{
namespace
{

[[noreturn]] void fail(const std::string& reason)
{
    throw std::runtime_error("--change: " + reason);
}

// The memory of the devices is an open file of softhca-run.
fabric_place place_in(int process)
{
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), failed)) {
        std::error_code gone;
        if (std::filesystem::read_symlink(entry.path(), gone) == "/memfd:softhca (deleted)") {
            return {.process = process, .file = std::atoi(entry.path().filename().c_str())};
        }
    }
    fail(fmt::format("process {} is no softhca-run, or one of another user", process));
}

fabric_place place_around()
{
    const char* const text = std::getenv(fabric_variable);
    const auto place       = text != nullptr ? parse_fabric_place(text) : std::nullopt;
    if (!place) {
        fail("--of PID is missing, and this is not a command of softhca-run");
    }
    return *place;
}

} // namespace

void change_running_device(const std::string& change, int process)
{
    const auto asked = parse_change(change);
    if (!asked) {
        fail(asked.error());
    }
    const fabric_place place = process != 0 ? place_in(process) : place_around();
    const auto memory        = fabric_memory::open(place.process, place.file);
    if (!memory) {
        fail(memory.error());
    }
    linux_host host(memory->records(), memory->lock(), own_identity(), {}, [](void*) {}, nullptr);
    const auto attached = fabric::attach(memory->bytes(), host, own_identity());
    if (!attached) {
        fail(attached.error());
    }
    fabric& device = **attached;
    host.set_self(device.self());
    if (!device.change(asked->change)) {
        fail(fmt::format("there is no mlx5_{}", asked->change.function));
    }
    if (asked->time_ns != 0) {
        host.spend(asked->time_ns);
        device.change({.kind = end_of(asked->change.kind), .function = asked->change.function});
    }
}

} // namespace ucxl::softhca::run
