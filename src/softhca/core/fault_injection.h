// Whether --fault hits what is about to be done. Counting is done here, too: ask once per occurrence, under the lock.
//
//     if (const fault_rule* rule = hit(memory, fault_kind::command, opcode))
//         return rule->status;
#pragma once

#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

// The first rule of that kind that hits this occurrence; every rule for it counts it.
const fault_rule* hit(arena& memory, fault_kind kind, std::uint32_t opcode);

// Whether a limit (key_limit, memic_limit) forbids a total of `wanted`.
bool beyond_limit(arena& memory, fault_kind kind, std::uint64_t wanted);

} // namespace ucxl::softhca
