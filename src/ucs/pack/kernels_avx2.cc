#include "copy_block.h"
#include "kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
// After the headers: what they define stays code for every CPU.
#ifndef __clang__
#pragma GCC target("avx2,bmi2")
#endif
#define UCXL_KERNELS avx2
#define UCXL_WIDTH 32
#include "kernel_bodies.inc"
#endif
