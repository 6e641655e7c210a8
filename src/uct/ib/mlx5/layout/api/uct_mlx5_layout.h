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
 * <b>This is an interface of verbs.</b> It takes protection domains, queue pairs and elements of libibverbs, and gives
 * keys for their work requests. It has no UCT or UCP objects; programs on UCP need none of it, because there windows
 * become such keys by themselves (ucp_layout_map). Its name is that of the folder of UCX's tree that it extends.
 *
 * <b>At load</b> the library libuct_mlx5_layout needs libibverbs and libmlx5, with which it is linked, and of UCX only
 * libucs, for messages and options: it takes the one that the process has loaded, or opens libucs.so.0. It needs no
 * libuct or libucp, and a device only when one is asked for.
 *
 * <b>It is no part of libuct</b>, because it extends a UCX that is installed and stays unmodified, and serves programs
 * that use no UCT. UCX keeps the code of mlx5 in a module of its own, too, so that libuct needs no rdma-core; the same
 * holds for libucp_layout, which opens this library only where it is installed.
 *
 * A @e region is a memory key that shows bytes from many places as one contiguous range. It is created empty and can be
 * given layouts as often as needed: a list of pieces, interleaved and strided items of several sources, or any layout
 * of ucp_layout_create. Work requests take its key like that of a memory region: as lkey for a send that gathers and a
 * receive that scatters, as rkey for peers that read, write and modify atomically. The device walks the layout; no CPU
 * copies anything.
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
 * Conventions are those of UCX. The caller sets @e field_mask to the fields it has filled in, or asks for; an unknown
 * bit is UCS_ERR_INVALID_PARAM. A function returns a status and writes its outputs only on success. Whoever finds an
 * error logs it once, with the parameter and the limit. NULL for a required pointer is UCS_ERR_INVALID_PARAM. Lengths,
 * offsets, addresses and strides are in bytes. Lists of dimensions begin with the outermost (slowest) one. Words and
 * order are those of ucp_layout.h.
 *
 * Ownership: everything passed by pointer is copied during the call, unless stated otherwise.
 *
 * Thread safety: several threads may use a domain at once, but only one thread at a time a region. Any thread may call
 * a function that takes neither at any time.
 *
 * Order: a layout that is set without flags is in force everywhere when the call returns. Work requests that use the
 * region must have completed before the region gets another layout, is invalidated or destroyed: the device follows the
 * key when it executes a request, not when the request is posted.
 * @{
 */

/**
 * @brief Get the version of the loaded library, to compare with @ref UCT_MLX5_LAYOUT_API_MAJOR and @ref
 * UCT_MLX5_LAYOUT_API_MINOR.
 *
 * @param [out] major    Major version: changes when programs must be changed. May be NULL.
 * @param [out] minor    Minor version: changes when something is added. May be NULL.
 * @param [out] release  Release: changes when only errors are corrected. May be NULL.
 */
void uct_mlx5_layout_get_version(unsigned *major, unsigned *minor, unsigned *release);

/**
 * @brief Get the capabilities that the device of a context reports. Opening a domain tests which of them work, see @ref
 * uct_mlx5_layout_domain_query.
 *
 * @param [in]     context  An mlx5 device, opened with DEVX.
 * @param [in,out] attr     field_mask selects the fields to fill in.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (not an mlx5 device, no DEVX, or no such keys) or
 *         UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_query(struct ibv_context *context, uct_mlx5_layout_attr_t *attr);

/**
 * @brief Open a domain: a queue pair for binding, connected to itself, and room for keys.
 *
 * A self-test sends a few bytes through keys of every kind and back to the same queue pair. The domain works around
 * capabilities that do not work (lists instead of repeat blocks, another way to an address, no nesting), or refuses
 * them later. A device on which not even lists work is not supported.
 *
 * @param [in]  params    Parameters of the domain.
 * @param [out] domain_p  Receives the domain, to be closed with @ref uct_mlx5_layout_domain_close.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_NO_MEMORY or
 *         UCS_ERR_IO_ERROR (the device refused; the message has errno and syndrome).
 */
ucs_status_t uct_mlx5_layout_domain_open(const uct_mlx5_layout_domain_params_t *params,
                                         uct_mlx5_layout_domain_h              *domain_p);

/**
 * @brief Close a domain. No other thread may be using it.
 *
 * @param [in] domain  All its regions must be destroyed before. NULL does nothing.
 */
void uct_mlx5_layout_domain_close(uct_mlx5_layout_domain_h domain);

/**
 * @brief Get the capabilities of a domain that work.
 *
 * @param [in]     domain  The domain.
 * @param [in,out] attr    field_mask selects the fields to fill in.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_domain_query(uct_mlx5_layout_domain_h domain, uct_mlx5_layout_domain_attr_t *attr);

/**
 * @brief Pass an asynchronous event of the device (ibv_get_async_event) to a domain. Call it for every event.
 *
 * After IBV_EVENT_DEVICE_FATAL every call on the domain and its regions fails at once with UCS_ERR_IO_ERROR, also calls
 * that wait in other threads; destroying and closing still work. Other events do nothing. Without this call the domain
 * detects the failure when a bind has not completed for 10 ms. Any thread may call it at any time.
 *
 * @param [in] domain  The domain.
 * @param [in] event   The event, acknowledged or not.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_domain_handle_event(uct_mlx5_layout_domain_h domain, const struct ibv_async_event *event);

/**
 * @brief Print what a device would make of a layout: keys, entries, requests, the rejected forms with reasons, and
 * whether packing is the better choice.
 *
 * @param [in] device  Name of an mlx5 device (mlx5_0); NULL: the first device; "published": no device, but the limits
 *                     published for ConnectX-6.
 * @param [in] wire    The layout's wire form (ucp_layout_serialize).
 * @param [in] length  Bytes of the wire form.
 * @param [in] stream  Where to print.
 * @return UCS_OK, UCS_ERR_NO_DEVICE, UCS_ERR_UNSUPPORTED (see @ref uct_mlx5_layout_query), UCS_ERR_INVALID_PARAM,
 *         UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_explain(const char *device, const void *wire, size_t length, FILE *stream);

/**
 * @brief Print what a device says about memory keys, and what the library uses of it.
 *
 * The table has a line for each capability: its name, what the device says, what is used, and the reason where the two
 * differ; two or more spaces are between columns. The self-test of @ref uct_mlx5_layout_domain_open runs, and one key
 * is opened to other functions of the device.
 *
 * @param [in] device  Name of an mlx5 device (mlx5_0); NULL: the first device.
 * @param [in] stream  Where to print.
 * @return UCS_OK, UCS_ERR_NO_DEVICE, UCS_ERR_UNSUPPORTED (the device makes no such keys), UCS_ERR_INVALID_PARAM,
 *         UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_mlx5_layout_print_device(const char *device, FILE *stream);

/**
 * @brief Create an empty region: no layout, length 0, a key that cannot be used yet.
 *
 * @param [in]  domain    The domain of the key; must not be closed before the region is destroyed.
 * @param [in]  params    Parameters of the region; an empty @e field_mask selects all defaults.
 * @param [out] region_p  Receives the region, to be destroyed with @ref uct_mlx5_layout_region_destroy.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (an address, or IBV_ACCESS_REMOTE_ATOMIC, on a device that
 *         cannot), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR (the device refused, such as out of keys).
 */
ucs_status_t uct_mlx5_layout_region_create(uct_mlx5_layout_domain_h               domain,
                                           const uct_mlx5_layout_region_params_t *params,
                                           uct_mlx5_layout_region_h              *region_p);

/**
 * @brief Destroy a region. No work request may still use it, and no other region may lie over it.
 *
 * @param [in] region  NULL does nothing.
 */
void uct_mlx5_layout_region_destroy(uct_mlx5_layout_region_h region);

/**
 * @brief Get attributes of a region.
 *
 * @param [in]     region  The region.
 * @param [in,out] attr    field_mask selects the fields to fill in.
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_mlx5_layout_region_query(uct_mlx5_layout_region_h region, uct_mlx5_layout_region_attr_t *attr);

/**
 * @brief Check whether atomic operations on the 8 bytes at an address of a region work. They do not work if the bytes
 * are in several blocks or not aligned in memory: the device then fails the request with a remote access or invalid
 * request error.
 *
 * @param [in] region   A region with a layout.
 * @param [in] address  The first byte of the word, in the address space of the region.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (the message says what is wrong with the word: not aligned, split, misaligned
 *         in memory, outside) or UCS_ERR_UNSUPPORTED (the region was made without IBV_ACCESS_REMOTE_ATOMIC).
 */
ucs_status_t uct_mlx5_layout_region_check_atomic(uct_mlx5_layout_region_h region, uint64_t address);

/**
 * @brief Give the region a list of pieces, in sequence. A piece may be in another region, which must outlive the
 * layout.
 *
 * @param [in] region   Its current layout is replaced; it stays if the call fails before anything was posted.
 * @param [in] flags    @ref uct_mlx5_layout_set_flags
 * @param [in] num_sge  Number of pieces, 1 to max_num_sg and beyond (longer lists are nested).
 * @param [in] sg_list  Address, length and key of each piece. Pieces of length 0 are skipped; at least one must have
 *                      bytes.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_EXCEEDS_LIMIT (the message names it), UCS_ERR_NO_MEMORY,
 *         UCS_ERR_IO_ERROR or UCS_ERR_TIMED_OUT (the bind failed: the region has no layout then).
 */
ucs_status_t uct_mlx5_layout_set_sg(uct_mlx5_layout_region_h region, unsigned flags, size_t num_sge,
                                    const struct ibv_sge *sg_list);

/**
 * @brief Give the region an interleaved layout. With one item it is a strided layout of N dimensions.
 *
 * @param [in] region     As in @ref uct_mlx5_layout_set_sg.
 * @param [in] flags      @ref uct_mlx5_layout_set_flags
 * @param [in] num_items  Number of items, at least 1.
 * @param [in] items      In the order of each cycle.
 * @return As @ref uct_mlx5_layout_set_sg.
 */
ucs_status_t uct_mlx5_layout_set_interleaved(uct_mlx5_layout_region_h region, unsigned flags, size_t num_items,
                                             const uct_mlx5_layout_item_t *items);

/**
 * @brief Give the region any layout, in its wire form (ucp_layout_serialize). The bytes may be hostile: all of them are
 * checked, and a process logs at most ten errors of such calls a second.
 *
 * @param [in] region     As in @ref uct_mlx5_layout_set_sg.
 * @param [in] flags      @ref uct_mlx5_layout_set_flags
 * @param [in] wire       The wire form.
 * @param [in] length     Bytes of the wire form.
 * @param [in] bases      The base of each source.
 * @param [in] num_bases  At least the number of sources of the layout; further bases are ignored.
 * @return As @ref uct_mlx5_layout_set_sg; UCS_ERR_UNSUPPORTED (a wire form of a newer version).
 */
ucs_status_t uct_mlx5_layout_set_wire(uct_mlx5_layout_region_h region, unsigned flags, const void *wire, size_t length,
                                      const uct_mlx5_layout_base_t *bases, size_t num_bases);

/**
 * @brief Put layouts that were set with WITH_POST_WR into force, by work requests on a queue pair of the caller.
 *
 * Requests posted to @e qp after this call may use the regions at once. Requests on other queue pairs may use them
 * after a completion: that of @e wr_id if @e signaled is set, or that of any later request on @e qp. At most 64 layouts
 * of one region may be under way at once.
 *
 * @param [in] qp           A queue pair of the same protection domain, in state RTS, created by mlx5dv_create_qp with
 *                          MLX5DV_QP_EX_WITH_RAW_WQE and max_inline_data of at least 832, which makes room for the
 *                          longest request; a smaller one or another type of queue pair is refused. It needs room for
 *                          all keys of the regions and one more request. No other thread may post to it during the
 *                          call. Reads and receives into a region, of up to 64 bytes, need
 *                          MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE: libmlx5 would copy them to the region's address,
 *                          where no memory is (mlx5dv_create_mkey(3)).
 * @param [in] regions      Regions of one domain, each once.
 * @param [in] num_regions  Number of regions, at least 1.
 * @param [in] wr_id        Number of the completion, whose opcode is IBV_WC_DRIVER2.
 * @param [in] signaled     Whether there is a completion.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (also: nothing prepared), UCS_ERR_UNSUPPORTED (the queue pair takes no raw
 *         requests), UCS_ERR_NO_RESOURCE (no room in the send queue), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR (the device
 *         has failed). After an error nothing was posted, and the layouts are still prepared.
 */
ucs_status_t uct_mlx5_layout_post_bind(struct ibv_qp *qp, const uct_mlx5_layout_region_h *regions, size_t num_regions,
                                       uint64_t wr_id, int signaled);

/**
 * @brief Put layouts that were set with WITH_POST_WR into force, in one batch on the domain's own queue pair, and wait.
 *
 * @param [in] regions      Regions of one domain, each once.
 * @param [in] num_regions  Number of regions, at least 1.
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (nothing was changed), UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR or
 *         UCS_ERR_TIMED_OUT (the bind failed: none of the regions has a layout then).
 */
ucs_status_t uct_mlx5_layout_bind(const uct_mlx5_layout_region_h *regions, size_t num_regions);

/**
 * @brief Remove the layouts of regions in one batch. The keys cannot be used until a layout is set again.
 *
 * @param [in] regions      Regions of one domain, each once, with or without a layout.
 * @param [in] num_regions  Number of regions, at least 1.
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
