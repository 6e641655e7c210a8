/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_window.h
 * Windows: layouts applied to base addresses. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_WINDOW_H_
#define UCP_LAYOUT_WINDOW_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** Flags of @ref ucp_layout_map. */
enum ucp_layout_map_flags {
    /** The library allocates zeroed memory for every source, bounds included, shared with other processes where the
     *  transport can use that. The addresses are asked for with @ref ucp_layout_window_bases; bases must not be given.
     *  Such a window is never shared, and goes with its memory when it is unmapped. */
    UCP_LAYOUT_MAP_FLAG_ALLOCATE = UCS_BIT(0),
    /** The window is not shared with another mapping of the same content, so that @ref ucp_layout_rebind moves nobody
     *  else's. Without effect beside ALLOCATE. */
    UCP_LAYOUT_MAP_FLAG_EXCLUSIVE = UCS_BIT(1)
};

/** Fields of @ref ucp_layout_map_params_t. */
enum ucp_layout_map_params_field {
    UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT      = UCS_BIT(0), /**< layout (required) */
    UCP_LAYOUT_MAP_PARAM_FIELD_BASES       = UCS_BIT(1), /**< bases, num_bases (required without ALLOCATE) */
    UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE = UCS_BIT(2), /**< memory_type (default: UCS_MEMORY_TYPE_HOST) */
    UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS       = UCS_BIT(3)  /**< flags (default: 0) */
};

/** Parameters of @ref ucp_layout_map. */
typedef struct ucp_layout_map_params {
    uint64_t          field_mask;  /**< Mask of valid fields, @ref ucp_layout_map_params_field */
    ucp_layout_h      layout;      /**< May be destroyed after the call */
    void *const      *bases;       /**< Base address of every source; NULL only for a source that describes no byte. The
                                        memory described must stay until the window is unmapped, and is never touched
                                        outside what the layout describes; it may be constant if nothing is received
                                        into it. The array is copied */
    uint32_t          num_bases;   /**< num_sources of the layout */
    ucs_memory_type_t memory_type; /**< Of the memory described. Only UCS_MEMORY_TYPE_HOST in this release */
    unsigned          flags;       /**< @ref ucp_layout_map_flags */
} ucp_layout_map_params_t;

/**
 * @brief Make a window: apply a layout to base addresses.
 *
 * A window belongs to the process: its address works in every UCP context. Mapping the same layout (by content) over
 * the same bases again gives the same address under another handle, and is cheap; every handle is unmapped by itself.
 *
 * @param [in]  context   UCP context in which the window gets a stock memory handle, or NULL if only the address is
 *                        wanted. With a context, whether UCP can use windows in it is checked.
 * @param [in]  params    What to show.
 * @param [out] window_p  The window, to be released with @ref ucp_layout_unmap.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong,
 *         UCS_ERR_EXCEEDS_LIMIT  longer than the reserved addresses (UCX_LAYOUT_ARENA_SIZE),
 *         UCS_ERR_UNSUPPORTED    a memory type not served,
 *         UCS_ERR_NO_DEVICE      the transport @e lay_copy is not in this context (a message says what to set in
 *                                UCX_TLS), or UCX is of a version that is not served,
 *         UCS_ERR_NO_MEMORY      out of memory or of reserved addresses.
 *
 * @note Thread safe as ucp_mem_map is. After fork the child must not use windows with the parent's context, as with all
 *       of UCP.
 */
ucs_status_t ucp_layout_map(ucp_context_h context, const ucp_layout_map_params_t *params,
                            ucp_layout_window_h *window_p);

/**
 * @brief Release a window, and with it its stock memory handles and the memory allocated for it.
 *
 * No transfer may be using the window. Contexts in which it has a memory handle must not have been cleaned up yet, as
 * with any stock handle: ucp_cleanup then warns, or ends the process if UCX was built with assertions. Where it
 * returns, the window has lost that handle, whose few hundred bytes are never freed, and can be used and unmapped as
 * before.
 *
 * @param [in] window  From @ref ucp_layout_map.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window, or no more).
 *
 * @note Thread safe with respect to other windows.
 */
ucs_status_t ucp_layout_unmap(ucp_layout_window_h window);

/**
 * @brief Apply the layout of a window to other base addresses, keeping its address, memory handles and remote keys.
 *
 * No transfer may be using the window. On failure it shows what it showed before.
 *
 * @param [in] window     From @ref ucp_layout_map, without ALLOCATE.
 * @param [in] bases      Base address of every source, as for @ref ucp_layout_map.
 * @param [in] num_bases  num_sources of the layout.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a parameter is wrong, or the window has memory of its own,
 *         UCS_ERR_BUSY           the same content is mapped more than once; never with EXCLUSIVE,
 *         UCS_ERR_NO_MEMORY      out of memory.
 *
 * @note Thread safe with respect to other windows.
 */
ucs_status_t ucp_layout_rebind(ucp_layout_window_h window, void *const *bases, uint32_t num_bases);

/** Fields of @ref ucp_layout_window_attr_t. */
enum ucp_layout_window_attr_field {
    UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS     = UCS_BIT(0), /**< address */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH      = UCS_BIT(1), /**< length */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH        = UCS_BIT(2), /**< memh */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_LAYOUT      = UCS_BIT(3), /**< layout */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES = UCS_BIT(4), /**< num_sources */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS       = UCS_BIT(5), /**< flags */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS  = UCS_BIT(6)  /**< statistics */
};

/** What the CPU of this process moved through a window since it was made. What peers move in memory that they map,
 *  or by the kernel, is not in it. Counted without a lock: of operations of several threads at a time some may be
 *  missing. Mappings that share a window share its statistics, also one after the other. */
typedef struct ucp_layout_window_statistics {
    uint64_t reads;         /**< Operations that gathered bytes; UCP makes several of a long message */
    uint64_t writes;        /**< Operations that scattered bytes */
    uint64_t bytes_read;    /**< Bytes gathered */
    uint64_t bytes_written; /**< Bytes scattered */
} ucp_layout_window_statistics_t;

/** Attributes of a window. */
typedef struct ucp_layout_window_attr {
    uint64_t     field_mask;  /**< Mask of fields to fill in, @ref ucp_layout_window_attr_field */
    void        *address;     /**< Where the window is, for stock UCP calls. The CPU cannot access it, but for a window
                                   over one contiguous block with memory of its own */
    size_t       length;      /**< Packed bytes */
    ucp_mem_h    memh;        /**< Stock memory handle in the context it was mapped with: for UCP_OP_ATTR_FIELD_MEMH,
                                   ucp_rkey_pack and ucp_mem_query, not for ucp_mem_unmap. A send or receive that is
                                   given it and passes the end of the window fails at once. NULL without a context,
                                   and after it was detached or its context cleaned up */
    ucp_layout_h layout;      /**< A new reference, to be released with @ref ucp_layout_destroy */
    uint32_t     num_sources; /**< Base addresses */
    unsigned     flags;       /**< @ref ucp_layout_map_flags it was mapped with */
    ucp_layout_window_statistics_t statistics; /**< What was moved through it */
} ucp_layout_window_attr_t;

/**
 * @brief Ask for attributes of a window.
 *
 * @param [in]     window  From @ref ucp_layout_map.
 * @param [in,out] attr    field_mask says what is asked for; those fields are filled in.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window, or an unknown field bit).
 */
ucs_status_t ucp_layout_window_query(ucp_layout_window_h window, ucp_layout_window_attr_t *attr);

/**
 * @brief Ask for the base addresses of a window.
 *
 * @param [in]  window     From @ref ucp_layout_map.
 * @param [out] bases      Receives num_sources addresses.
 * @param [in]  num_bases  Entries of the array, at least num_sources.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window) or UCS_ERR_BUFFER_TOO_SMALL.
 */
ucs_status_t ucp_layout_window_bases(ucp_layout_window_h window, void **bases, uint32_t num_bases);

/**
 * @brief The stock memory handle of a window in any context, made at the first call.
 *
 * It is released with the window, or by @ref ucp_layout_window_detach, not with ucp_mem_unmap.
 *
 * @param [in]  window   From @ref ucp_layout_map.
 * @param [in]  context  UCP context.
 * @param [out] memh_p   The handle. The same one as long as the window has it.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window), UCS_ERR_NO_DEVICE (as @ref ucp_layout_map) or
 * UCS_ERR_NO_MEMORY.
 *
 * @note Thread safe as ucp_mem_map is.
 */
ucs_status_t ucp_layout_window_memh(ucp_layout_window_h window, ucp_context_h context, ucp_mem_h *memh_p);

/**
 * @brief Release the memory handle of a window in one context, which may then be cleaned up. The window stays.
 *
 * No transfer of that context may be using the handle.
 *
 * @param [in] window   From @ref ucp_layout_map.
 * @param [in] context  A context the window has a handle in, not yet cleaned up.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window, or without a handle in this context).
 */
ucs_status_t ucp_layout_window_detach(ucp_layout_window_h window, ucp_context_h context);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
