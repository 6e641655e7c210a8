/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCT_MLX5_LAYOUT_DEF_H_
#define UCT_MLX5_LAYOUT_DEF_H_

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * @brief Types of uct_mlx5_layout.h, which includes this file and describes the conventions.
 *
 * @addtogroup UCT_MLX5_LAYOUT
 * @{
 */

/** Version of this interface. A library serves programs compiled with the same major and the same or an earlier minor
 *  version. */
#define UCT_MLX5_LAYOUT_API_MAJOR 1
/** See @ref UCT_MLX5_LAYOUT_API_MAJOR. */
#define UCT_MLX5_LAYOUT_API_MINOR 0

/** Memory keys of one protection domain, and the queue pair that binds them. */
typedef struct uct_mlx5_layout_domain *uct_mlx5_layout_domain_h;

/** A memory key with a layout. */
typedef struct uct_mlx5_layout_region *uct_mlx5_layout_region_h;

/** What a device supports. */
enum uct_mlx5_layout_cap_flags {
    UCT_MLX5_LAYOUT_CAP_SG                            = 1 << 0, /**< @ref uct_mlx5_layout_set_sg */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED                   = 1 << 1, /**< @ref uct_mlx5_layout_set_interleaved */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_REPEAT            = 1 << 2, /**< repeat > 1 */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_REPEAT = 1 << 3, /**< repeat differs between items */
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_TOTAL  = 1 << 4, /**< Numbers of elements differ between items */
    UCT_MLX5_LAYOUT_CAP_ADDRESS                       = 1 << 5, /**< Regions at a chosen virtual address */
    UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK                  = 1 << 6, /**< Strided layouts cost one entry in all */
    UCT_MLX5_LAYOUT_CAP_ATOMIC                        = 1 << 7, /**< Atomic operations on words inside a layout */
    UCT_MLX5_LAYOUT_CAP_POINTER                       = 1 << 8, /**< Lists that do not fit into a bind request */
    UCT_MLX5_LAYOUT_CAP_LOCAL_NESTED                  = 1 << 9, /**< Keys below the first one need local rights only */
    UCT_MLX5_LAYOUT_CAP_ATOMIC_ANY_KEY                = 1 << 10 /**< Atomic operations by different keys on one word are
                                                                     atomic among each other (atomic_rate_pa) */
};

/** Fields of @ref uct_mlx5_layout_attr_t. */
enum uct_mlx5_layout_attr_field {
    UCT_MLX5_LAYOUT_ATTR_FIELD_FLAGS                      = 1 << 0, /**< flags */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_SG                 = 1 << 1, /**< max_num_sg */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_SG          = 1 << 2, /**< max_inline_num_sg */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_INTERLEAVED        = 1 << 3, /**< max_num_interleaved */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_INTERLEAVED = 1 << 4, /**< max_inline_num_interleaved */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_DIMS               = 1 << 5, /**< max_num_dims */
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_DEPTH                  = 1 << 6  /**< max_depth */
};

/** Capabilities, see @ref uct_mlx5_layout_query. */
typedef struct uct_mlx5_layout_attr {
    uint64_t field_mask;                 /**< Mask of fields to fill in, @ref uct_mlx5_layout_attr_field */
    uint64_t flags;                      /**< @ref uct_mlx5_layout_cap_flags */
    uint32_t max_num_sg;                 /**< Pieces of one list */
    uint32_t max_inline_num_sg;          /**< Those that fit into the bind request itself */
    uint32_t max_num_interleaved;        /**< Items of one interleaved layout */
    uint32_t max_inline_num_interleaved; /**< Those that fit into the bind request itself */
    uint32_t max_num_dims;               /**< Dimensions of one item. Above 1 the library nests keys or lists blocks */
    uint32_t max_depth;                  /**< Keys on the path from a work request to memory */
} uct_mlx5_layout_attr_t;

/** Fields of @ref uct_mlx5_layout_domain_params_t. */
enum uct_mlx5_layout_domain_params_field {
    UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD         = 1 << 0, /**< pd; required */
    UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PORT       = 1 << 1, /**< port */
    UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_BIND_DEPTH = 1 << 2  /**< bind_depth */
};

/** Parameters of @ref uct_mlx5_layout_domain_open. */
typedef struct uct_mlx5_layout_domain_params {
    uint64_t       field_mask; /**< Mask of valid fields, @ref uct_mlx5_layout_domain_params_field */
    struct ibv_pd *pd;         /**< Protection domain of all keys; must outlive the domain */
    uint8_t        port;       /**< An active port, for the bind queue's loopback. Default: 1 */
    uint32_t       bind_depth; /**< Bind requests under way at once, 1 to 4096. Default: 128 */
} uct_mlx5_layout_domain_params_t;

/** How a region gets its virtual address. The option UCX_LAYOUT_KEYS_ADDRESS forces one way. */
typedef enum uct_mlx5_layout_address_method {
    UCT_MLX5_LAYOUT_ADDRESS_NONE, /**< It gets none: all regions begin at 0 */
    UCT_MLX5_LAYOUT_ADDRESS_UMR,  /**< The bind request moves the start of the key */
    UCT_MLX5_LAYOUT_ADDRESS_KSM   /**< Another key lies over it: one level of nesting less, and 126 GiB at most */
} uct_mlx5_layout_address_method_t;

/** Fields of @ref uct_mlx5_layout_domain_attr_t. */
enum uct_mlx5_layout_domain_attr_field {
    UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_FLAGS          = 1 << 0, /**< flags */
    UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH      = 1 << 1, /**< max_depth */
    UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD = 1 << 2  /**< address_method */
};

/** Results of the self-test, see @ref uct_mlx5_layout_domain_query. */
typedef struct uct_mlx5_layout_domain_attr {
    uint64_t                         field_mask;     /**< Mask of fields to fill in,
                                                          @ref uct_mlx5_layout_domain_attr_field */
    uint64_t                         flags;          /**< @ref uct_mlx5_layout_cap_flags that really work */
    uint32_t                         max_depth;      /**< Keys on the path from a work request to memory */
    uct_mlx5_layout_address_method_t address_method; /**< How regions get an address */
} uct_mlx5_layout_domain_attr_t;

/** Fields of @ref uct_mlx5_layout_region_params_t. */
enum uct_mlx5_layout_region_params_field {
    UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS      = 1 << 0, /**< access */
    UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES = 1 << 1, /**< max_entries */
    UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ADDRESS     = 1 << 2  /**< address */
};

/** Parameters of @ref uct_mlx5_layout_region_create. */
typedef struct uct_mlx5_layout_region_params {
    uint64_t field_mask;  /**< Mask of valid fields, @ref uct_mlx5_layout_region_params_field */
    unsigned access;      /**< Bits of IBV_ACCESS_LOCAL_WRITE, _REMOTE_READ, _REMOTE_WRITE, _REMOTE_ATOMIC. Default:
                               none, which allows local reading */
    uint32_t max_entries; /**< Room for translation entries in the region's own key, 1 to max_num_sg. Layouts that need
                               more use further keys, if the device allows. An entry shows at most 2 GiB, so the room
                               also limits the bytes of a region. Default: 64 */
    uint64_t address;     /**< Address at which the region begins. Default: 0 */
} uct_mlx5_layout_region_params_t;

/** Fields of @ref uct_mlx5_layout_region_attr_t. */
enum uct_mlx5_layout_region_attr_field {
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY        = 1 << 0, /**< lkey */
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY        = 1 << 1, /**< rkey */
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS     = 1 << 2, /**< address */
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH      = 1 << 3, /**< length */
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST        = 1 << 4, /**< num_keys, num_entries, depth, num_repeats,
                                                                 num_fetched */
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_WHOLE_WORDS = 1 << 5  /**< whole_words */
};

/** Attributes of a region, see @ref uct_mlx5_layout_region_query. */
typedef struct uct_mlx5_layout_region_attr {
    uint64_t field_mask;  /**< Mask of fields to fill in, @ref uct_mlx5_layout_region_attr_field */
    uint32_t lkey;        /**< For local elements of work requests */
    uint32_t rkey;        /**< For peers */
    uint64_t address;     /**< First byte, in the region's own address space */
    uint64_t length;      /**< Bytes; 0 without a layout */
    uint32_t num_keys;    /**< Device keys of the layout, including the region's own */
    uint32_t num_entries; /**< Translation entries of all of them, with padding */
    uint32_t depth;       /**< Keys on the path to memory */
    uint32_t num_repeats; /**< Keys that are repeat blocks */
    uint32_t num_fetched; /**< Keys whose entries the device fetched from memory */
    int      whole_words; /**< Whether atomic operations reach every 8-byte aligned word. If not, some are split between
                               blocks or misaligned in memory: see @ref uct_mlx5_layout_region_check_atomic */
} uct_mlx5_layout_region_attr_t;

/** Flags of the functions that set a layout. */
enum uct_mlx5_layout_set_flags {
    /** Only prepare: @ref uct_mlx5_layout_post_bind or @ref uct_mlx5_layout_bind puts the layout into force. */
    UCT_MLX5_LAYOUT_SET_WITH_POST_WR = 1 << 0,
    /** The region has no layout, or nobody can use its key: skip the removal of the old layout. */
    UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION = 1 << 1
};

/** One dimension of an item. */
typedef struct uct_mlx5_layout_dim {
    size_t    count;  /**< Elements along this dimension, at least 1 */
    ptrdiff_t stride; /**< Bytes from one element to the next; may be negative or 0 */
} uct_mlx5_layout_dim_t;

/**
 * One source of an interleaved layout. @e dims enumerates its elements, the last dimension fastest; every cycle takes
 * the next @e repeat of them. Items may differ in @e repeat and in total. Cycles skip an item that has run out.
 */
typedef struct uct_mlx5_layout_item {
    struct ibv_sge               element;  /**< Address, length and key of the first element */
    size_t                       repeat;   /**< Elements per cycle, at least 1 */
    const uct_mlx5_layout_dim_t *dims;     /**< Places of the elements, outermost dimension first */
    unsigned                     num_dims; /**< 0: the one element */
} uct_mlx5_layout_item_t;

/** The base of one source. */
typedef struct uct_mlx5_layout_base {
    uint64_t address; /**< In the address space of the key */
    uint32_t lkey;    /**< Covers all bytes that the layout describes of this source */
} uct_mlx5_layout_base_t;

/** @} */

#ifdef __cplusplus
}
#endif

#endif
