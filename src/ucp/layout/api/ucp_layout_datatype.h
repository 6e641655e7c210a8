/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_datatype.h
 * UCP datatypes made of layouts. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_DATATYPE_H_
#define UCP_LAYOUT_DATATYPE_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/**
 * @brief Make a UCP datatype from a layout, for tag, stream and active messages, without a window.
 *
 * The @e buffer of a call is then the base address, and @e count is the number of layouts, each at the extent of the
 * one before. For a layout of several sources, @e buffer is a pointer to the array of their base addresses (void *const
 * *); the array must not change until the operation has completed.
 *
 * A message goes piece by piece, as UCP asks for its bytes. Where several pieces have bytes in the same lines of the
 * cache, as the columns of a panel have, up to 32 KB of packed bytes are read ahead of the pieces, or written behind
 * them: until an operation has completed, its memory belongs to UCP.
 *
 * UCP gives a datatype no way to refuse an operation. An operation cannot start with a NULL buffer (unless all offsets
 * of the layout are at least 64 KB, as whole addresses are), more than 2^64 bytes, or without memory for some 100 bytes
 * of state. It then logs an error. A send sends an empty message and completes with UCS_OK; a receive takes no byte and
 * ends with UCS_ERR_MESSAGE_TRUNCATED.
 *
 * @param [in]  layout      May be destroyed after the call.
 * @param [out] datatype_p  A generic datatype, to be released with @ref ucp_layout_datatype_destroy.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_datatype_create(ucp_layout_h layout, ucp_datatype_t *datatype_p);

/**
 * @brief UCP layout datatype attributes field mask.
 */
enum ucp_layout_datatype_attr_field {
    UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS = UCS_BIT(0), /**< operations */
    UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT    = UCS_BIT(1)  /**< context */
};

/**
 * @brief What UCP calls for a datatype made by @ref ucp_layout_datatype_create.
 */
typedef struct ucp_layout_datatype_attr {
    /** Mask of the fields to fill, of @ref ucp_layout_datatype_attr_field. Required. */
    uint64_t field_mask;
    /** The functions, the same for all such datatypes. A program that makes a generic datatype of its own may call them
     * for some of its operations. */
    ucp_generic_dt_ops_t operations;
    /** The context of start_pack and start_unpack. It lives until @ref ucp_layout_datatype_destroy; operations that
     * have started keep what they need of it. */
    void *context;
} ucp_layout_datatype_attr_t;

/**
 * @brief Tell how a datatype made by @ref ucp_layout_datatype_create packs and unpacks.
 *
 * For programs that choose for each operation of one datatype whether a layout moves it. Thread safe.
 *
 * @param [in]     datatype  The datatype.
 * @param [in,out] attr      Its field_mask chooses what is filled.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for any other datatype and for unknown bits of the mask.
 */
ucs_status_t ucp_layout_datatype_query(ucp_datatype_t datatype, ucp_layout_datatype_attr_t *attr);

/**
 * @brief Release a datatype made by @ref ucp_layout_datatype_create. Leaves any other alone and logs an error.
 *
 * Operations that have started go on and keep what they need of it. No other one may start.
 *
 * @param [in] datatype  The datatype; 0 does nothing.
 */
void ucp_layout_datatype_destroy(ucp_datatype_t datatype);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
