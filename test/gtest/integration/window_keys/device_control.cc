#include "device_control.h"

#include "softhca/shim/fault_spec.h"
#include "support/fabric_records.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

namespace ucxl::test
{

void PrintTo(const device_objects& objects, std::ostream* to)
{
    *to << objects.protection_domains << " protection domains, " << objects.completion_queues << " completion queues, "
        << objects.queue_pairs << " queue pairs, " << objects.keys << " keys, " << objects.registered_memory
        << " memory objects, " << objects.memic_bytes << " bytes of device memory";
}

device_control::device_control() : _records(&fabric_records())
{
}

device_objects device_control::objects() const
{
    return {.protection_domains = _records->pds.live,
            .completion_queues  = _records->cqs.live,
            .queue_pairs        = _records->qps.live,
            .keys               = _records->mkeys.live,
            .registered_memory  = _records->umems.live,
            .memic_bytes        = _records->counts.memic_used};
}

bool device_control::is_bound(std::uint32_t key) const
{
    const softhca::mkey_record* const found = _records->find_key(key);
    return found != nullptr && !found->free;
}

std::size_t device_control::num_bound_at(const void* address) const
{
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<std::size_t>(std::ranges::count_if(_records->mkeys.records, [&](const auto& key) {
        return key.owner.life == softhca::life::live && !key.free && key.start_addr == start;
    }));
}

std::uint64_t device_control::failed_commands() const
{
    std::uint64_t all = 0;
    for (auto& each : _records->counts.failed_commands) {
        all += std::atomic_ref(each).load(std::memory_order_relaxed);
    }
    return all;
}

// The device reads its rules whenever something happens, so the kind is written last.
void device_control::fail(std::string_view fault) const
{
    auto wanted = softhca::parse_fault(fault);
    if (!wanted) {
        throw std::runtime_error(wanted.error());
    }
    softhca::fault_rule& rule = _records->faults.rules.front();
    const auto kind           = std::exchange(wanted->kind, softhca::fault_kind::none);
    std::atomic_ref(rule.kind).store(softhca::fault_kind::none);
    rule = *wanted;
    std::atomic_ref(rule.kind).store(kind);
}

bool device_control::stop_failing() const
{
    softhca::fault_rule& rule = _records->faults.rules.front();
    std::atomic_ref(rule.kind).store(softhca::fault_kind::none);
    return rule.seen >= rule.first;
}

} // namespace ucxl::test
