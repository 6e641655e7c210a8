/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCT_MLX5_LAYOUT_H_
#define UCT_MLX5_LAYOUT_H_

#include "uct_mlx5_layout_def.h"

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
 * then given a layout as often as wanted: a list of pieces, interleaved and strided items of several sources, or any
 * layout made with ucp_layout_create. Its key goes into work requests as that of a memory region does: as lkey for what
 * a send gathers and a receive scatters, as rkey for what a peer reads, writes and modifies atomically. The device
 * walks the layout; no CPU copies anything.
 *
 * @code{.c}
 * // One column of a matrix of doubles with rows of 8 kB, in `mr`.
 * uct_mlx5_layout_dim_t rows         = {.count = 1024, .stride = 8192};
 * uct_mlx5_layout_item_t item        = {.element = {.addr = (uintptr_t)matrix, .length = 8, .lkey = mr->lkey},
 *                                       .repeat  = 1, .dims = &rows, .num_dims = 1};
 * uct_mlx5_layout_region_attr_t attr = {.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY |
 *                                                     UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH};
 * uct_mlx5_layout_domain_open(&domain_params, &domain);            // pd
 * uct_mlx5_layout_region_create(domain, &region_params, &region);  // access
 * uct_mlx5_layout_set_interleaved(region, 0, 1, &item);
 * uct_mlx5_layout_region_query(region, &attr);                     // attr.lkey, attr.length (8192); it begins at 0
 * @endcode
 *
 * Conventions are those of UCX: the caller sets @e field_mask to the fields it filled in, or wants filled in; an
 * unknown bit is UCS_ERR_INVALID_PARAM. A function returns a status and writes its outputs only on success; whoever
 * finds an error logs it once, with the parameter and the limit in words. NULL where something is needed is
 * UCS_ERR_INVALID_PARAM. Lengths, offsets, addresses and strides are bytes. Dimensions are listed outermost (slowest)
 * first. Words and order are those of ucp_layout.h.
 *
 * Ownership: everything that is passed by pointer is copied during the call, unless said otherwise.
 *
 * Thread safety: a domain may be used by several threads at once; a region by one at a time. Functions that name
 * neither may be called by any thread at any time.
 *
 * Order: a layout set without flags is in force, everywhere, when the call returns. Work requests that use the region
 * must have completed before it is given another layout, invalidated or destroyed: the device follows the key when it
 * executes a request, not when the request is posted.
 * @{
 */

/**
 * @brief Version of the library that was loaded, to compare with @ref UCT_MLX5_LAYOUT_API_MAJOR and
 * @ref UCT_MLX5_LAYOUT_API_MINOR.
 *
 * @param [out] major    Receives the major version: changes where programs have to be changed. NULL: not wanted.
 * @param [out] minor    Receives the minor version: changes where something is added. NULL: not wanted.
 * @param [out] release  Receives the release: changes where only errors are corrected. NULL: not wanted.
 */
void uct_mlx5_layout_get_version(unsigned *major, unsigned *minor, unsigned *release);

/**
 * @brief What the device of a context says that it supports. What of it works is found out when a domain is opened, see
 * @ref uct_mlx5_layout_domain_query.
 *
 * @param [in]     context  An mlx5 device, opened with DEVX.
 * @param [in,out] attr     Says which capabilities are wanted, and receives them.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (not an mlx5 device, no DEVX, or no such keys) or
 *         UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_query(struct ibv_context *context, uct_mlx5_layout_attr_t *attr);

/**
 * @brief Open a domain: a queue pair for binding, connected to itself, and room for keys.
 *
 * A self-test moves a few bytes through keys of every kind and back to the same queue pair. What does not work is done
 * without (lists instead of repeat blocks, another way to an address, no nesting) or refused later; a device on which
 * not even lists work is not supported.
 *
 * @param [in]  params    How it is opened.
 * @param [out] domain_p  Receives the domain, to be closed with @ref uct_mlx5_layout_domain_close.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_NO_MEMORY or
 *         UCS_ERR_IO_ERROR (the device refused; the message has errno and syndrome).
 */
ucs_status_t uct_mlx5_layout_domain_open(const uct_mlx5_layout_domain_params_t *params,
                                         uct_mlx5_layout_domain_h              *domain_p);

/**
 * @brief Close a domain. No other thread may be using it.
 *
 * @param [in] domain  All its regions must have been destroyed. NULL: nothing happens.
 */
void uct_mlx5_layout_domain_close(uct_mlx5_layout_domain_h domain);

/**
 * @brief What the device of a domain does.
 *
 * @param [in]     domain  The domain.
 * @param [in,out] attr    Says what is wanted, and receives it.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_domain_query(uct_mlx5_layout_domain_h domain, uct_mlx5_layout_domain_attr_t *attr);

/**
 * @brief Tell a domain of an asynchronous event of its device (ibv_get_async_event); to be called for every one.
 *
 * After IBV_EVENT_DEVICE_FATAL every call on the domain and its regions fails at once with UCS_ERR_IO_ERROR, also one
 * that is waiting in another thread; destroying and closing go on. Other events do nothing. A domain that is not told
 * finds out by itself when a bind has not completed for 10 ms. May be called by any thread at any time.
 *
 * @param [in] domain  The domain.
 * @param [in] event   The event, not yet acknowledged or already.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_domain_handle_event(uct_mlx5_layout_domain_h domain, const struct ibv_async_event *event);

/**
 * @brief Print what a device would make of a layout: keys, entries, requests, which forms were rejected and why, and
 * whether packing is the better choice.
 *
 * @param [in] device  Name of an mlx5 device (mlx5_0); NULL: the first one; "published": the limits that are
 *                     published for ConnectX-6, no device is looked for.
 * @param [in] wire    The layout's wire form (ucp_layout_serialize).
 * @param [in] length  Bytes of the wire form.
 * @param [in] stream  Where to print.
 * @return UCS_OK, UCS_ERR_NO_DEVICE, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_INVALID_PARAM,
 *         UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_explain(const char *device, const void *wire, size_t length, FILE *stream);

/**
 * @brief Make an empty region: no layout, length 0, a key that cannot be used yet.
 *
 * @param [in]  domain    Where the key is made; must not be closed before the region is destroyed.
 * @param [in]  params    How it is made; an empty @e field_mask leaves all to the defaults.
 * @param [out] region_p  Receives the region, to be destroyed with @ref uct_mlx5_layout_region_destroy.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (an address, or IBV_ACCESS_REMOTE_ATOMIC, on a device that
 *         cannot), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR (the device refused, such as out of keys).
 */
ucs_status_t uct_mlx5_layout_region_create(uct_mlx5_layout_domain_h               domain,
                                           const uct_mlx5_layout_region_params_t *params,
                                           uct_mlx5_layout_region_h              *region_p);

/**
 * @brief Destroy a region. No work request may use it any more, and no other region may lie over it.
 *
 * @param [in] region  NULL: nothing happens.
 */
void uct_mlx5_layout_region_destroy(uct_mlx5_layout_region_h region);

/**
 * @brief Describe a region.
 *
 * @param [in]     region  The region.
 * @param [in,out] attr    Says what is wanted, and receives it.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_region_query(uct_mlx5_layout_region_h region, uct_mlx5_layout_region_attr_t *attr);

/**
 * @brief Whether atomic operations on the 8 bytes at an address of a region work. They do not where the bytes are in
 * several blocks, or not aligned in memory: the device fails such a request with a remote access or invalid request
 * error.
 *
 * @param [in] region   A region with a layout.
 * @param [in] address  Of the first byte of the word, in the region's own address space.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (the message says what is wrong with the word: not aligned, split, misaligned
 *         in memory, outside) or UCS_ERR_UNSUPPORTED (the region was made without IBV_ACCESS_REMOTE_ATOMIC).
 */
ucs_status_t uct_mlx5_layout_region_check_atomic(uct_mlx5_layout_region_h region, uint64_t address);

/**
 * @brief Make the region a list of pieces, one after the other. A piece may be in another region, which must outlive
 * the layout.
 *
 * @param [in] region   Its present layout is replaced; kept if this fails before anything was posted.
 * @param [in] flags    @ref uct_mlx5_layout_set_flags
 * @param [in] num_sge  Pieces, 1 to max_num_sg and beyond (longer lists are nested).
 * @param [in] sg_list  Address, length and key of each piece. Pieces of length 0 are skipped; one has to have bytes.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_EXCEEDS_LIMIT (the message names it), UCS_ERR_NO_MEMORY,
 *         UCS_ERR_IO_ERROR or UCS_ERR_TIMED_OUT (the bind failed: the region has no layout then).
 */
ucs_status_t uct_mlx5_layout_set_sg(uct_mlx5_layout_region_h region, unsigned flags, size_t num_sge,
                                    const struct ibv_sge *sg_list);

/**
 * @brief Make the region an interleaved layout; with one item, a strided one of N dimensions.
 *
 * @param [in] region     As of @ref uct_mlx5_layout_set_sg.
 * @param [in] flags      @ref uct_mlx5_layout_set_flags
 * @param [in] num_items  Items, at least 1.
 * @param [in] items      In the order of each cycle.
 * @return As @ref uct_mlx5_layout_set_sg.
 */
ucs_status_t uct_mlx5_layout_set_interleaved(uct_mlx5_layout_region_h region, unsigned flags, size_t num_items,
                                             const uct_mlx5_layout_item_t *items);

/**
 * @brief Make the region any layout, given as its wire form (ucp_layout_serialize). The bytes may be hostile: all of
 * them are checked, and of the errors of such calls the first 16 of a process are logged.
 *
 * @param [in] region     As of @ref uct_mlx5_layout_set_sg.
 * @param [in] flags      @ref uct_mlx5_layout_set_flags
 * @param [in] wire       The wire form.
 * @param [in] length     Bytes of the wire form.
 * @param [in] bases      One for each source.
 * @param [in] num_bases  At least as many as the layout has sources; further ones are not used.
 * @return As @ref uct_mlx5_layout_set_sg; UCS_ERR_UNSUPPORTED (a wire form of a newer version).
 */
ucs_status_t uct_mlx5_layout_set_wire(uct_mlx5_layout_region_h region, unsigned flags, const void *wire, size_t length,
                                      const uct_mlx5_layout_base_t *bases, size_t num_bases);

/**
 * @brief Bring layouts into force that were set with WITH_POST_WR, by work requests on a queue pair of the caller.
 *
 * Requests posted to @e qp after this call may use the regions at once; requests on other queue pairs after a
 * completion: that of @e wr_id if @e signaled, or of any later request on @e qp.
 *
 * @param [in] qp           Of the same protection domain, in state RTS, created by mlx5dv_create_qp with
 *                          MLX5DV_QP_EX_WITH_RAW_WQE and max_inline_data of at least 832, which makes room for
 *                          the longest request, and with room for all keys of the regions and one request more. Not
 *                          posted to by another thread meanwhile.
 * @param [in] regions      Of one domain, each once.
 * @param [in] num_regions  How many, at least 1.
 * @param [in] wr_id        Of the completion, whose opcode is IBV_WC_DRIVER2.
 * @param [in] signaled     Whether there is a completion.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (also: nothing prepared), UCS_ERR_UNSUPPORTED (the queue pair takes no raw
 *         requests), UCS_ERR_NO_RESOURCE (no room in the send queue), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR (the device
 *         has failed). After an error nothing was posted, and the layouts are still prepared.
 */
ucs_status_t uct_mlx5_layout_post_bind(struct ibv_qp *qp, const uct_mlx5_layout_region_h *regions, size_t num_regions,
                                       uint64_t wr_id, int signaled);

/**
 * @brief Bring layouts into force that were set with WITH_POST_WR, in one batch on the domain's own queue pair, and
 * wait.
 *
 * @param [in] regions      Of one domain, each once.
 * @param [in] num_regions  How many, at least 1.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (nothing was changed), UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR or
 *         UCS_ERR_TIMED_OUT (the bind failed: none of the regions has a layout then).
 */
ucs_status_t uct_mlx5_layout_bind(const uct_mlx5_layout_region_h *regions, size_t num_regions);

/**
 * @brief Take the layouts away, in one batch: the keys cannot be used until they are set again.
 *
 * @param [in] regions      Of one domain, each once; also such as have no layout.
 * @param [in] num_regions  How many, at least 1.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (nothing was changed), UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR or
 *         UCS_ERR_TIMED_OUT (the device failed; none of the regions has a layout for the library).
 */
ucs_status_t uct_mlx5_layout_invalidate(const uct_mlx5_layout_region_h *regions, size_t num_regions);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
