// What the processor has, where the compiler has no words for asking. On aarch64 the kernel says it.
//
//     if (has_sve()) { ... }
#pragma once

#ifdef __aarch64__
#include <sys/auxv.h>

namespace ucxl
{

// Vectors of a length that the processor chooses (SVE).
inline bool has_sve()
{
    return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
}

} // namespace ucxl
#endif
