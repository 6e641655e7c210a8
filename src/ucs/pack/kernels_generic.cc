#include "copy_block.h"
#include "kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define UCXL_KERNELS generic
#define UCXL_WIDTH 16
#include "kernel_bodies.inc"
