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
    /** The library allocates zeroed memory for every source, bounds included, and shares it with other processes where
     *  the transport can use that. @ref ucp_layout_window_bases returns the addresses; bases must not be set. Such a
     *  window is never shared, and its memory is freed when it is unmapped. Where the kernel has huge pages and the
     *  blocks are dense, all of the memory is allocated by the call, on the NUMA node of the calling thread; else when
     *  it is first touched (UCX_LAYOUT_HUGE_PAGES). */
    UCP_LAYOUT_MAP_FLAG_ALLOCATE = UCS_BIT(0),
    /** The window is not shared with another mapping of the same content, so @ref ucp_layout_rebind affects no other
     *  user. Has no effect with ALLOCATE. */
    UCP_LAYOUT_MAP_FLAG_EXCLUSIVE = UCS_BIT(1),
    /** With ALLOCATE and base_memory_type UCS_MEMORY_TYPE_RDMA: host memory is allocated where no network card of the
     *  context has memory left. The attribute base_memory_type tells which one it is. */
    UCP_LAYOUT_MAP_FLAG_OR_HOST = UCS_BIT(2)
};

/** Fields of @ref ucp_layout_map_params_t. */
enum ucp_layout_map_params_field {
    UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT           = UCS_BIT(0), /**< layout (required) */
    UCP_LAYOUT_MAP_PARAM_FIELD_BASES            = UCS_BIT(1), /**< bases, num_bases (required without ALLOCATE) */
    UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE = UCS_BIT(2), /**< base_memory_type (default: UCS_MEMORY_TYPE_HOST) */
    UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS            = UCS_BIT(3)  /**< flags (default: 0) */
};

/** Parameters of @ref ucp_layout_map. */
typedef struct ucp_layout_map_params {
    uint64_t          field_mask; /**< Mask of valid fields, @ref ucp_layout_map_params_field */
    ucp_layout_h      layout;     /**< May be destroyed after the call */
    void *const      *bases;      /**< Base address of every source; NULL only for a source that describes no byte. The
                                        described memory must stay until the window is unmapped. No other byte of it is
                                        touched. It may be constant if nothing is received into it. The array is
                                        copied */
    uint32_t          num_bases;  /**< num_sources of the layout */
    ucs_memory_type_t base_memory_type; /**< Type of the described memory, not of the window's address: HOST or RDMA.
                                             UCS_MEMORY_TYPE_RDMA is memory of a network card (MEMIC), as for
                                             ucp_mem_map: with ALLOCATE the library allocates it, from the context's
                                             first card that has enough left, zeroed, as many bytes as the bounds of
                                             each source span. Bases may be in such memory with either type, also only
                                             some of them */
    unsigned          flags;            /**< @ref ucp_layout_map_flags */
} ucp_layout_map_params_t;

/**
 * @brief Make a window: apply a layout to base addresses.
 *
 * A window belongs to the process: its address works in every UCP context. Mapping the same layout (by content) over
 * the same bases again, while the window exists, is cheap and gives the same address under another handle. Every handle
 * must be unmapped.
 *
 * @param [in]  context   UCP context in which the window gets a stock memory handle, or NULL if only the address is
 *                        needed. With a context, the call checks whether UCP can use windows in it.
 * @param [in]  params    Layout, base addresses and options.
 * @param [out] window_p  The window, to be released with @ref ucp_layout_unmap.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong, or an option of windows is (UCX_LAYOUT_ARENA_SIZE),
 *         UCS_ERR_EXCEEDS_LIMIT  longer than the part of the reserved addresses that such windows have, a third of
 *                                UCX_LAYOUT_ARENA_SIZE by default;
 *                                or more memory than UCP_LAYOUT_MAX_LENGTH with ALLOCATE,
 *         UCS_ERR_UNSUPPORTED    base_memory_type is not supported, or no card of the context has memory of its own,
 *         UCS_ERR_NO_DEVICE      the transport @e lay_copy is not in this context (the message says how to set
 *                                UCX_TLS), the context is of another UCX of this process than the one that windows
 *                                work with (the message names that one), or the version of UCX is not supported,
 *         UCS_ERR_NO_MEMORY      out of memory or of reserved addresses,
 *         UCS_ERR_IO_ERROR       UCP does not tell what the context has, or a network card failed;
 *         with a context also what ucp_mem_map returns, and for a window that is mapped already what
 *         @ref ucp_layout_window_memh returns.
 *
 * @note Cost of mapping again: linear in the number of bases, some 2 ns each, because their values are compared. The
 * number of blocks does not matter, nor whether the layout was made again, because the layout's handle is compared.
 *
 * @note Thread safe as ucp_mem_map is. As with all of UCP, a child must not use windows with its parent's context after
 * a fork.
 */
ucs_status_t ucp_layout_map(ucp_context_h context, const ucp_layout_map_params_t *params,
                            ucp_layout_window_h *window_p);

/**
 * @brief Make a window over one base address, without options: @ref ucp_layout_map and its query in one call.
 *
 * @param [in]  context    As @ref ucp_layout_map.
 * @param [in]  layout     A layout of one source. May be destroyed after the call.
 * @param [in]  base       Its base address; NULL only if the layout describes no byte. As bases of
 *                         @ref ucp_layout_map_params_t.
 * @param [out] window_p   The window, to be released with @ref ucp_layout_unmap.
 * @param [out] address_p  Its address, for stock UCP calls. As long as the packed layout; valid until the window is
 *                         unmapped.
 *
 * @return As @ref ucp_layout_map. Both outputs are written, or none.
 *
 * @note As thread safe and as fast as @ref ucp_layout_map.
 */
ucs_status_t ucp_layout_map_base(ucp_context_h context, ucp_layout_h layout, void *base, ucp_layout_window_h *window_p,
                                 void **address_p);

/**
 * @brief Release a window, its stock memory handles, and the memory allocated for it.
 *
 * The address and the remote keys of a window are good until its last handle is unmapped. If the same content is mapped
 * again after that, peers need both anew (docs/limits.md).
 *
 * No transfer may be using the window. Contexts in which it has a memory handle must not be cleaned up before, as with
 * any stock handle: ucp_cleanup then warns, or ends the process if UCX was built with assertions. If it returns, the
 * window has lost that handle, whose few hundred bytes are never freed. The window can still be used and unmapped.
 *
 * @param [in] window  From @ref ucp_layout_map.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window, or already unmapped).
 *
 * @note Thread safe with respect to other windows.
 */
ucs_status_t ucp_layout_unmap(ucp_layout_window_h window);

/**
 * @brief Apply the layout of a window to other base addresses. Its address, memory handles and remote keys stay.
 *
 * No transfer may be using the window. On failure it shows the same bases as before. Where a network card carries it,
 * its remote keys may be gone then: pack them again.
 *
 * @param [in] window     From @ref ucp_layout_map, without ALLOCATE.
 * @param [in] bases      Base address of every source, as for @ref ucp_layout_map.
 * @param [in] num_bases  num_sources of the layout.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a parameter is wrong, or the window has memory of its own,
 *         UCS_ERR_BUSY           the same content is mapped more than once; never with EXCLUSIVE,
 *         UCS_ERR_NO_MEMORY      out of memory;
 *         where a network card carries the window also
 *         UCS_ERR_EXCEEDS_LIMIT, UCS_ERR_UNSUPPORTED  the card cannot have a key over this memory,
 *         UCS_ERR_IO_ERROR       the card, or registering the memory, failed,
 *         UCS_ERR_TIMED_OUT      the card did not answer within 30 s.
 *
 * @note Thread safe with respect to other windows.
 */
ucs_status_t ucp_layout_rebind(ucp_layout_window_h window, void *const *bases, uint32_t num_bases);

/** Fields of @ref ucp_layout_window_attr_t. */
enum ucp_layout_window_attr_field {
    UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS          = UCS_BIT(0), /**< address */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH           = UCS_BIT(1), /**< length */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH             = UCS_BIT(2), /**< memh */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_LAYOUT           = UCS_BIT(3), /**< layout */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES      = UCS_BIT(4), /**< num_sources */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS            = UCS_BIT(5), /**< flags */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS       = UCS_BIT(6), /**< statistics */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_BASE_MEMORY_TYPE = UCS_BIT(7), /**< base_memory_type */
    UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER          = UCS_BIT(8)  /**< carrier */
};

/** What the CPU of this process moved through a window since it was made. Bytes that peers move in memory that they
 *  map, or through the kernel, do not count. Counted without a lock: operations of several threads at the same time may
 *  lose some. Mappings that share a window share its statistics, also one after the other. */
typedef struct ucp_layout_window_statistics {
    uint64_t reads;         /**< Operations that gathered bytes; UCP splits a long message into several */
    uint64_t writes;        /**< Operations that scattered bytes */
    uint64_t bytes_read;    /**< Bytes gathered */
    uint64_t bytes_written; /**< Bytes scattered */
} ucp_layout_window_statistics_t;

/** Who moves the bytes of a window to and from other hosts. */
typedef enum ucp_layout_carrier {
    UCP_LAYOUT_CARRIER_UNDECIDED, /**< The window had no memory handle in any context yet; the first one decides */
    UCP_LAYOUT_CARRIER_KEYS,      /**< Network cards, by hardware keys; towards peers without this library the CPU */
    UCP_LAYOUT_CARRIER_COPIES,    /**< The CPU, which copies them through a buffer */
    UCP_LAYOUT_CARRIER_DIRECT     /**< The CPU; a process on this host reaches the memory itself, in one pass */
} ucp_layout_carrier_t;

/** Attributes of a window. */
typedef struct ucp_layout_window_attr {
    uint64_t     field_mask;  /**< Mask of fields to fill in, @ref ucp_layout_window_attr_field */
    void        *address;     /**< Address of the window, for stock UCP calls. The CPU can access it only if the window
                                   shows one contiguous block in memory of its own */
    size_t       length;      /**< Packed bytes */
    ucp_mem_h    memh;        /**< Stock memory handle in the context of ucp_layout_map: for UCP_OP_ATTR_FIELD_MEMH,
                                   ucp_rkey_pack and ucp_mem_query, not for ucp_mem_unmap. With it, a send or receive
                                   beyond the end of the window fails at once. NULL without a context, and after the
                                   handle was detached or its context cleaned up */
    ucp_layout_h layout;      /**< A new reference, to be released with @ref ucp_layout_destroy */
    uint32_t     num_sources; /**< Base addresses */
    unsigned     flags;       /**< @ref ucp_layout_map_flags of its mapping */
    ucp_layout_window_statistics_t statistics; /**< What was moved through the window */
    ucs_memory_type_t base_memory_type; /**< UCS_MEMORY_TYPE_RDMA if any described byte is in memory of a network card,
                                             otherwise UCS_MEMORY_TYPE_HOST. It is not the type that UCP has for the
                                             window's address, which ucp_mem_query tells: RDMA for most windows */
    ucp_layout_carrier_t carrier;       /**< Who moves the bytes at present; @ref ucp_layout_window_carrier_reason says
                                             why */
} ucp_layout_window_attr_t;

/**
 * @brief Get attributes of a window.
 *
 * @param [in]     window  From @ref ucp_layout_map.
 * @param [in,out] attr    field_mask selects the fields to fill in.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window, or an unknown field bit) or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_window_query(ucp_layout_window_h window, ucp_layout_window_attr_t *attr);

/**
 * @brief Copy out why the CPU copies a window, or why that is undecided, as text for people. It may change between
 * releases.
 *
 * @param [in]  window  From @ref ucp_layout_map.
 * @param [out] text    Receives the reason, cut to the length and with a final 0; empty if network cards carry the
 *                      window.
 * @param [in]  length  Bytes of @a text, at least 1. Reasons have some 100 bytes.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window, or no text), UCS_ERR_BUFFER_TOO_SMALL (length is 0) or
 *         UCS_ERR_NO_MEMORY.
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_window_carrier_reason(ucp_layout_window_h window, char *text, size_t length);

/**
 * @brief Find the window that shows a range of addresses, such as a buffer that was passed to a UCP call.
 *
 * The handle belongs to whoever mapped the window. The call adds no mapping, so that the caller neither unmaps it nor
 * keeps it mapped: if its owner unmaps it, also in another thread during this call, later calls refuse it with
 * UCS_ERR_INVALID_PARAM, as any stale handle. It never becomes the handle of another window.
 *
 * If the same content is mapped several times, the call returns one of the handles, and the same one until that is
 * unmapped.
 *
 * @param [in]  address   First byte of the range; any address.
 * @param [in]  length    Bytes of the range. 0: the window that has the address.
 * @param [out] window_p  The handle.
 *
 * @return UCS_OK,
 *         UCS_ERR_INVALID_PARAM  window_p is NULL,
 *         UCS_ERR_NO_ELEM        no window that this process has mapped holds all of the range; nothing is logged.
 *
 * @note Thread safe. Takes no lock and some nanoseconds; for addresses that are not of windows two comparisons.
 */
ucs_status_t ucp_layout_window_find(const void *address, size_t length, ucp_layout_window_h *window_p);

/**
 * @brief Get the base addresses of a window.
 *
 * @param [in]  window     From @ref ucp_layout_map.
 * @param [out] bases      Receives num_sources addresses.
 * @param [in]  num_bases  Entries of the array, at least num_sources.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window) or UCS_ERR_BUFFER_TOO_SMALL.
 */
ucs_status_t ucp_layout_window_bases(ucp_layout_window_h window, void **bases, uint32_t num_bases);

/**
 * @brief Get the stock memory handle of a window in any context. The first call makes it.
 *
 * The window releases it, or @ref ucp_layout_window_detach does; ucp_mem_unmap must not.
 *
 * @param [in]  window   From @ref ucp_layout_map.
 * @param [in]  context  UCP context.
 * @param [out] memh_p   The handle; further calls return the same one.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  not a window,
 *         UCS_ERR_NO_DEVICE      as @ref ucp_layout_map,
 *         UCS_ERR_NO_MEMORY      out of memory,
 *         UCS_ERR_EXCEEDS_LIMIT, UCS_ERR_UNSUPPORTED  a network card of the context cannot have a key for the window,
 *         UCS_ERR_IO_ERROR       UCP does not tell what the context has, or a network card failed,
 *         UCS_ERR_TIMED_OUT      a network card did not answer within 30 s,
 *         or what ucp_mem_map returns.
 *
 * @note Thread safe as ucp_mem_map is.
 */
ucs_status_t ucp_layout_window_memh(ucp_layout_window_h window, ucp_context_h context, ucp_mem_h *memh_p);

/**
 * @brief Release the memory handle of a window in one context, so that the context can be cleaned up. The window stays.
 *
 * No transfer of that context may be using the handle.
 *
 * @param [in] window   From @ref ucp_layout_map.
 * @param [in] context  A context in which the window has a handle; not yet cleaned up.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window, or it has no handle in this context).
 */
ucs_status_t ucp_layout_window_detach(ucp_layout_window_h window, ucp_context_h context);

/**
 * @brief Print for people who moves the bytes of a process's windows, why the CPU copies some of them, and what its
 * network cards have for windows. UCX's virtual file system shows the same in layout/windows and layout/keys.
 *
 * @param [in] pid     0 for this process, or the number of another process of this user and PID namespace.
 * @param [in] stream  Where to print.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (stream is NULL), UCS_ERR_NO_ELEM (there is no such process, or it has not
 *         loaded this release of the library), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t ucp_layout_print_windows(pid_t pid, FILE *stream);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
