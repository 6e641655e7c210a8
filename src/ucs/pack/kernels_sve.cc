#include "copy_block.h"
#include "far_blocks.h"
#include "kernels.h"
#include "word_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#ifdef __aarch64__
#define UCXL_KERNELS sve
#define UCXL_WIDTH 32 // of blocks that no mask is for; the vectors of masked ones have the length that the CPU has
// After the headers: what they define stays code for every CPU. Not for clang, which would need a target per function.
#ifndef __clang__
#include <arm_sve.h>
#pragma GCC target("+sve")
#include "words_sve.inc"
#define UCXL_HAS_MASKS
#define UCXL_HAS_ANY_LENGTH
#define UCXL_HAS_STRUCTURES
#endif
#include "words_quad.inc"

#include "kernel_bodies.inc"
#endif
