#include "copy_block.h"
#include "kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
// After the headers: what they define stays code for every CPU.
#ifndef __clang__
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2")
#endif
// Needs the target above, which clang is not given.
#ifndef __clang__
#include "interleave_avx512.inc"
#include "permute_avx512.inc"
#include "transpose_avx512.inc"
#define UCXL_HAS_PERMUTE
#endif
#define UCXL_KERNELS avx512
#define UCXL_WIDTH 64
#include "kernel_bodies.inc"
#endif
