// Finds the rule of --fault that hits an occurrence.
#pragma once

#include <cstdint>
#include <utility>

#include "arena.h"

namespace ucxl::softhca
{

// Counts one occurrence for every rule of that kind and opcode. Returns the first rule that hits it, or null. The rules
// are at the front of the plan, without gaps.
inline const fault_rule* strike(arena& memory, fault_kind kind, std::uint32_t opcode)
{
    const fault_rule* hit = nullptr;
    for (fault_rule& rule : memory.faults.rules) {
        if (rule.kind == fault_kind::none) {
            break;
        }
        if (rule.kind != kind || (rule.opcode != any_opcode && rule.opcode != opcode)) {
            continue;
        }
        rule.seen++;
        if (hit == nullptr && rule.seen >= rule.first && rule.seen - rule.first < rule.times) {
            hit = &rule;
        }
    }
    memory.counts.faults_injected += hit != nullptr;
    return hit;
}

// Whether --fault says that the firmware refuses this feature. Called where the feature would be used.
inline bool refuses(arena& memory, refusable feature)
{
    return strike(memory, fault_kind::refuse, std::to_underlying(feature)) != nullptr;
}

// Whether a limit (key_limit, memic_limit) forbids a total of `wanted`.
inline bool beyond_limit(arena& memory, fault_kind kind, std::uint64_t wanted)
{
    for (const fault_rule& rule : memory.faults.rules) {
        if (rule.kind == kind && wanted > rule.amount) {
            memory.counts.faults_injected++;
            return true;
        }
    }
    return false;
}

} // namespace ucxl::softhca
