/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCP_LAYOUT_H_
#define UCP_LAYOUT_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucp/api/ucp.h>
#include "ucp_layout_failure.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @defgroup UCP_LAYOUT Non-contiguous memory as one UCP buffer
 *
 * A @e layout describes where bytes are, without addresses. A @e window is a layout applied to base addresses: a range
 * of reserved addresses, as long as the packed layout, that shows the described bytes in packed order. The window
 * address goes into the stock UCP calls - ucp_tag_send_nbx, ucp_stream_send_nbx, ucp_am_send_nbx, ucp_put_nbx,
 * ucp_get_nbx, the receive calls, ucp_rkey_pack - as any other buffer. No byte is packed by the application, and the
 * CPU cannot access a window itself. A @e plan is a layout compiled for the CPU, for packing without UCP.
 *
 * @code{.c}
 * ucp_layout_map_params_t map;
 * ucp_layout_window_attr_t attr;
 * ucp_layout_window_h window;
 * void *base = &matrix[0][5];
 *
 * map.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
 * map.bases      = &base;
 * map.num_bases  = 1;
 * ucp_layout_strided(sizeof(double), 1024, sizeof(matrix[0]), &map.layout);
 * ucp_layout_map(context, &map, &window);
 *
 * attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH;
 * ucp_layout_window_query(window, &attr);
 * ucp_tag_send_nbx(ep, attr.address, attr.length, tag, &request_param);
 * @endcode
 *
 * <b>Conventions</b> are those of UCP.
 * - The caller sets @e field_mask to the fields it filled in, or asks for. Other fields are neither read nor written.
 *   An unknown bit is UCS_ERR_INVALID_PARAM.
 * - A function writes its outputs only when it returns UCS_OK, and leaves nothing behind otherwise.
 * - Whoever finds an error logs it once, at level error, with the name of the parameter and of the limit. A pointer
 *   that is NULL where that is not allowed is UCS_ERR_INVALID_PARAM, from every function.
 * - All sizes, offsets, strides and lengths are bytes. Lists of dimensions have the outermost one first. Sources are
 *   numbered from 0.
 * - Handles of layouts and plans are counted or owned pointers: using one after it was destroyed is undefined. Handles
 *   of windows are never used twice: a stale one gives UCS_ERR_INVALID_PARAM.
 * - Functions are thread safe unless they say otherwise. None may be called from a signal handler.
 *
 * Both peers of a transfer that involves a window need this library. To stock UCX a window is memory of type
 * UCS_MEMORY_TYPE_RDMA, for which it has no transport: short messages from a window still reach a peer without the
 * library, longer ones (rendezvous) and remote access do not, and may never complete.
 * @{
 */

/** Version of this header: changes when something is removed or means something else. */
#define UCP_LAYOUT_API_MAJOR 1
/** Version of this header: changes when something is added. */
#define UCP_LAYOUT_API_MINOR 0
/** A version as one number, to be compared with others made by this macro: @e _major, then @e _minor. */
#define UCP_LAYOUT_API_VERSION(_major, _minor) (((_major) << 24) | ((_minor) << 16))

/**
 * @brief Version of the library that was loaded, which may be newer than the header.
 *
 * @param [out] major_version   Major version, or NULL if it is not wanted.
 * @param [out] minor_version   Minor version, or NULL if it is not wanted.
 * @param [out] release_number  Release of that minor version, or NULL if it is not wanted.
 */
void ucp_layout_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number);

/**
 * @brief Version of the library that was loaded, as text: "1.0.0".
 *
 * @return The text, which stays for ever.
 */
const char *ucp_layout_get_version_string(void);

/** Limits of one layout. Passing one gives UCS_ERR_EXCEEDS_LIMIT and a message that names it. */
enum {
    UCP_LAYOUT_MAX_DEPTH   = 16,      /**< Loops nested above a block, and dimensions of one descriptor */
    UCP_LAYOUT_MAX_SOURCES = 1 << 16, /**< Base addresses */
    UCP_LAYOUT_MAX_ENTRIES = 1 << 22  /**< List entries, over all loops */
};
/** Largest packed length, and largest distance of a byte from its base address, in bytes. */
#define UCP_LAYOUT_MAX_LENGTH (1ULL << 46)

/** Handle of a layout: immutable, counted. */
typedef struct ucp_layout *ucp_layout_h;

/** Handle of a window, of one call of @ref ucp_layout_map. Not an address: nothing is behind it. */
typedef struct ucp_layout_window *ucp_layout_window_h;

/** Handle of a plan: immutable. */
typedef struct ucp_layout_plan *ucp_layout_plan_h;

/** What a layout is made from. */
typedef enum ucp_layout_kind {
    UCP_LAYOUT_KIND_CONTIG,     /**< @e count elements in a row */
    UCP_LAYOUT_KIND_STRIDED,    /**< An element repeated in N dimensions: MPI_Type_create_hvector, nested */
    UCP_LAYOUT_KIND_IOV,        /**< A list of elements at offsets: MPI_Type_create_struct / hindexed */
    UCP_LAYOUT_KIND_INTERLEAVED /**< Cycles that take some elements of each source in turn */
} ucp_layout_kind_t;

/** What is repeated: @e length contiguous bytes, or a whole layout. */
typedef struct ucp_layout_element {
    size_t       length; /**< Bytes; ignored when @e layout is set. 0 is allowed: no bytes */
    ucp_layout_h layout; /**< Nested layout, or NULL. The new layout keeps what it needs of it, so it may be destroyed
                              at once. Its source numbers are added to the one given beside the element */
} ucp_layout_element_t;

/** One dimension. */
typedef struct ucp_layout_dim {
    size_t    count;  /**< Elements in this dimension; 0 makes the layout empty */
    ptrdiff_t stride; /**< Bytes from one element to the next; may be negative or 0 */
} ucp_layout_dim_t;

/** One part of @ref UCP_LAYOUT_KIND_IOV. */
typedef struct ucp_layout_iov {
    uint32_t             source;  /**< Which base address, below UCP_LAYOUT_MAX_SOURCES */
    ptrdiff_t            offset;  /**< Bytes from that base address */
    ucp_layout_element_t element; /**< What is there */
} ucp_layout_iov_t;

/**
 * One source of @ref UCP_LAYOUT_KIND_INTERLEAVED. Every cycle takes the next @e repeat elements, enumerated by @e dims
 * with the last dimension fastest. Sources may differ in @e repeat and in total; one that has run out is skipped.
 */
typedef struct ucp_layout_interleaved {
    uint32_t                source;   /**< Which base address, below UCP_LAYOUT_MAX_SOURCES */
    ptrdiff_t               offset;   /**< Bytes from that base address to the first element */
    ucp_layout_element_t    element;  /**< What is taken */
    size_t                  repeat;   /**< Elements per cycle, at least 1 */
    const ucp_layout_dim_t *dims;     /**< Where the elements are, outermost dimension first */
    unsigned                num_dims; /**< 1 .. UCP_LAYOUT_MAX_DEPTH */
} ucp_layout_interleaved_t;

/** Fields of @ref ucp_layout_params_t. */
enum ucp_layout_params_field {
    UCP_LAYOUT_PARAM_FIELD_KIND        = UCS_BIT(0), /**< kind (required) */
    UCP_LAYOUT_PARAM_FIELD_ELEMENT     = UCS_BIT(1), /**< element (required by CONTIG and STRIDED) */
    UCP_LAYOUT_PARAM_FIELD_COUNT       = UCS_BIT(2), /**< count (CONTIG; default 1) */
    UCP_LAYOUT_PARAM_FIELD_DIMS        = UCS_BIT(3), /**< dims, num_dims (required by STRIDED) */
    UCP_LAYOUT_PARAM_FIELD_IOV         = UCS_BIT(4), /**< iov, num_iov (required by IOV) */
    UCP_LAYOUT_PARAM_FIELD_INTERLEAVED = UCS_BIT(5), /**< interleaved, num_interleaved (required by INTERLEAVED) */
    UCP_LAYOUT_PARAM_FIELD_EXTENT      = UCS_BIT(6)  /**< lb, extent (default: those of the bytes) */
};

/** Parameters of @ref ucp_layout_create. Fields that the kind does not use are ignored. */
typedef struct ucp_layout_params {
    uint64_t                        field_mask;      /**< Mask of valid fields, @ref ucp_layout_params_field */
    ucp_layout_kind_t               kind;            /**< What the layout is made from */
    ucp_layout_element_t            element;         /**< What is repeated */
    size_t                          count;           /**< Elements; they follow each other at the element's extent */
    const ucp_layout_dim_t         *dims;            /**< Outermost (slowest) dimension first */
    unsigned                        num_dims;        /**< 0 .. UCP_LAYOUT_MAX_DEPTH; 0: the element once */
    const ucp_layout_iov_t         *iov;             /**< In packed order */
    size_t                          num_iov;         /**< 0 makes the layout empty */
    const ucp_layout_interleaved_t *interleaved;     /**< In the order of each cycle */
    size_t                          num_interleaved; /**< 0 makes the layout empty */
    ptrdiff_t                       lb;              /**< Lower bound of source 0, as in MPI_Type_create_resized */
    size_t                          extent;          /**< Distance of consecutive elements: CONTIG, and counts above 1
                                                          of datatypes and plans */
} ucp_layout_params_t;

/**
 * @brief Create a layout.
 *
 * @param [in]  params    What it is. Everything is copied.
 * @param [out] layout_p  The layout, to be released with @ref ucp_layout_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong,
 *         UCS_ERR_EXCEEDS_LIMIT  a limit of a layout is passed,
 *         UCS_ERR_NO_MEMORY      out of memory.
 *
 * @note Cost: linear in the number of list entries.
 */
ucs_status_t ucp_layout_create(const ucp_layout_params_t *params, ucp_layout_h *layout_p);

/**
 * @brief Create a layout of contiguous bytes.
 *
 * @param [in]  length    Bytes; 0 is allowed.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
static inline ucs_status_t ucp_layout_contig(size_t length, ucp_layout_h *layout_p)
{
    ucp_layout_params_t params;

    params.field_mask     = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT;
    params.kind           = UCP_LAYOUT_KIND_CONTIG;
    params.element.length = length;
    params.element.layout = NULL;
    return ucp_layout_create(&params, layout_p);
}

/**
 * @brief Create a layout of blocks of one length in several dimensions: a tile, a face of a grid.
 *
 * @param [in]  length    Bytes of a block.
 * @param [in]  dims      Where the blocks are, outermost (slowest) dimension first. Copied.
 * @param [in]  num_dims  Dimensions, 0 .. UCP_LAYOUT_MAX_DEPTH; 0: the block once.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
static inline ucs_status_t ucp_layout_strided_nd(size_t length, const ucp_layout_dim_t *dims, unsigned num_dims,
                                                 ucp_layout_h *layout_p)
{
    ucp_layout_params_t params;

    params.field_mask     = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS;
    params.kind           = UCP_LAYOUT_KIND_STRIDED;
    params.element.length = length;
    params.element.layout = NULL;
    params.dims           = dims;
    params.num_dims       = num_dims;
    return ucp_layout_create(&params, layout_p);
}

/**
 * @brief Create a layout of blocks of one length at one distance: a column of a matrix.
 *
 * @param [in]  length    Bytes of a block.
 * @param [in]  count     Blocks; 0 makes the layout empty.
 * @param [in]  stride    Bytes from the start of a block to the start of the next; may be negative or 0.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
static inline ucs_status_t ucp_layout_strided(size_t length, size_t count, ptrdiff_t stride, ucp_layout_h *layout_p)
{
    ucp_layout_dim_t dim;

    dim.count  = count;
    dim.stride = stride;
    return ucp_layout_strided_nd(length, &dim, 1, layout_p);
}

/**
 * @brief Create a layout of parts at any offsets of any sources, one after another.
 *
 * @param [in]  parts      The parts in packed order. Copied.
 * @param [in]  num_parts  Parts; 0 makes the layout empty.
 * @param [out] layout_p   As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
static inline ucs_status_t ucp_layout_concatenate(const ucp_layout_iov_t *parts, size_t num_parts,
                                                  ucp_layout_h *layout_p)
{
    ucp_layout_params_t params;

    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV;
    params.kind       = UCP_LAYOUT_KIND_IOV;
    params.iov        = parts;
    params.num_iov    = num_parts;
    return ucp_layout_create(&params, layout_p);
}

/**
 * @brief Create a layout that takes some elements of each source in turn: records out of arrays.
 *
 * @param [in]  sources      The sources in the order of each cycle. Copied, their dimensions too.
 * @param [in]  num_sources  Sources; 0 makes the layout empty.
 * @param [out] layout_p     As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
static inline ucs_status_t ucp_layout_interleave(const ucp_layout_interleaved_t *sources, size_t num_sources,
                                                 ucp_layout_h *layout_p)
{
    ucp_layout_params_t params;

    params.field_mask      = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_INTERLEAVED;
    params.kind            = UCP_LAYOUT_KIND_INTERLEAVED;
    params.interleaved     = sources;
    params.num_interleaved = num_sources;
    return ucp_layout_create(&params, layout_p);
}

/**
 * @brief Create a layout from text, for tools and configuration: "strided(4096,64,128)".
 *
 * @param [in]  text      The text, ended by a 0 byte. The grammar is in the manual page of ucx_layout_info(1).
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create; the message names the column.
 */
ucs_status_t ucp_layout_parse(const char *text, ucp_layout_h *layout_p);

/**
 * @brief Release a layout. Windows, plans, datatypes and layouts made from it stay valid.
 *
 * @param [in] layout  A layout, or NULL (nothing happens).
 */
void ucp_layout_destroy(ucp_layout_h layout);

/** Whether some byte is described more than once. */
typedef enum ucp_layout_overlap {
    UCP_LAYOUT_OVERLAP_NONE, /**< Proven: no byte twice */
    UCP_LAYOUT_OVERLAP_SOME, /**< Proven: some byte twice. Sending is fine; receiving leaves that byte undefined */
    UCP_LAYOUT_OVERLAP_MAYBE /**< Not decided, the check would take too long */
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
    size_t               packed_length;     /**< Bytes described, the length of a window */
    uint32_t             num_sources;       /**< Base addresses to give, at least 1 */
    ptrdiff_t            extent;            /**< Largest ub - lb of all sources, in bytes */
    size_t               num_blocks;        /**< Contiguous blocks, after merging neighbours */
    size_t               min_block_length;  /**< Bytes of the shortest block */
    size_t               max_block_length;  /**< Bytes of the longest block */
    unsigned             depth;             /**< Loops nested in the normal form */
    ucp_layout_overlap_t overlap;           /**< Whether some byte is described more than once */
    uint64_t             hash;              /**< Of the content; the same in every process */
    size_t               serialized_length; /**< Bytes @ref ucp_layout_serialize writes */
} ucp_layout_attr_t;

/**
 * @brief Ask for attributes of a layout.
 *
 * @param [in]     layout  The layout.
 * @param [in,out] attr    field_mask says what is asked for; those fields are filled in.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit.
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
    ptrdiff_t lb;         /**< Lower bound, differs from true_lb when set by the user */
    ptrdiff_t ub;         /**< Upper bound, differs from true_ub when set by the user */
} ucp_layout_bounds_t;

/**
 * @brief Ask for the bounds of one source.
 *
 * @param [in]     layout  The layout.
 * @param [in]     source  The source, below num_sources.
 * @param [in,out] bounds  field_mask says what is asked for; those fields are filled in.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit or a source that is not there.
 */
ucs_status_t ucp_layout_query_bounds(ucp_layout_h layout, uint32_t source, ucp_layout_bounds_t *bounds);

/** What @ref ucp_layout_print shows. */
enum ucp_layout_print_flags {
    UCP_LAYOUT_PRINT_TEXT   = UCS_BIT(0), /**< One line in the grammar of @ref ucp_layout_parse (long lists are cut) */
    UCP_LAYOUT_PRINT_NORMAL = UCS_BIT(1), /**< The normal form, a line per node */
    UCP_LAYOUT_PRINT_PLAN   = UCS_BIT(2)  /**< The CPU kernels chosen */
};

/**
 * @brief Print a layout for people. The form may change between releases.
 *
 * @param [in] layout  The layout.
 * @param [in] stream  Where to print.
 * @param [in] flags   What to print, in this order: @ref ucp_layout_print_flags.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (an unknown flag), UCS_ERR_NO_MEMORY, or UCS_ERR_IO_ERROR (writing failed).
 */
ucs_status_t ucp_layout_print(ucp_layout_h layout, FILE *stream, unsigned flags);

/**
 * @brief Print, for people, what an mlx5 network card would make of a layout: the memory keys and their entries, which
 * forms were rejected and why, and whether packing is the better choice.
 *
 * @param [in] layout  The layout.
 * @param [in] device  Name of a device (mlx5_0); NULL: the first one; "published": no device is looked for, the limits
 *                     are those published for ConnectX-6.
 * @param [in] stream  Where to print.
 *
 * @return UCS_OK, or
 *         UCS_ERR_UNSUPPORTED  libuct_mlx5_layout or rdma-core is not installed, or the device makes no such keys,
 *         UCS_ERR_NO_DEVICE    there is no such device,
 *         UCS_ERR_NO_MEMORY    out of memory,
 *         UCS_ERR_IO_ERROR     writing failed.
 */
ucs_status_t ucp_layout_print_device(ucp_layout_h layout, const char *device, FILE *stream);

/**
 * Callback of @ref ucp_layout_walk for one block, called in the walking thread. It must not throw.
 *
 * @param [in] arg     From @ref ucp_layout_walk.
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
 * @brief Write a layout as bytes, to send it to another process or to keep it. Later releases can read them, too.
 *
 * @param [in]     layout    The layout.
 * @param [out]    buffer    Receives the bytes.
 * @param [in,out] length_p  Bytes of the buffer; on success the bytes written.
 *
 * @return UCS_OK or UCS_ERR_BUFFER_TOO_SMALL (nothing is written; ask for serialized_length).
 */
ucs_status_t ucp_layout_serialize(ucp_layout_h layout, void *buffer, size_t *length_p);

/**
 * @brief Make a layout from what @ref ucp_layout_serialize wrote. The bytes may be hostile.
 *
 * @param [in]  buffer    The bytes; not needed after the call.
 * @param [in]  length    Bytes of the buffer; more than the layout has are allowed.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  the bytes are not a layout,
 *         UCS_ERR_UNSUPPORTED    they are of a newer version,
 *         UCS_ERR_EXCEEDS_LIMIT  a limit of a layout is passed,
 *         UCS_ERR_NO_MEMORY      out of memory.
 */
ucs_status_t ucp_layout_deserialize(const void *buffer, size_t length, ucp_layout_h *layout_p);

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
 * with any stock handle: ucp_cleanup then warns, or ends the process if UCX was built with assertions. Where it returns,
 * the window has lost that handle, whose few hundred bytes are never freed, and can be used and unmapped as before.
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

/** What the CPU of this process moved through a window since it was made. What peers move in memory that they map, or by
 *  the kernel, is not in it. Counted without a lock: of operations of several threads at a time some may be missing.
 *  Mappings that share a window share its statistics, also one after the other. */
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
                                   ucp_rkey_pack and ucp_mem_query, not for ucp_mem_unmap. NULL without a context, and
                                   after it was detached or its context cleaned up */
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
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window), UCS_ERR_NO_DEVICE (as @ref ucp_layout_map) or UCS_ERR_NO_MEMORY.
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

/** Fields of @ref ucp_layout_plan_params_t. */
enum ucp_layout_plan_params_field {
    UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT = UCS_BIT(0) /**< count (default: 1) */
};

/** Parameters of @ref ucp_layout_plan_create. */
typedef struct ucp_layout_plan_params {
    uint64_t field_mask; /**< Mask of valid fields, @ref ucp_layout_plan_params_field */
    size_t   count;      /**< Layouts, one after another at the extent, in every source; 0: no bytes */
} ucp_layout_plan_params_t;

/**
 * @brief Compile a layout for the CPU: the engine under windows, for memory to memory copies without UCP.
 *
 * @param [in]  layout  May be destroyed after the call.
 * @param [in]  params  How it is used, or NULL for the defaults.
 * @param [out] plan_p  The plan, to be released with @ref ucp_layout_plan_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is wrong,
 *         UCS_ERR_EXCEEDS_LIMIT  @e count layouts pass a limit of a layout,
 *         UCS_ERR_NO_MEMORY      out of memory.
 */
ucs_status_t ucp_layout_plan_create(ucp_layout_h layout, const ucp_layout_plan_params_t *params,
                                    ucp_layout_plan_h *plan_p);

/**
 * @brief Release a plan, which no call may be using.
 *
 * @param [in] plan  A plan, or NULL (nothing happens).
 */
void ucp_layout_plan_destroy(ucp_layout_plan_h plan);

/** Fields of @ref ucp_layout_plan_attr_t. */
enum ucp_layout_plan_attr_field {
    UCP_LAYOUT_PLAN_ATTR_FIELD_PACKED_LENGTH = UCS_BIT(0), /**< packed_length */
    UCP_LAYOUT_PLAN_ATTR_FIELD_NUM_SOURCES   = UCS_BIT(1), /**< num_sources */
    UCP_LAYOUT_PLAN_ATTR_FIELD_COUNT         = UCS_BIT(2)  /**< count */
};

/** Attributes of a plan. */
typedef struct ucp_layout_plan_attr {
    uint64_t field_mask;    /**< Mask of fields to fill in, @ref ucp_layout_plan_attr_field */
    size_t   packed_length; /**< Bytes of all @e count layouts */
    uint32_t num_sources;   /**< Base addresses to give, at least 1 */
    size_t   count;         /**< Layouts, one after another */
} ucp_layout_plan_attr_t;

/**
 * @brief Ask for attributes of a plan.
 *
 * @param [in]     plan  The plan.
 * @param [in,out] attr  field_mask says what is asked for; those fields are filled in.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit.
 */
ucs_status_t ucp_layout_plan_query(ucp_layout_plan_h plan, ucp_layout_plan_attr_t *attr);

/**
 * @brief Copy a packed range out of described memory into contiguous memory.
 *
 * Any number of threads may run a plan. It takes no lock and allocates nothing. The contiguous memory must not overlap
 * the described bytes.
 *
 * @param [in]  plan       The plan.
 * @param [in]  bases      Base address of every source. A NULL is only looked for where there is one source.
 * @param [in]  num_bases  num_sources of the plan.
 * @param [in]  offset     First packed byte.
 * @param [in]  length     Packed bytes; 0: nothing happens.
 * @param [out] dst        Receives @e length bytes.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM: a NULL, a wrong num_bases, or a range that is not inside the packed length.
 */
ucs_status_t ucp_layout_plan_gather(ucp_layout_plan_h plan, void *const *bases, uint32_t num_bases, size_t offset,
                                    size_t length, void *dst);

/**
 * @brief Copy contiguous memory into a packed range of described memory.
 *
 * As @ref ucp_layout_plan_gather, the other way. Of bytes that are described twice one value stays, undefined which. Two
 * threads must not write the same byte.
 *
 * @param [in] plan       The plan.
 * @param [in] bases      Base address of every source.
 * @param [in] num_bases  num_sources of the plan.
 * @param [in] offset     First packed byte.
 * @param [in] length     Packed bytes; 0: nothing happens.
 * @param [in] src        @e length bytes.
 *
 * @return As @ref ucp_layout_plan_gather.
 */
ucs_status_t ucp_layout_plan_scatter(ucp_layout_plan_h plan, void *const *bases, uint32_t num_bases, size_t offset,
                                     size_t length, const void *src);

/**
 * @brief Copy a packed range of one described memory into a packed range of another one, in one pass over each.
 *
 * As @ref ucp_layout_plan_gather and @ref ucp_layout_plan_scatter. The two memories must not overlap.
 *
 * @param [in] dst_plan       Describes the memory to write.
 * @param [in] dst_bases      Base address of every source of dst_plan.
 * @param [in] num_dst_bases  num_sources of dst_plan.
 * @param [in] dst_offset     First packed byte to write.
 * @param [in] src_plan       Describes the memory to read.
 * @param [in] src_bases      Base address of every source of src_plan.
 * @param [in] num_src_bases  num_sources of src_plan.
 * @param [in] src_offset     First packed byte to read.
 * @param [in] length         Packed bytes; 0: nothing happens.
 *
 * @return As @ref ucp_layout_plan_gather.
 */
ucs_status_t ucp_layout_plan_copy(ucp_layout_plan_h dst_plan, void *const *dst_bases, uint32_t num_dst_bases,
                                  size_t dst_offset, ucp_layout_plan_h src_plan, void *const *src_bases,
                                  uint32_t num_src_bases, size_t src_offset, size_t length);

/**
 * @brief @ref ucp_layout_plan_gather with a plan that the layout keeps: the first call that needs it compiles it.
 *
 * @param [in]  layout     The layout.
 * @param [in]  bases      Base address of every source.
 * @param [in]  num_bases  num_sources of the layout.
 * @param [in]  offset     First packed byte.
 * @param [in]  length     Packed bytes; 0: nothing happens.
 * @param [out] dst        Receives @e length bytes.
 *
 * @return As @ref ucp_layout_plan_gather, or UCS_ERR_NO_MEMORY when the plan could not be compiled.
 */
ucs_status_t ucp_layout_gather(ucp_layout_h layout, void *const *bases, uint32_t num_bases, size_t offset,
                               size_t length, void *dst);

/**
 * @brief @ref ucp_layout_plan_scatter with a plan that the layout keeps: the first call that needs it compiles it.
 *
 * @param [in] layout     The layout.
 * @param [in] bases      Base address of every source.
 * @param [in] num_bases  num_sources of the layout.
 * @param [in] offset     First packed byte.
 * @param [in] length     Packed bytes; 0: nothing happens.
 * @param [in] src        @e length bytes.
 *
 * @return As @ref ucp_layout_gather.
 */
ucs_status_t ucp_layout_scatter(ucp_layout_h layout, void *const *bases, uint32_t num_bases, size_t offset,
                                size_t length, const void *src);

/**
 * @brief Make a UCP datatype of a layout, for tag, stream and active messages, without mapping anything.
 *
 * With it the @e buffer of a call is the base address and @e count the number of layouts, one after another at the
 * extent. A layout of several sources takes a pointer to the array of their base addresses (void *const *) as buffer;
 * the array must stay as it is until the operation has completed.
 *
 * UCP gives a datatype no way to refuse an operation. One that cannot start - a NULL buffer, more than 2^64 bytes, no
 * memory for some 50 bytes of state - logs an error; a send then sends an empty message and completes with UCS_OK, a
 * receive takes no byte and ends with UCS_ERR_MESSAGE_TRUNCATED.
 *
 * @param [in]  layout      May be destroyed after the call.
 * @param [out] datatype_p  A generic datatype, to be released with @ref ucp_layout_datatype_destroy after all
 *                          operations on it.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_datatype_create(ucp_layout_h layout, ucp_datatype_t *datatype_p);

/**
 * @brief Release a datatype made by @ref ucp_layout_datatype_create. Any other is left alone, with an error logged.
 *
 * @param [in] datatype  The datatype, or 0 (nothing happens).
 */
void ucp_layout_datatype_destroy(ucp_datatype_t datatype);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
