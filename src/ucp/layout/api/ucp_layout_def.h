/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_def.h
 * Handles and limits. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_DEF_H_
#define UCP_LAYOUT_DEF_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** Limits of one layout. Exceeding one gives UCS_ERR_EXCEEDS_LIMIT and a message that names it. */
enum {
    UCP_LAYOUT_MAX_DEPTH   = 16,      /**< Loops nested above a block, and dimensions of one descriptor */
    UCP_LAYOUT_MAX_SOURCES = 1 << 16, /**< Base addresses */
    UCP_LAYOUT_MAX_ENTRIES = 1 << 22  /**< List entries, over all loops */
};
/** Largest packed length, and largest distance of a byte from its base address, in bytes. */
#define UCP_LAYOUT_MAX_LENGTH (1ULL << 46)

/** Handle of a layout: immutable, counted. */
typedef struct ucp_layout *ucp_layout_h;

/** Handle of a window from one call of @ref ucp_layout_map. It is no address and cannot be dereferenced. */
typedef struct ucp_layout_window *ucp_layout_window_h;

/** Handle of a plan: immutable. */
typedef struct ucp_layout_plan *ucp_layout_plan_h;

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
