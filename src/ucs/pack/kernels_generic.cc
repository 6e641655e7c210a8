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
#endif

#define UCXL_KERNELS generic
#define UCXL_WIDTH 16
#include "words_quad.inc"

#include "kernel_bodies.inc"
