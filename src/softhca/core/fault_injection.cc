#include "fault_injection.h"

namespace ucxl::softhca
{

const fault_rule* hit(arena& memory, fault_kind kind, std::uint32_t opcode)
{
    const fault_rule* found = nullptr;
    for (fault_rule& rule : memory.faults.rules) {
        if (rule.kind != kind || (rule.opcode != any_opcode && rule.opcode != opcode)) {
            continue;
        }
        ++rule.seen;
        if (found == nullptr && rule.seen >= rule.first && rule.seen - rule.first < rule.times) {
            found = &rule;
        }
    }
    if (found != nullptr) {
        ++memory.counts.faults_injected;
    }
    return found;
}

bool beyond_limit(arena& memory, fault_kind kind, std::uint64_t wanted)
{
    for (const fault_rule& rule : memory.faults.rules) {
        if (rule.kind == kind && wanted > rule.amount) {
            ++memory.counts.faults_injected;
            return true;
        }
    }
    return false;
}

} // namespace ucxl::softhca
