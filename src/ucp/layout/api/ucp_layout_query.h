/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_query.h
 * Properties of a layout: attributes, blocks, text, serialized bytes. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_QUERY_H_
#define UCP_LAYOUT_QUERY_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** Whether some byte is described more than once. */
typedef enum ucp_layout_overlap {
    UCP_LAYOUT_OVERLAP_NONE, /**< Proven: no byte twice */
    UCP_LAYOUT_OVERLAP_SOME, /**< Proven: some byte twice. Sending is fine; receiving leaves that byte undefined */
    UCP_LAYOUT_OVERLAP_MAYBE /**< Undecided: the check would take too long */
} ucp_layout_overlap_t;

/** Fields of @ref ucp_layout_attr_t. */
enum ucp_layout_attr_field {
    UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH     = UCS_BIT(0), /**< packed_length */
    UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES       = UCS_BIT(1), /**< num_sources */
    UCP_LAYOUT_ATTR_FIELD_EXTENT            = UCS_BIT(2), /**< extent */
    UCP_LAYOUT_ATTR_FIELD_BLOCKS            = UCS_BIT(3), /**< num_blocks, min_block_length, max_block_length */
    UCP_LAYOUT_ATTR_FIELD_DEPTH             = UCS_BIT(4), /**< depth */
    UCP_LAYOUT_ATTR_FIELD_OVERLAP           = UCS_BIT(5), /**< overlap */
    UCP_LAYOUT_ATTR_FIELD_HASH              = UCS_BIT(6), /**< hash */
    UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH = UCS_BIT(7)  /**< serialized_length */
};

/** Attributes of a layout. */
typedef struct ucp_layout_attr {
    uint64_t             field_mask;        /**< Mask of fields to fill in, @ref ucp_layout_attr_field */
    size_t               packed_length;     /**< Bytes described; the length of a window */
    uint32_t             num_sources;       /**< Number of base addresses, at least 1 */
    ptrdiff_t            extent;            /**< Largest ub - lb of all sources, in bytes */
    size_t               num_blocks;        /**< Contiguous blocks; neighbours that touch count as one */
    size_t               min_block_length;  /**< Bytes of the shortest block */
    size_t               max_block_length;  /**< Bytes of the longest block */
    unsigned             depth;             /**< Loops nested in the normal form */
    ucp_layout_overlap_t overlap;           /**< Whether some byte is described more than once */
    uint64_t             hash;              /**< Hash of the content; the same in every process */
    size_t               serialized_length; /**< Bytes @ref ucp_layout_serialize writes */
} ucp_layout_attr_t;

/**
 * @brief Get attributes of a layout.
 *
 * @param [in]     layout  The layout.
 * @param [in,out] attr    field_mask selects the fields to fill in.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM for an unknown field bit, or UCS_ERR_NO_MEMORY (only for @e overlap).
 */
ucs_status_t ucp_layout_query(ucp_layout_h layout, ucp_layout_attr_t *attr);

/** Fields of @ref ucp_layout_bounds_t. */
enum ucp_layout_bounds_field {
    UCP_LAYOUT_BOUNDS_FIELD_TRUE_LB = UCS_BIT(0), /**< true_lb */
    UCP_LAYOUT_BOUNDS_FIELD_TRUE_UB = UCS_BIT(1), /**< true_ub */
    UCP_LAYOUT_BOUNDS_FIELD_LB      = UCS_BIT(2), /**< lb */
    UCP_LAYOUT_BOUNDS_FIELD_UB      = UCS_BIT(3)  /**< ub */
};

/** Where the bytes of one source lie, in bytes from its base address. All 0 for a source without bytes or bounds. */
typedef struct ucp_layout_bounds {
    uint64_t  field_mask; /**< Mask of fields to fill in, @ref ucp_layout_bounds_field */
    ptrdiff_t true_lb;    /**< First byte */
    ptrdiff_t true_ub;    /**< One past the last byte */
    ptrdiff_t lb;         /**< Lower bound; differs from true_lb if the user set it */
    ptrdiff_t ub;         /**< Upper bound; differs from true_ub if the user set it */
} ucp_layout_bounds_t;

/**
 * @brief Get the bounds of one source.
 *
 * @param [in]     layout  The layout.
 * @param [in]     source  The source, below num_sources.
 * @param [in,out] bounds  field_mask selects the fields to fill in.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit or a source that does not exist.
 */
ucs_status_t ucp_layout_query_bounds(ucp_layout_h layout, uint32_t source, ucp_layout_bounds_t *bounds);

/** What @ref ucp_layout_print shows. */
enum ucp_layout_print_flags {
    UCP_LAYOUT_PRINT_TEXT   = UCS_BIT(0), /**< One line in the grammar of @ref ucp_layout_parse (long lists are cut) */
    UCP_LAYOUT_PRINT_NORMAL = UCS_BIT(1), /**< The normal form, a line per node */
    UCP_LAYOUT_PRINT_PLAN   = UCS_BIT(2)  /**< The CPU kernels chosen */
};

/**
 * @brief Print a layout for people. The output may change between releases.
 *
 * @param [in] layout  The layout.
 * @param [in] stream  Where to print.
 * @param [in] flags   What to print, in this order: @ref ucp_layout_print_flags.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (an unknown flag), UCS_ERR_NO_MEMORY, or UCS_ERR_IO_ERROR (writing failed).
 */
ucs_status_t ucp_layout_print(ucp_layout_h layout, FILE *stream, unsigned flags);

/**
 * @brief Print for people what an mlx5 network card would make of a layout: the memory keys and their entries, the
 * rejected forms with reasons, and whether packing is the better choice. Without a layout, what the card says about
 * memory keys, what the library uses of it, and why where the two differ.
 *
 * @param [in] layout  The layout, or NULL.
 * @param [in] device  Name of a device (mlx5_0); NULL: the first device; with a layout "published": no device, but the
 *                     limits published for ConnectX-6.
 * @param [in] stream  Where to print.
 *
 * @return UCS_OK, or
 *         UCS_ERR_UNSUPPORTED  libuct_mlx5_layout or rdma-core is not installed, or the device cannot make such keys,
 *         UCS_ERR_NO_DEVICE    the device does not exist,
 *         UCS_ERR_NO_MEMORY    out of memory,
 *         UCS_ERR_IO_ERROR     writing failed.
 */
ucs_status_t ucp_layout_print_device(ucp_layout_h layout, const char *device, FILE *stream);

/**
 * Callback of @ref ucp_layout_walk for one block. It runs in the walking thread and must not throw.
 *
 * @param [in] arg     The argument of @ref ucp_layout_walk.
 * @param [in] source  Source of the block.
 * @param [in] offset  Bytes from the base address of that source to the block.
 * @param [in] length  Bytes of the block, at least 1.
 *
 * @return UCS_OK; any other status ends the walk.
 */
typedef ucs_status_t (*ucp_layout_walk_cb_t)(void *arg, uint32_t source, ptrdiff_t offset, size_t length);

/**
 * @brief Visit the blocks of a packed range in packed order.
 *
 * @param [in] layout  The layout.
 * @param [in] offset  Packed bytes to skip.
 * @param [in] length  Packed bytes to visit; the first and the last block are cut to the range.
 * @param [in] cb      Called for every block.
 * @param [in] arg     Passed to the callback.
 *
 * @return UCS_OK, the status of the callback that ended the walk, or UCS_ERR_INVALID_PARAM if the range
 *         [offset, offset + length) is not inside the packed length.
 */
ucs_status_t ucp_layout_walk(ucp_layout_h layout, size_t offset, size_t length, ucp_layout_walk_cb_t cb, void *arg);

/**
 * @brief Serialize a layout into bytes, to send or to store them. Later releases can read them, too.
 *
 * @param [in]     layout    The layout.
 * @param [out]    buffer    Receives the bytes.
 * @param [in,out] length_p  Bytes of the buffer; on success the bytes written.
 *
 * @return UCS_OK or UCS_ERR_BUFFER_TOO_SMALL (nothing is written; the attribute serialized_length has the size).
 */
ucs_status_t ucp_layout_serialize(ucp_layout_h layout, void *buffer, size_t *length_p);

/**
 * @brief Make a layout from the bytes of @ref ucp_layout_serialize. The bytes may be hostile.
 *
 * @param [in]  buffer    The bytes; not needed after the call.
 * @param [in]  length    Bytes of the buffer, which may be longer than the layout.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  the bytes are not a layout,
 *         UCS_ERR_UNSUPPORTED    the bytes are of a newer version,
 *         UCS_ERR_EXCEEDS_LIMIT  a limit of a layout is exceeded,
 *         UCS_ERR_NO_MEMORY      out of memory.
 */
ucs_status_t ucp_layout_deserialize(const void *buffer, size_t length, ucp_layout_h *layout_p);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
