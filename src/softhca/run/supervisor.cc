#include "supervisor.h"

#include "softhca/shim/system/process_identity.h"

#include <algorithm>
#include <stdexcept>

namespace ucxl::softhca::run
{
namespace
{

// Programs schedule changes, too (port_down:send,time=...), and cannot wake this process.
constexpr std::uint64_t period_ns = 10'000'000;

bool has_time(const fault_rule& rule)
{
    return is_device_change(rule.kind) && (rule.amount != 0 || rule.after_ns != 0);
}

} // namespace

std::unique_ptr<supervisor> supervisor::start(const fabric_memory& memory, const fault_plan& faults)
{
    return std::ranges::any_of(faults.rules, has_time) ? std::unique_ptr<supervisor>(new supervisor(memory)) : nullptr;
}

supervisor::supervisor(const fabric_memory& memory)
    : _host(memory.records(), memory.lock(), own_identity(), {}, on_wake, this)
{
    auto attached = fabric::attach(memory.bytes(), _host, own_identity());
    if (!attached) {
        throw std::runtime_error(attached.error());
    }
    _fabric = std::move(*attached);
    _host.set_self(_fabric->self());
    _host.wake_at(monotonic_ns() + period_ns);
}

supervisor::~supervisor()
{
    _host.stop_timer();
}

void supervisor::on_wake(void* self)
{
    auto& here = *static_cast<supervisor*>(self);
    here._fabric->progress();
    here._host.wake_at(monotonic_ns() + period_ns);
}

} // namespace ucxl::softhca::run
