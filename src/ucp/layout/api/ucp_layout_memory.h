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
    UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH     = UCS_BIT(0), /**< length (required) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS    = UCS_BIT(1), /**< address (default: the library allocates) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_FD         = UCS_BIT(2), /**< fd (default: found by the address) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET     = UCS_BIT(3), /**< offset (default: 0); only with fd */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS      = UCS_BIT(4), /**< flags (default: 0) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES = UCS_BIT(5), /**< huge_pages (default: what UCX_LAYOUT_HUGE_PAGES says) */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT  = UCS_BIT(6), /**< alignment (default: a page); only without address */
    UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE  = UCS_BIT(7)  /**< numa_node (default: that of the thread that touches the
                                                                memory first); only without address */
};

/** Flags of @ref ucp_layout_memory_params_t. */
enum ucp_layout_memory_flags {
    /** The memory at @e address is private to the process (a heap block, a static array): move it into a file at the
     *  same address. Whole pages move, so what else is on its first and last page comes along. */
    UCP_LAYOUT_MEMORY_FLAG_MOVE = UCS_BIT(0)
};

/** Huge pages of memory that the library allocates or moves. */
typedef enum ucp_layout_huge_pages {
    UCP_LAYOUT_HUGE_PAGES_TRY,   /**< If the kernel has them */
    UCP_LAYOUT_HUGE_PAGES_NEVER, /**< None */
    UCP_LAYOUT_HUGE_PAGES_ALWAYS /**< All of the memory, or the call fails; not with UCP_LAYOUT_MEMORY_FLAG_MOVE */
} ucp_layout_huge_pages_t;

/** Parameters of @ref ucp_layout_memory_create. */
typedef struct ucp_layout_memory_params {
    uint64_t field_mask; /**< Mask of valid fields, @ref ucp_layout_memory_params_field */
    size_t   length;     /**< Bytes, at least 1 */
    void    *address;    /**< Memory of the caller. Without UCP_LAYOUT_MEMORY_FLAG_MOVE it is at a page boundary, and a
                              shared mapping of the file @e fd, or of any file in memory that can be found by it */
    int      fd;         /**< A file in memory: of memfd_create(2), of shm_open(3), of a tmpfs or of a hugetlbfs. If it
                              can be sealed (MFD_ALLOW_SEALING), it cannot become shorter from now on. May be closed
                              after the call */
    uint64_t offset;     /**< Where the memory begins in the file, at a page boundary */
    uint64_t flags;      /**< @ref ucp_layout_memory_flags */
    ucp_layout_huge_pages_t huge_pages; /**< Whether to use huge pages */
    size_t   alignment;  /**< Of the first byte: a power of two, at most 2^40 */
    int      numa_node;  /**< The NUMA node from which the memory is taken, while it has any: 0 to 1023 */
} ucp_layout_memory_params_t;

/**
 * @brief Share memory with the processes of this host.
 *
 * A window whose bytes all lie in such memory, in one piece or in several, is mapped by the peers that use it: long
 * messages, puts, gets and atomic operations then go in one pass, but messages whose bytes are sparse do not
 * (docs/shared-memory.md). It does not matter which windows are over it, how many, and in which layouts. A peer maps
 * each piece once for all windows.
 *
 * Without an address the library allocates zeroed memory, at a page boundary. Where the kernel has huge pages, all of
 * the memory is allocated by the call, on the NUMA node of the calling thread.
 *
 * With an address the memory is the caller's, who keeps it mapped until @ref ucp_layout_memory_destroy. With
 * UCP_LAYOUT_MEMORY_FLAG_MOVE what it holds is copied once. Other threads may read it during the call; what they write
 * to it, or to the rest of its first and last page, may be lost. It is refused where it cannot be right: memory that is
 * locked, shared already, a stack, or of a device; and any while a device has memory of this process registered. It is
 * best done at the start. A child of fork() has the memory for itself, but sees what the parent writes later in
 * pages that the child has not written.
 *
 * Blocks of a heap in shared memory (libucx_layout_heap) are shared already: the handle then stands for memory that
 * stays as it is, also after @ref ucp_layout_memory_destroy.
 *
 * A file that cannot be sealed, as those of shm_open(3), must not become shorter while it is shared, and one of huge
 * pages (hugetlbfs) must not get a hole (fallocate(2)). If it does, nobody gets a signal for that but who touches
 * memory of its own: operations of peers fail (UCX_LAY_SHM_MAP_UNSEALED).
 *
 * Windows that were made before are not changed; a window that is made or bound anew afterwards is shared.
 *
 * @param [in]  params    Length, and the caller's memory if it is that.
 * @param [out] memory_p  The memory, to be released with @ref ucp_layout_memory_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong, the memory is not a shared mapping of the file, no file
 *                                was found for the address, the memory cannot be moved, there is no such NUMA node, or
 *                                some of the memory is shared already. The log has the reason,
 *         UCS_ERR_NO_MEMORY      out of memory, of huge pages or of descriptors.
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_memory_create(const ucp_layout_memory_params_t *params, ucp_layout_memory_h *memory_p);

/**
 * @brief Release shared memory.
 *
 * Memory that the library allocated is freed when no window is over it any more. Memory of the caller may be unmapped
 * after the call: windows over it have lost their remote keys, and what peers do by these fails at the peers; messages
 * and what this process does by itself work for as long as the memory is mapped. Memory that was moved is private
 * again, with what it holds.
 *
 * @param [in] memory  From @ref ucp_layout_memory_create.
 *
 * @return UCS_OK                 Success,
 *         UCS_ERR_INVALID_PARAM  not such a handle, or already released,
 *         UCS_ERR_NO_MEMORY      out of memory: the handle is still one, and the call may be repeated. Until it
 *                                succeeds the memory has to stay mapped.
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

/**
 * @brief Print for people what a process shares with the processes of this host: its shared memory, where it is from,
 * how much of it is in huge pages and which processes have it mapped; what it has mapped of others; and how many long
 * operations were shared. UCX's virtual file system shows the numbers in layout/memory.
 *
 * @param [in] pid     0 for this process, or the number of another process of this user and PID namespace.
 * @param [in] stream  Where to print.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (stream is NULL), UCS_ERR_NO_ELEM (there is no such process, or it has not
 *         loaded this release of the library), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t ucp_layout_print_memory(pid_t pid, FILE *stream);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
