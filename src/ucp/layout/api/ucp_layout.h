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
 * CPU cannot access a window itself.
 *
 * @code{.c}
 * ucp_layout_dim_t dim          = {.count = 1024, .stride = 8192};
 * ucp_layout_params_t params    = {.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT |
 *                                                UCP_LAYOUT_PARAM_FIELD_DIMS,
 *                                  .kind       = UCP_LAYOUT_KIND_STRIDED,
 *                                  .element    = {.length = 8},
 *                                  .dims       = &dim, .num_dims = 1};
 * ucp_layout_create(&params, &column);
 * ucp_layout_map_params_t map   = {.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES,
 *                                  .layout = column, .bases = &matrix, .num_bases = 1};
 * ucp_layout_map(context, &map, &memh, &window);
 * ucp_tag_send_nbx(ep, window, 8 * 1024, tag, &request_param);
 * @endcode
 *
 * Conventions are those of UCP: the caller sets @e field_mask to the fields it filled in; a function returns a status
 * and writes its outputs only on success; whoever finds an error logs it once, at level error. Sizes, offsets and
 * strides are bytes.
 *
 * Both peers of a transfer that involves a window need this library. To stock UCX a window is memory of type
 * UCS_MEMORY_TYPE_RDMA, for which it has no transport: short messages from a window still reach a peer without the
 * library, longer ones (rendezvous) and remote access do not, and may never complete.
 * @{
 */

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
    uint32_t             source;  /**< Which base address, 0 based */
    ptrdiff_t            offset;  /**< Bytes from that base address */
    ucp_layout_element_t element; /**< What is there */
} ucp_layout_iov_t;

/** One source of @ref UCP_LAYOUT_KIND_INTERLEAVED. Every cycle takes the next @e repeat elements, enumerated by @e dims
 *  with the last dimension fastest. Sources may differ in @e repeat and in total; one that has run out is skipped. */
typedef struct ucp_layout_interleaved {
    uint32_t                source;   /**< Which base address, 0 based */
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

/** Parameters of @ref ucp_layout_create. */
typedef struct ucp_layout_params {
    uint64_t                        field_mask;      /**< Mask of valid fields, @ref ucp_layout_params_field; others are
                                                     ignored. An unknown bit is UCS_ERR_INVALID_PARAM */
    ucp_layout_kind_t               kind;            /**< What it is made from (required) */
    ucp_layout_element_t            element;         /**< What is repeated */
    size_t                          count;           /**< Elements; they follow each other at the element's extent */
    const ucp_layout_dim_t         *dims;            /**< Outermost (slowest) dimension first */
    unsigned                        num_dims;        /**< 0 .. UCP_LAYOUT_MAX_DEPTH; 0: the element once */
    const ucp_layout_iov_t         *iov;             /**< In packed order */
    size_t                          num_iov;         /**< 0 makes the layout empty */
    const ucp_layout_interleaved_t *interleaved;     /**< In the order of each cycle */
    size_t                          num_interleaved; /**< 0 makes the layout empty */
    ptrdiff_t                       lb;              /**< Lower bound of source 0, as in MPI_Type_create_resized */
    size_t                          extent; /**< Distance of consecutive elements: CONTIG, datatypes with count > 1 */
} ucp_layout_params_t;

/**
 * @brief Create a layout.
 *
 * @param [in]  params    What it is. Everything is copied.
 * @param [out] layout_p  The layout, to be released with @ref ucp_layout_destroy.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (a message names the field), UCS_ERR_EXCEEDS_LIMIT (a message names the limit)
 *         or UCS_ERR_NO_MEMORY.
 *
 * @note Thread safe. Cost: linear in the number of list entries.
 */
ucs_status_t ucp_layout_create(const ucp_layout_params_t *params, ucp_layout_h *layout_p);

/**
 * @brief Create a layout from text, for tools and configuration: "strided(4096,64,128)".
 *
 * The grammar is in the manual page of ucx_layout_info(1).
 *
 * @return As @ref ucp_layout_create; UCS_ERR_INVALID_PARAM names the column.
 */
ucs_status_t ucp_layout_parse(const char *text, ucp_layout_h *layout_p);

/**
 * @brief Release a layout. Windows, datatypes and layouts made from it stay valid.
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
    UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH = UCS_BIT(0), /**< packed_length */
    UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES   = UCS_BIT(1), /**< num_sources */
    UCP_LAYOUT_ATTR_FIELD_BOUNDS        = UCS_BIT(2), /**< source (in), true_lb, true_ub, lb, ub */
    UCP_LAYOUT_ATTR_FIELD_EXTENT        = UCS_BIT(3), /**< extent */
    UCP_LAYOUT_ATTR_FIELD_BLOCKS        = UCS_BIT(4), /**< num_blocks, min_block, max_block */
    UCP_LAYOUT_ATTR_FIELD_DEPTH         = UCS_BIT(5), /**< depth */
    UCP_LAYOUT_ATTR_FIELD_OVERLAP       = UCS_BIT(6), /**< overlap */
    UCP_LAYOUT_ATTR_FIELD_HASH          = UCS_BIT(7), /**< hash */
    UCP_LAYOUT_ATTR_FIELD_WIRE_LENGTH   = UCS_BIT(8)  /**< wire_length */
};

/** Attributes of a layout. */
typedef struct ucp_layout_attr {
    uint64_t             field_mask;    /**< Mask of fields to fill in, @ref ucp_layout_attr_field */
    size_t               packed_length; /**< Bytes described, the length of a window */
    uint32_t             num_sources;   /**< Base addresses to give, at least 1 */
    uint32_t             source;        /**< [in] Source whose bounds are asked for */
    ptrdiff_t            true_lb;       /**< First byte, from the base address */
    ptrdiff_t            true_ub;       /**< One past the last byte */
    ptrdiff_t            lb;            /**< Lower bound, differs from true_lb when set by the user */
    ptrdiff_t            ub;            /**< Upper bound */
    ptrdiff_t            extent;        /**< Largest ub - lb of all sources */
    size_t               num_blocks;    /**< Contiguous blocks, after merging neighbours */
    size_t               min_block;     /**< Shortest block */
    size_t               max_block;     /**< Longest block */
    unsigned             depth;         /**< Loops nested in the normal form */
    ucp_layout_overlap_t overlap;       /**< Whether some byte is described more than once */
    uint64_t             hash;          /**< Of the content; the same in every process */
    size_t               wire_length;   /**< Bytes @ref ucp_layout_pack writes */
} ucp_layout_attr_t;

/**
 * @brief Ask for attributes.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit or a source that is not there.
 */
ucs_status_t ucp_layout_query(ucp_layout_h layout, ucp_layout_attr_t *attr);

/** What @ref ucp_layout_print shows. */
enum ucp_layout_print_flags {
    UCP_LAYOUT_PRINT_TEXT   = UCS_BIT(0), /**< One line in the grammar of @ref ucp_layout_parse (long lists are cut) */
    UCP_LAYOUT_PRINT_NORMAL = UCS_BIT(1), /**< The normal form, a line per node */
    UCP_LAYOUT_PRINT_PLAN   = UCS_BIT(2)  /**< The CPU kernels chosen */
};

/** @brief Print a layout for people. The form may change between releases. */
ucs_status_t ucp_layout_print(ucp_layout_h layout, FILE *stream, unsigned flags);

/**
 * @brief Print, for people, what an mlx5 network card would make of a layout: the memory keys and their entries, which
 * forms were rejected and why, and whether packing is the better choice.
 *
 * @param [in] layout  The layout.
 * @param [in] device  Name of a device (mlx5_0); NULL: the first one; "published": no device is looked for, the limits
 *                     are those published for ConnectX-6.
 * @param [in] stream  Where to print.
 * @return UCS_OK, UCS_ERR_UNSUPPORTED (libuct_mlx5_layout or rdma-core is not installed, or the device makes no such
 *         keys), UCS_ERR_NO_DEVICE, UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t ucp_layout_print_device(ucp_layout_h layout, const char *device, FILE *stream);

/**
 * Callback of @ref ucp_layout_walk for a block of @e length bytes at @e offset from base address @e source.
 * Any status but UCS_OK ends the walk.
 */
typedef ucs_status_t (*ucp_layout_walk_cb_t)(void *arg, uint32_t source, ptrdiff_t offset, size_t length);

/**
 * @brief Visit the blocks of a packed range in packed order.
 *
 * @return UCS_OK, the status of the callback that ended the walk, or UCS_ERR_INVALID_PARAM if the range
 *         [offset, offset + length) is not inside the packed length.
 */
ucs_status_t ucp_layout_walk(ucp_layout_h layout, size_t offset, size_t length, ucp_layout_walk_cb_t cb, void *arg);

/**
 * @brief Write the wire form, to send a layout to another process.
 *
 * @param [in]     layout    The layout.
 * @param [out]    buffer    Receives the bytes.
 * @param [in,out] length_p  Size of the buffer; on success the bytes written.
 *
 * @return UCS_OK or UCS_ERR_BUFFER_TOO_SMALL (nothing is written; ask for wire_length).
 */
ucs_status_t ucp_layout_pack(ucp_layout_h layout, void *buffer, size_t *length_p);

/**
 * @brief Make a layout from a wire form. The bytes may be hostile.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a wire form), UCS_ERR_UNSUPPORTED (of a newer version),
 *         UCS_ERR_EXCEEDS_LIMIT or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_unpack(const void *buffer, size_t length, ucp_layout_h *layout_p);

/** Flags of @ref ucp_layout_map. */
enum ucp_layout_map_flags {
    /** The library allocates zeroed memory for every source, bounds included, shared with other processes where the
     *  transport can use that. The addresses are asked for with @ref ucp_layout_mem_query; bases must not be given. */
    UCP_LAYOUT_MAP_FLAG_ALLOCATE = UCS_BIT(0)
};

/** Fields of @ref ucp_layout_map_params_t. */
enum ucp_layout_map_params_field {
    UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT      = UCS_BIT(0), /**< layout (required) */
    UCP_LAYOUT_MAP_PARAM_FIELD_BASES       = UCS_BIT(1), /**< bases, num_bases (required without ALLOCATE) */
    UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMHS  = UCS_BIT(2), /**< base_memhs (default: none) */
    UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE = UCS_BIT(3), /**< memory_type (default: UCS_MEMORY_TYPE_HOST) */
    UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS       = UCS_BIT(4)  /**< flags (default: 0) */
};

/** Parameters of @ref ucp_layout_map. */
typedef struct ucp_layout_map_params {
    uint64_t          field_mask;  /**< Mask of valid fields, @ref ucp_layout_map_params_field */
    ucp_layout_h      layout;      /**< May be destroyed after the call */
    void *const      *bases;       /**< Base address of every source. The memory described must stay until the window is
                                       unmapped, and is never touched outside what the layout describes. The array is
                                       copied */
    uint32_t          num_bases;   /**< num_sources of the layout */
    const ucp_mem_h  *base_memhs;  /**< Handle of the memory of every source, NULL where there is none: a hint for
                                       transports that register memory. No transport of this release does */
    ucs_memory_type_t memory_type; /**< Of the memory described. Only UCS_MEMORY_TYPE_HOST in this release */
    unsigned          flags;       /**< @ref ucp_layout_map_flags */
} ucp_layout_map_params_t;

/**
 * @brief Make a window: apply a layout to base addresses.
 *
 * @param [in]  context    UCP context the window will be used with.
 * @param [in]  params     What to show.
 * @param [out] memh_p     A stock memory handle of the window: for UCP_OP_ATTR_FIELD_MEMH, ucp_rkey_pack and
 *                         ucp_mem_query. Released with @ref ucp_layout_unmap, not with ucp_mem_unmap.
 * @param [out] address_p  Address of the window, for stock UCP calls. Not accessible by the CPU.
 *
 * Mapping the same layout (by content) over the same bases again gives the same window, counted, and is cheap.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM      a field is wrong (a message names it),
 *         UCS_ERR_UNSUPPORTED        a memory type not served,
 *         UCS_ERR_NO_DEVICE          the transport @e lay_copy is not in this context (a message says what to set
 *                                    in UCX_TLS),
 *         UCS_ERR_NO_MEMORY          out of memory or of reserved addresses (UCX_LAYOUT_ARENA_SIZE).
 *
 * @note Thread safe as ucp_mem_map is. Windows belong to the process: after fork the child must not use them with the
 *       parent's context, as with all of UCP.
 */
ucs_status_t ucp_layout_map(ucp_context_h context, const ucp_layout_map_params_t *params, ucp_mem_h *memh_p,
                            void **address_p);

/**
 * @brief Apply the layout of a window to other base addresses, keeping window address, handle and remote keys.
 *
 * @param [in] memh       From @ref ucp_layout_map, without ALLOCATE, and mapped once (a shared window is refused
 *                        with UCS_ERR_BUSY).
 * @param [in] bases      Base address of every source.
 * @param [in] num_bases  num_sources of the layout.
 *
 * No transfer may be using the window. Not thread safe with respect to other calls on the same window.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_BUSY or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_rebind(ucp_mem_h memh, void *const *bases, uint32_t num_bases);

/** Fields of @ref ucp_layout_mem_attr_t. */
enum ucp_layout_mem_attr_field {
    UCP_LAYOUT_MEM_ATTR_FIELD_ADDRESS = UCS_BIT(0), /**< address */
    UCP_LAYOUT_MEM_ATTR_FIELD_LENGTH  = UCS_BIT(1), /**< length */
    UCP_LAYOUT_MEM_ATTR_FIELD_BASES   = UCS_BIT(2), /**< bases, num_bases */
    UCP_LAYOUT_MEM_ATTR_FIELD_LAYOUT  = UCS_BIT(3)  /**< layout */
};

/** Attributes of a window. */
typedef struct ucp_layout_mem_attr {
    uint64_t     field_mask; /**< Mask of fields to fill in, @ref ucp_layout_mem_attr_field */
    void        *address;    /**< Window address */
    size_t       length;     /**< Packed length */
    void       **bases;      /**< [in] Array to fill with the base addresses */
    uint32_t     num_bases;  /**< [in] Size of the array, at least num_sources; [out] num_sources */
    ucp_layout_h layout;     /**< [out] A new reference, to be released with @ref ucp_layout_destroy */
} ucp_layout_mem_attr_t;

/**
 * @brief Ask what a window shows.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a window, unknown bit) or UCS_ERR_BUFFER_TOO_SMALL (num_bases).
 */
ucs_status_t ucp_layout_mem_query(ucp_mem_h memh, ucp_layout_mem_attr_t *attr);

/**
 * @brief Release a window. Memory allocated with it is released too.
 *
 * @param [in] context  The context it was mapped with, not yet cleaned up.
 * @param [in] memh     From @ref ucp_layout_map.
 *
 * No transfer may be using the window.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM (not a window of this context).
 */
ucs_status_t ucp_layout_unmap(ucp_context_h context, ucp_mem_h memh);

/**
 * @brief Make a UCP datatype of a layout, for tag, stream and active messages, without mapping anything.
 *
 * With it the @e buffer of a call is the base address and @e count the number of layouts, one after another at the
 * extent. A layout of several sources takes a pointer to an array of base addresses (void *const *) as buffer, and
 * count 1.
 *
 * @param [in]  layout      May be destroyed after the call.
 * @param [out] datatype_p  A generic datatype, to be released with @ref ucp_layout_datatype_destroy after all
 * operations on it.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_layout_datatype_create(ucp_layout_h layout, ucp_datatype_t *datatype_p);

/** @brief Release a datatype made by @ref ucp_layout_datatype_create. */
void ucp_layout_datatype_destroy(ucp_datatype_t datatype);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
