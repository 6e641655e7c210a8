#include "copy_block.h"
#include "far_blocks.h"
#include "kernels.h"
#include "word_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#define UCXL_KERNELS avx2
#define UCXL_WIDTH 32
// After the headers: what they define stays code for every CPU.
#ifndef __clang__
#pragma GCC target("avx2,bmi2")
#endif
#include "words_quad.inc"

#include "kernel_bodies.inc"
#endif
