/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCT_MLX5_LAYOUT_H_
#define UCT_MLX5_LAYOUT_H_

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucs/type/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @defgroup UCT_MLX5_LAYOUT Memory keys of non-contiguous memory, for any program on libibverbs and libmlx5
 *
 * A @e region is a memory key that shows bytes from many places as one contiguous range. It is made once, empty, and
 * then given a layout as often as wanted: a list of pieces, interleaved and strided pieces of several sources, or any
 * layout made with ucp_layout_create. Its key goes into work requests as that of a memory region does: as lkey for what
 * a send gathers and a receive scatters, as rkey for what a peer reads, writes and modifies atomically. The device
 * walks the layout; no CPU copies anything.
 *
 * @code{.c}
 * // One column of a matrix of doubles with rows of 8 kB, in `mr`.
 * uct_mlx5_layout_dim_t dim   = {.offset_stride = 8192, .datum_count = 1024};
 * uct_mlx5_layout_item_t item = {.first_datum    = {.addr = (uintptr_t)matrix, .length = 8, .lkey = mr->lkey},
 *                                .num_repeated   = 1, .num_dimensions = 1, .dims = &dim};
 * uct_mlx5_layout_domain_open(&domain_params, &domain);            // pd
 * uct_mlx5_layout_region_create(domain, &region_params, &region);  // access
 * uct_mlx5_layout_set_interleaved(region, 0, 1, &item);
 * uct_mlx5_layout_region_query(region, &attr);                     // attr.lkey, attr.address (0), attr.length (8192)
 * @endcode
 *
 * Conventions are those of UCX: the caller sets @e field_mask to the fields it filled in; a function returns a status
 * and writes its outputs only on success; whoever finds an error logs it once. Sizes, addresses and strides are bytes.
 *
 * Thread safety: a domain may be used by several threads at once; a region by one at a time.
 *
 * Order: a layout set without flags is in force, everywhere, when the call returns. Work requests that use the region
 * must have completed before it is given another layout, invalidated or destroyed: the device follows the key when it
 * executes a request, not when the request is posted.
 * @{
 */

/** Memory keys of one protection domain, and the queue pair that binds them. */
typedef struct uct_mlx5_layout_domain *uct_mlx5_layout_domain_h;

/** A memory key with a layout. */
typedef struct uct_mlx5_layout_region *uct_mlx5_layout_region_h;

/** What a device supports. */
enum uct_mlx5_layout_cap_flags {
    UCT_MLX5_LAYOUT_CAP_SG                            = 1 << 0, /**< @ref uct_mlx5_layout_set_sg */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED                   = 1 << 1, /**< @ref uct_mlx5_layout_set_interleaved */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_REPEAT            = 1 << 2, /**< num_repeated > 1 */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_REPEAT = 1 << 3, /**< num_repeated differs between items */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_TOTAL  = 1 << 4, /**< numbers of data differ between items */
    UCT_MLX5_LAYOUT_CAP_ADDRESS                       = 1 << 5, /**< Regions at a chosen virtual address */
    UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK                  = 1 << 6, /**< Strided layouts cost one entry in all */
    UCT_MLX5_LAYOUT_CAP_ATOMIC                        = 1 << 7  /**< Atomic operations on words inside a layout */
};

/** Capabilities, see @ref uct_mlx5_layout_query. */
typedef struct uct_mlx5_layout_attr {
    uint64_t flags;                      /**< @ref uct_mlx5_layout_cap_flags */
    uint32_t max_num_sg;                 /**< Pieces of one list */
    uint32_t max_inline_num_sg;          /**< Of them, those that travel in the bind request itself */
    uint32_t max_num_interleaved;        /**< Items of one interleaved layout */
    uint32_t max_inline_num_interleaved; /**< Of them, those that travel in the bind request itself */
    uint32_t max_mr_stride_dimension;    /**< Dimensions of one item. Above 1 the library nests keys or lists blocks */
    uint32_t max_mr_nesting_level;       /**< Keys on the way from a work request to memory */
} uct_mlx5_layout_attr_t;

/**
 * @brief What the device of a context says that it supports. What of it works is found out when a domain is opened, see
 * @ref uct_mlx5_layout_domain_query.
 *
 * @param [in]  context  An mlx5 device, opened with DEVX.
 * @param [out] attr     Receives the capabilities.
 * @return UCS_OK, UCS_ERR_UNSUPPORTED (not an mlx5 device, no DEVX, or no such keys) or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_query(struct ibv_context *context, uct_mlx5_layout_attr_t *attr);

/** Fields of @ref uct_mlx5_layout_domain_params_t. */
enum uct_mlx5_layout_domain_field {
    UCT_MLX5_LAYOUT_DOMAIN_FIELD_PD    = 1 << 0, /**< pd; required */
    UCT_MLX5_LAYOUT_DOMAIN_FIELD_PORT  = 1 << 1, /**< port */
    UCT_MLX5_LAYOUT_DOMAIN_FIELD_DEPTH = 1 << 2  /**< bind_depth */
};

/** How a domain is opened. */
typedef struct uct_mlx5_layout_domain_params {
    uint64_t       field_mask; /**< @ref uct_mlx5_layout_domain_field */
    struct ibv_pd *pd;         /**< Of all keys; must outlive the domain */
    uint8_t        port;       /**< An active port, for the bind queue's loopback. Default: 1 */
    uint32_t       bind_depth; /**< Bind requests under way at once, 1 to 4096. Default: 128 */
} uct_mlx5_layout_domain_params_t;

/**
 * @brief Open a domain: a queue pair for binding, connected to itself, and room for keys.
 *
 * A self-test moves a few bytes through keys of every kind and back to the same queue pair. What does not work is done
 * without (lists instead of repeat blocks, another way to an address, no nesting) or refused later; a device on which
 * not even lists work is not supported.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_NO_MEMORY or
 *         UCS_ERR_IO_ERROR (the device refused; the message has errno and syndrome).
 */
ucs_status_t uct_mlx5_layout_domain_open(const uct_mlx5_layout_domain_params_t *params,
                                         uct_mlx5_layout_domain_h              *domain_p);

/** @brief Close a domain. All regions must have been destroyed. NULL: nothing happens. */
void uct_mlx5_layout_domain_close(uct_mlx5_layout_domain_h domain);

/** How a region gets to a virtual address; the option UCX_LAYOUT_KEYS_ADDRESS forces one way. */
typedef enum uct_mlx5_layout_address_method {
    UCT_MLX5_LAYOUT_ADDRESS_NONE, /**< Not at all: all regions begin at 0 */
    UCT_MLX5_LAYOUT_ADDRESS_UMR,  /**< The bind request moves the start of the key */
    UCT_MLX5_LAYOUT_ADDRESS_KSM   /**< Another key lies over it: one level of nesting less, and 126 GiB at most */
} uct_mlx5_layout_address_method_t;

/** What the self-test found, see @ref uct_mlx5_layout_domain_query. */
typedef struct uct_mlx5_layout_domain_attr {
    uint64_t                         flags;                /**< @ref uct_mlx5_layout_cap_flags that really work */
    uint32_t                         max_mr_nesting_level; /**< Keys on the way from a work request to memory */
    uct_mlx5_layout_address_method_t address_method;       /**< Of regions at an address */
} uct_mlx5_layout_domain_attr_t;

/** @brief What the device of a domain does. Cannot fail. */
void uct_mlx5_layout_domain_query(uct_mlx5_layout_domain_h domain, uct_mlx5_layout_domain_attr_t *attr);

/**
 * @brief Tell a domain of an asynchronous event of its device (ibv_get_async_event); to be called for every one.
 *
 * After IBV_EVENT_DEVICE_FATAL every call on the domain and its regions fails at once with UCS_ERR_IO_ERROR, also one
 * that is waiting in another thread; destroying and closing go on. Other events do nothing. A domain that is not told
 * finds out by itself when a bind has not completed for 10 ms. May be called by any thread at any time.
 */
void uct_mlx5_layout_domain_handle_event(uct_mlx5_layout_domain_h domain, const struct ibv_async_event *event);

/**
 * @brief Print what a device would make of a layout: keys, entries, requests, which forms were rejected and why, and
 * whether packing is the better choice.
 *
 * @param [in] device        Name of an mlx5 device (mlx5_0); NULL: the first one; "published": the limits that are
 *                           published for ConnectX-6, no device is looked for.
 * @param [in] wire, length  The layout's wire form (ucp_layout_pack).
 * @param [in] stream        Where to print.
 * @return UCS_OK, UCS_ERR_NO_DEVICE, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_INVALID_PARAM,
 *         UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_explain(const char *device, const void *wire, size_t length, FILE *stream);

/** Fields of @ref uct_mlx5_layout_region_params_t. */
enum uct_mlx5_layout_region_field {
    UCT_MLX5_LAYOUT_REGION_FIELD_ACCESS      = 1 << 0, /**< access */
    UCT_MLX5_LAYOUT_REGION_FIELD_MAX_ENTRIES = 1 << 1, /**< max_entries */
    UCT_MLX5_LAYOUT_REGION_FIELD_ADDRESS     = 1 << 2  /**< address */
};

/** How a region is made. */
typedef struct uct_mlx5_layout_region_params {
    uint64_t field_mask;  /**< @ref uct_mlx5_layout_region_field */
    unsigned access;      /**< Of IBV_ACCESS_LOCAL_WRITE, _REMOTE_READ, _REMOTE_WRITE, _REMOTE_ATOMIC. Default: none,
                               which leaves local reading */
    uint32_t max_entries; /**< Translation entries the region's own key has room for, 1 to max_num_sg. Layouts that need
                               more get further keys. Default: 64 */
    uint64_t address;     /**< Where the region begins in its own address space. Default: 0 */
} uct_mlx5_layout_region_params_t;

/**
 * @brief Make an empty region: no layout, length 0, a key that cannot be used yet.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (an address, or IBV_ACCESS_REMOTE_ATOMIC, on a device that
 *         cannot), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR (the device refused, such as out of keys).
 */
ucs_status_t uct_mlx5_layout_region_create(uct_mlx5_layout_domain_h               domain,
                                           const uct_mlx5_layout_region_params_t *params,
                                           uct_mlx5_layout_region_h              *region_p);

/** @brief Destroy a region. No work request may use it any more. NULL: nothing happens. */
void uct_mlx5_layout_region_destroy(uct_mlx5_layout_region_h region);

/** What a region is now, see @ref uct_mlx5_layout_region_query. */
typedef struct uct_mlx5_layout_region_attr {
    uint32_t lkey;        /**< For local elements of work requests */
    uint32_t rkey;        /**< For peers */
    uint64_t address;     /**< First byte, in the region's own address space */
    uint64_t length;      /**< Bytes; 0 without a layout */
    uint32_t num_keys;    /**< Device keys the layout takes, the region's own included */
    uint32_t num_entries; /**< Translation entries of all of them, with padding */
    uint32_t depth;       /**< Keys on the way to memory */
    uint32_t num_repeats; /**< Of the keys, those that are repeat blocks */
    uint32_t num_fetched; /**< Of the keys, those whose entries the device fetched from memory */
    int      whole_words; /**< Whether atomic operations reach every 8-byte aligned word. If not, some are split between
                               blocks or misaligned in memory: see @ref uct_mlx5_layout_region_check_atomic */
} uct_mlx5_layout_region_attr_t;

/** @brief Describe a region. Cannot fail. */
void uct_mlx5_layout_region_query(uct_mlx5_layout_region_h region, uct_mlx5_layout_region_attr_t *attr);

/**
 * @brief Whether atomic operations on the 8 bytes at an address of a region work. They do not where the bytes are in
 * several blocks, or not aligned in memory: the device fails such a request with a remote access or invalid request
 * error.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (the message says what is wrong with the word: not aligned, split, misaligned
 *         in memory, outside) or UCS_ERR_UNSUPPORTED (the region was made without IBV_ACCESS_REMOTE_ATOMIC).
 */
ucs_status_t uct_mlx5_layout_region_check_atomic(uct_mlx5_layout_region_h region, uint64_t address);

/** Flags of the functions that set a layout. */
enum uct_mlx5_layout_set_flags {
    /** Only prepare: the layout comes into force by @ref uct_mlx5_layout_post_bind. */
    UCT_MLX5_LAYOUT_SET_WITH_POST_WR = 1 << 0,
    /** The region has no layout, or nobody can use its key: do not take the old layout away first. */
    UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION = 1 << 1
};

/** One dimension of an item. */
typedef struct uct_mlx5_layout_dim {
    int64_t  offset_stride; /**< From one datum to the next along this dimension; may be negative */
    uint64_t datum_count;   /**< Data along this dimension, >= 1 */
} uct_mlx5_layout_dim_t;

/**
 * One source of an interleaved layout. Its data are enumerated by the dimensions, the first one fastest. Every cycle
 * takes the next num_repeated data of every item in turn; an item that has run out is left out of later cycles.
 */
typedef struct uct_mlx5_layout_item {
    struct ibv_sge               first_datum;    /**< Address, length and key of the first datum */
    uint32_t                     num_repeated;   /**< Data per cycle, >= 1 */
    uint32_t                     num_dimensions; /**< 0: the one datum */
    const uct_mlx5_layout_dim_t *dims;           /**< num_dimensions of them */
} uct_mlx5_layout_item_t;

/**
 * @brief Make the region a list of pieces, one after the other. A piece may be in another region.
 *
 * @param [in] region   Its present layout is replaced; kept if this fails before anything was posted.
 * @param [in] flags    @ref uct_mlx5_layout_set_flags
 * @param [in] num_sge  Pieces, 1 to max_num_sg and beyond (longer lists are nested). Pieces of length 0 are skipped.
 * @param [in] sg_list  Copied.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_EXCEEDS_LIMIT (the message names it), UCS_ERR_NO_MEMORY or
 *         UCS_ERR_IO_ERROR (the bind failed: the region has no layout then).
 */
ucs_status_t uct_mlx5_layout_set_sg(uct_mlx5_layout_region_h region, unsigned flags, size_t num_sge,
                                    const struct ibv_sge *sg_list);

/**
 * @brief Make the region an interleaved layout; with one item, a strided one of N dimensions.
 *
 * Parameters and errors as of @ref uct_mlx5_layout_set_sg.
 */
ucs_status_t uct_mlx5_layout_set_interleaved(uct_mlx5_layout_region_h region, unsigned flags, size_t num_items,
                                             const uct_mlx5_layout_item_t *items);

/** Where a source of a layout begins. */
typedef struct uct_mlx5_layout_base {
    uint64_t address; /**< In the address space of the key */
    uint32_t lkey;    /**< Covers all bytes that the layout describes of this source */
} uct_mlx5_layout_base_t;

/**
 * @brief Make the region any layout, given as its wire form (ucp_layout_pack). The bytes may be hostile.
 *
 * @param [in] wire, length  The wire form.
 * @param [in] region        As of @ref uct_mlx5_layout_set_sg.
 * @param [in] flags         As of @ref uct_mlx5_layout_set_sg.
 * @param [in] bases         One for each source, num_bases of them.
 * @param [in] num_bases     As many as the layout has sources.
 *
 * Errors as of @ref uct_mlx5_layout_set_sg.
 */
ucs_status_t uct_mlx5_layout_set_wire(uct_mlx5_layout_region_h region, unsigned flags, const void *wire, size_t length,
                                      const uct_mlx5_layout_base_t *bases, size_t num_bases);

/**
 * @brief Bring layouts into force that were set with WITH_POST_WR, by work requests on a queue pair of the caller.
 *
 * Requests posted to @e qp after this call may use the regions at once; requests on other queue pairs after a
 * completion:
 * that of @e wr_id if @e signaled, or of any later request on @e qp.
 *
 * @param [in] qp           Of the same protection domain, in state RTS, created by mlx5dv_create_qp with
 *                          MLX5DV_QP_EX_WITH_RAW_WQE and max_inline_data of at least 832, which makes room for
 *                          the longest request, and with room for all keys of the regions and one request more. Not
 *                          posted to by another thread meanwhile.
 * @param [in] regions      num_regions of them.
 * @param [in] num_regions  How many.
 * @param [in] wr_id        Of the completion, whose opcode is IBV_WC_DRIVER2.
 * @param [in] signaled     Whether there is a completion.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (nothing prepared), UCS_ERR_UNSUPPORTED (the queue pair takes no raw requests)
 *         or UCS_ERR_NO_RESOURCE (no room in the send queue; nothing was posted).
 */
ucs_status_t uct_mlx5_layout_post_bind(struct ibv_qp *qp, const uct_mlx5_layout_region_h *regions, size_t num_regions,
                                       uint64_t wr_id, int signaled);

/**
 * @brief Bring layouts into force that were set with WITH_POST_WR, in one batch on the domain's own queue pair, and
 * wait.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_IO_ERROR (none of the regions has a layout then).
 */
ucs_status_t uct_mlx5_layout_bind(const uct_mlx5_layout_region_h *regions, size_t num_regions);

/**
 * @brief Take the layouts away, in one batch: the keys cannot be used until they are set again.
 *
 * @return UCS_OK or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_invalidate(const uct_mlx5_layout_region_h *regions, size_t num_regions);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
