/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_plan.h
 * Plans: layouts compiled for the CPU. Part of ucp_layout.h.
 */

#ifndef UCP_LAYOUT_PLAN_H_
#define UCP_LAYOUT_PLAN_H_

#include "ucp_layout_def.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @addtogroup UCP_LAYOUT
 * @{
 */

/** Fields of @ref ucp_layout_plan_params_t. */
enum ucp_layout_plan_params_field {
    UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT = UCS_BIT(0) /**< count (default: 1) */
};

/** Parameters of @ref ucp_layout_plan_create. */
typedef struct ucp_layout_plan_params {
    uint64_t field_mask; /**< Mask of valid fields, @ref ucp_layout_plan_params_field */
    size_t   count;      /**< Number of layouts, each at the extent of the one before in every source; 0: no bytes */
} ucp_layout_plan_params_t;

/**
 * @brief Compile a layout for the CPU, to copy from memory to memory without UCP. Windows use the same engine.
 *
 * @param [in]  layout  May be destroyed after the call.
 * @param [in]  params  The use of the plan; NULL for the defaults.
 * @param [out] plan_p  The plan, to be released with @ref ucp_layout_plan_destroy.
 *
 * @return UCS_OK, or
 *         UCS_ERR_INVALID_PARAM  a field is wrong,
 *         UCS_ERR_EXCEEDS_LIMIT  @e count layouts exceed a limit of a layout,
 *         UCS_ERR_NO_MEMORY      out of memory.
 */
ucs_status_t ucp_layout_plan_create(ucp_layout_h layout, const ucp_layout_plan_params_t *params,
                                    ucp_layout_plan_h *plan_p);

/**
 * @brief Release a plan. No call may be using it.
 *
 * @param [in] plan  A plan; NULL does nothing.
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
    uint32_t num_sources;   /**< Number of base addresses, at least 1 */
    size_t   count;         /**< Number of layouts */
} ucp_layout_plan_attr_t;

/**
 * @brief Get attributes of a plan.
 *
 * @param [in]     plan  The plan.
 * @param [in,out] attr  field_mask selects the fields to fill in.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for an unknown field bit.
 */
ucs_status_t ucp_layout_plan_query(ucp_layout_plan_h plan, ucp_layout_plan_attr_t *attr);

/**
 * @brief Copy a packed range from described memory into contiguous memory.
 *
 * Any number of threads may run a plan. It takes no lock and allocates nothing. The contiguous memory must not overlap
 * the described bytes.
 *
 * @param [in]  plan       The plan.
 * @param [in]  bases      Base address of every source. NULL is detected only for a layout of one source.
 * @param [in]  num_bases  num_sources of the plan.
 * @param [in]  offset     First packed byte.
 * @param [in]  length     Packed bytes; 0 copies nothing.
 * @param [out] dst        Receives @e length bytes.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM: a NULL, a wrong num_bases, or a range that is not inside the packed length.
 */
ucs_status_t ucp_layout_plan_gather(ucp_layout_plan_h plan, void *const *bases, uint32_t num_bases, size_t offset,
                                    size_t length, void *dst);

/**
 * @brief Copy contiguous memory into a packed range of described memory.
 *
 * The reverse of @ref ucp_layout_plan_gather. A byte that is described twice keeps one of its values; which one is
 * undefined. Two threads must not write the same byte.
 *
 * @param [in] plan       The plan.
 * @param [in] bases      Base address of every source.
 * @param [in] num_bases  num_sources of the plan.
 * @param [in] offset     First packed byte.
 * @param [in] length     Packed bytes; 0 copies nothing.
 * @param [in] src        @e length bytes.
 *
 * @return As @ref ucp_layout_plan_gather.
 */
ucs_status_t ucp_layout_plan_scatter(ucp_layout_plan_h plan, void *const *bases, uint32_t num_bases, size_t offset,
                                     size_t length, const void *src);

/**
 * @brief Copy a packed range of one described memory into a packed range of another, in one pass over each.
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
 * @param [in] length         Packed bytes; 0 copies nothing.
 *
 * @return As @ref ucp_layout_plan_gather.
 */
ucs_status_t ucp_layout_plan_copy(ucp_layout_plan_h dst_plan, void *const *dst_bases, uint32_t num_dst_bases,
                                  size_t dst_offset, ucp_layout_plan_h src_plan, void *const *src_bases,
                                  uint32_t num_src_bases, size_t src_offset, size_t length);

/**
 * @brief @ref ucp_layout_plan_gather with a plan that the layout keeps. The first call that needs it compiles it.
 *
 * @param [in]  layout     The layout.
 * @param [in]  bases      Base address of every source.
 * @param [in]  num_bases  num_sources of the layout.
 * @param [in]  offset     First packed byte.
 * @param [in]  length     Packed bytes; 0 copies nothing.
 * @param [out] dst        Receives @e length bytes.
 *
 * @return As @ref ucp_layout_plan_gather, or UCS_ERR_NO_MEMORY if the plan could not be compiled.
 */
ucs_status_t ucp_layout_gather(ucp_layout_h layout, void *const *bases, uint32_t num_bases, size_t offset,
                               size_t length, void *dst);

/**
 * @brief @ref ucp_layout_plan_scatter with a plan that the layout keeps. The first call that needs it compiles it.
 *
 * @param [in] layout     The layout.
 * @param [in] bases      Base address of every source.
 * @param [in] num_bases  num_sources of the layout.
 * @param [in] offset     First packed byte.
 * @param [in] length     Packed bytes; 0 copies nothing.
 * @param [in] src        @e length bytes.
 *
 * @return As @ref ucp_layout_gather.
 */
ucs_status_t ucp_layout_scatter(ucp_layout_h layout, void *const *bases, uint32_t num_bases, size_t offset,
                                size_t length, const void *src);

/**
 * @brief @ref ucp_layout_plan_copy with plans that the layouts keep. The first call that needs one compiles it.
 *
 * @param [in] dst_layout     Describes the memory to write.
 * @param [in] dst_bases      Base address of every source of dst_layout.
 * @param [in] num_dst_bases  num_sources of dst_layout.
 * @param [in] dst_offset     First packed byte to write.
 * @param [in] src_layout     Describes the memory to read; may be dst_layout.
 * @param [in] src_bases      Base address of every source of src_layout.
 * @param [in] num_src_bases  num_sources of src_layout.
 * @param [in] src_offset     First packed byte to read.
 * @param [in] length         Packed bytes; 0 copies nothing.
 *
 * @return As @ref ucp_layout_gather.
 */
ucs_status_t ucp_layout_copy(ucp_layout_h dst_layout, void *const *dst_bases, uint32_t num_dst_bases,
                             size_t dst_offset, ucp_layout_h src_layout, void *const *src_bases,
                             uint32_t num_src_bases, size_t src_offset, size_t length);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
