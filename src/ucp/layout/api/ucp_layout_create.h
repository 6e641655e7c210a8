/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_create.h
 * Making layouts. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_CREATE_H_
#define UCP_LAYOUT_CREATE_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** The kinds of layouts. */
typedef enum ucp_layout_kind {
    UCP_LAYOUT_KIND_CONTIG,     /**< @e count elements in sequence */
    UCP_LAYOUT_KIND_STRIDED,    /**< An element repeated in N dimensions: MPI_Type_create_hvector, nested */
    UCP_LAYOUT_KIND_IOV,        /**< A list of elements at offsets: MPI_Type_create_struct / hindexed */
    UCP_LAYOUT_KIND_INTERLEAVED /**< Cycles that take some elements of each source in turn */
} ucp_layout_kind_t;

/** The unit of repetition: @e length contiguous bytes, or a whole layout. */
typedef struct ucp_layout_element {
    size_t       length; /**< Bytes; ignored when @e layout is set. 0 is allowed: no bytes */
    ucp_layout_h layout; /**< Nested layout, or NULL. May be destroyed after the call. Its source numbers are added to
                              the source of the part that holds the element */
} ucp_layout_element_t;

/** One dimension. */
typedef struct ucp_layout_dim {
    size_t    count;  /**< Elements in this dimension; 0 makes the layout empty */
    ptrdiff_t stride; /**< Bytes from one element to the next; may be negative or 0 */
} ucp_layout_dim_t;

/** One part of @ref UCP_LAYOUT_KIND_IOV. */
typedef struct ucp_layout_iov {
    uint32_t             source;  /**< Number of the base address, below UCP_LAYOUT_MAX_SOURCES */
    ptrdiff_t            offset;  /**< Bytes from that base address */
    ucp_layout_element_t element; /**< The element at this place */
} ucp_layout_iov_t;

/**
 * One source of @ref UCP_LAYOUT_KIND_INTERLEAVED. @e dims enumerates its elements, the last dimension fastest; every
 * cycle takes the next @e repeat of them. Sources may differ in @e repeat and in total. Cycles skip a source that has
 * run out.
 */
typedef struct ucp_layout_interleaved {
    uint32_t                source;   /**< Number of the base address, below UCP_LAYOUT_MAX_SOURCES */
    ptrdiff_t               offset;   /**< Bytes from that base address to the first element */
    ucp_layout_element_t    element;  /**< The element that repeats */
    size_t                  repeat;   /**< Elements per cycle, at least 1 */
    const ucp_layout_dim_t *dims;     /**< Places of the elements, outermost dimension first */
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
    ucp_layout_kind_t               kind;            /**< Kind of the layout; it selects the fields below */
    ucp_layout_element_t            element;         /**< The element that repeats */
    size_t                          count;           /**< Number of elements, each at the extent of the one before */
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
 * @param [in]  params    Describe the layout. Everything is copied.
 * @param [out] layout_p  The layout, to be released with @ref ucp_layout_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is missing or wrong,
 *         UCS_ERR_EXCEEDS_LIMIT  a limit of a layout is exceeded,
 *         UCS_ERR_NO_MEMORY      out of memory.
 *
 * @note Cost: linear in the number of list entries.
 *
 * @note Layouts of equal content share one object and its compiled plan. So *layout_p may be a handle that the caller
 * has already; each call takes a reference, which needs a @ref ucp_layout_destroy of its own.
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
 * @param [in]  dims      Places of the blocks, outermost (slowest) dimension first. Copied.
 * @param [in]  num_dims  Number of dimensions, 0 .. UCP_LAYOUT_MAX_DEPTH; 0: the block once.
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
 * @param [in]  count     Number of blocks; 0 makes the layout empty.
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
 * @brief Create a layout of parts at any offsets of any sources, in sequence.
 *
 * @param [in]  parts      The parts in packed order. Copied.
 * @param [in]  num_parts  Number of parts; 0 makes the layout empty.
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
 * @param [in]  sources      The sources in the order of each cycle. Copied with their dimensions.
 * @param [in]  num_sources  Number of sources; 0 makes the layout empty.
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
 * @brief Create a layout from a list of buffers, as UCP takes it (@c UCP_DATATYPE_IOV): its bytes, in its order.
 *
 * The layout holds the distances of the buffers from @e base and not their addresses. So it serves every list of the
 * same shape: map it with the @e base of each.
 *
 * @param [in]  iov       The buffers in packed order. Copied. Those of length 0 are skipped, and may be NULL.
 * @param [in]  num_iov   Number of buffers, up to UCP_LAYOUT_MAX_ENTRIES; 0 makes the layout empty.
 * @param [in]  base      The base address of source 0 that the layout is going to be mapped with, usually the first
 *                        buffer. No buffer may be farther from it than UCP_LAYOUT_MAX_LENGTH.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create.
 */
ucs_status_t ucp_layout_from_iov(const ucp_dt_iov_t *iov, size_t num_iov, const void *base, ucp_layout_h *layout_p);

/**
 * @brief Create a layout from text, for tools and configuration: "strided(4096,64,128)".
 *
 * @param [in]  text      The text, ended by a 0 byte. The manual page ucx_layout_info(1) has the grammar.
 * @param [out] layout_p  As @ref ucp_layout_create.
 *
 * @return As @ref ucp_layout_create; the error message names the column.
 */
ucs_status_t ucp_layout_parse(const char *text, ucp_layout_h *layout_p);

/**
 * @brief Release a layout. Windows, plans, datatypes and layouts made from it stay valid.
 *
 * @param [in] layout  A layout; NULL does nothing.
 */
void ucp_layout_destroy(ucp_layout_h layout);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
