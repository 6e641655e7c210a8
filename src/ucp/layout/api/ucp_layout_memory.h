/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_memory.h
 * Memory that processes of a host share. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_MEMORY_H_
#define UCP_LAYOUT_MEMORY_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** Memory that windows of this process show to other processes of the host without a copy in between. */
typedef struct ucp_layout_memory *ucp_layout_memory_h;

/** Fields of @ref ucp_layout_memory_params_t. */
enum ucp_layout_memory_params_field {
    UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH  = UCS_BIT(0), /**< length (required) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS = UCS_BIT(1), /**< address (default: the library allocates) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_FD      = UCS_BIT(2), /**< fd (required with address) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET  = UCS_BIT(3)  /**< offset (default: 0) */
};

/** Parameters of @ref ucp_layout_memory_create. */
typedef struct ucp_layout_memory_params {
    uint64_t field_mask; /**< Mask of valid fields, @ref ucp_layout_memory_params_field */
    size_t   length;     /**< Bytes, at least 1 */
    void    *address;    /**< Memory of the caller, at a page boundary: a shared mapping of the file @e fd */
    int      fd;         /**< A file in memory (memfd_create(2) with MFD_ALLOW_SEALING). It cannot become shorter from
                              now on. May be closed after the call */
    uint64_t offset;     /**< Where the memory begins in the file, at a page boundary */
} ucp_layout_memory_params_t;

/**
 * @brief Share memory with the processes of this host.
 *
 * A window whose bytes all lie in such memory, in one piece or in several, is mapped by the peers that use it: long
 * messages, puts, gets and atomic operations then go in one pass. It does not matter which windows are over it, how
 * many, and in which layouts. A peer maps each piece once for all windows.
 *
 * Without an address the library allocates zeroed memory, at a page boundary. Where the kernel has huge pages, all of
 * the memory is allocated by the call, on the NUMA node of the calling thread (UCX_LAYOUT_HUGE_PAGES). With an address
 * the memory is the caller's.
 *
 * Windows that were made before are not changed; a window that is made or bound anew afterwards is shared.
 *
 * @param [in]  params    Length, and the caller's memory if it is that.
 * @param [out] memory_p  The memory, to be released with @ref ucp_layout_memory_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong, the memory is not a shared mapping of the file, the file
 *                                may become shorter, or some of the memory is shared already,
 *         UCS_ERR_NO_MEMORY      out of memory or of descriptors.
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_memory_create(const ucp_layout_memory_params_t *params, ucp_layout_memory_h *memory_p);

/**
 * @brief Release shared memory.
 *
 * Memory that the library allocated is freed when no window is over it any more. Memory of the caller may be unmapped
 * after the call: windows over it have lost their remote keys, and what peers do by these fails at the peers; messages
 * and what this process does by itself work for as long as the memory is mapped.
 *
 * @param [in] memory  From @ref ucp_layout_memory_create.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not such a handle, or already released).
 *
 * @note Thread safe with respect to other memory.
 */
ucs_status_t ucp_layout_memory_destroy(ucp_layout_memory_h memory);

/** Fields of @ref ucp_layout_memory_attr_t. */
enum ucp_layout_memory_attr_field {
    UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS = UCS_BIT(0), /**< address */
    UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH  = UCS_BIT(1)  /**< length */
};

/** Attributes of shared memory. */
typedef struct ucp_layout_memory_attr {
    uint64_t field_mask; /**< Which to write, @ref ucp_layout_memory_attr_field */
    void    *address;    /**< First byte */
    size_t   length;     /**< Bytes; whole pages if the library allocated it */
} ucp_layout_memory_attr_t;

/**
 * @brief Get attributes of shared memory.
 *
 * @param [in]     memory  From @ref ucp_layout_memory_create.
 * @param [in,out] attr    field_mask says which; the others stay as they are.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not such a handle, or an unknown field).
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_memory_query(ucp_layout_memory_h memory, ucp_layout_memory_attr_t *attr);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
