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
#define UCXL_KERNELS avx512
#define UCXL_WIDTH 64
// After the headers: what they define stays code for every CPU.
#ifndef __clang__
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2")
#include "words_avx512.inc"
#define UCXL_HAS_MASKS
#else
#include "words_quad.inc" // the other file needs the target, which clang is not given
#endif
#include "kernel_bodies.inc"
#endif
