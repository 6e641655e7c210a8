#include "copy_block.h"
#include "far_blocks.h"
#include "kernels.h"
#include "word_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#ifdef __aarch64__
#include <arm_neon.h>
#define UCXL_KERNELS neon
#define UCXL_WIDTH 32 // two registers: loads and stores of pairs
#define UCXL_HAS_STRUCTURES
#include "words_quad.inc"
// Needs what that has.
#include "words_neon.inc"

#include "kernel_bodies.inc"
#endif
