/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCP_LAYOUT_CONTEXT_H_
#define UCP_LAYOUT_CONTEXT_H_

#include "ucp_layout_window.h"

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @defgroup UCP_LAYOUT_CONTEXT Contexts with windows
 *
 * Which contexts of UCX have windows, and how a library that stands between UCX and a program gets contexts with
 * windows for that program, which knows nothing of them.
 * @{
 */

/** Fields of @ref ucp_layout_context_attr_t. */
enum ucp_layout_context_attr_field {
    UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER      = UCS_BIT(0), /**< carrier */
    UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES    = UCS_BIT(1), /**< address and length */
    UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES = UCS_BIT(2)  /**< memory_types */
};

/** What a context can do, see @ref ucp_layout_context_query. */
typedef struct ucp_layout_context_attr {
    uint64_t             field_mask; /**< Mask of fields to fill in, @ref ucp_layout_context_attr_field */
    ucp_layout_carrier_t carrier;    /**< Who would carry a window of 4 blocks of 4 KB: KEYS or COPIES */
    void                *address;    /**< All windows of this process, also later ones, lie from here on */
    size_t               length;     /**< in so many bytes, and nothing else does */
    uint64_t             memory_types; /**< Mask of ucs_memory_type_t: what the context knows, as @ref
                                            ucp_context_query says, but host memory and the types of windows */
} ucp_layout_context_attr_t;

/**
 * @brief Tell whether a context can use windows: whether UCX_TLS of its configuration allows lay_copy. Without any
 * field that is all it tells.
 *
 * @param [in]     context  The context.
 * @param [in,out] attr     field_mask selects the fields to fill in; written only on success.
 *
 * @return UCS_OK,
 *         UCS_ERR_INVALID_PARAM  an argument is NULL or the mask has an unknown bit,
 *         UCS_ERR_NO_DEVICE      it has no windows; nothing is logged,
 *         UCS_ERR_NO_MEMORY,
 *         UCS_ERR_IO_ERROR       UCP does not tell what the context has.
 *
 * @note As thread safe as the context. Makes no window. Takes some microseconds at the first call for a context, and
 * nearly none later. The field carrier takes longer where network cards are: they plan for such a window. So does the
 * first query of the addresses in a process: they are reserved then, without memory.
 */
ucs_status_t ucp_layout_context_query(ucp_context_h context, ucp_layout_context_attr_t *attr);

/** What a watched context gets. */
typedef enum ucp_layout_context_flags {
    /** A list of transports without lay_copy gets it, whether it comes from the environment, from a configuration file
     * or from @c ucp_config_modify. One that names what is left out (^) stays as it is. */
    UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT = UCS_BIT(0),
    /** Addresses of its workers have UCX's second format (UCX_ADDRESS_VERSION=v2) if it has windows, and otherwise the
     * first one. So the first four bits of an address tell whether a process has windows. If the user has chosen a
     * format, they have the first one, and the context is made known without this flag. */
    UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS = UCS_BIT(1),
    /** Windows are wanted only where a network card may carry them. If UCX has no RDMA device, the context gets none of
     * this library's transports, unless its list of transports has lay_copy: it then costs what it costs without this
     * library, whereas UCX looks at each buffer for a window where there may be some. */
    UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS = UCS_BIT(2),
    /** No windows are wanted. As if @ref UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS were given and UCX had no RDMA device; and
     * addresses have UCX's first format. */
    UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS = UCS_BIT(3)
} ucp_layout_context_flags_t;

/** Fields of @ref ucp_layout_context_watch_params_t. */
enum ucp_layout_context_watch_params_field {
    UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE = UCS_BIT(0), /**< choose; required */
    UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE   = UCS_BIT(1), /**< made */
    UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_ARG    = UCS_BIT(2)  /**< arg */
};

/** See @ref ucp_layout_context_watch. The thread that makes the context calls the functions, inside @c ucp_init. */
typedef struct ucp_layout_context_watch_params {
    /** Mask of valid fields, @ref ucp_layout_context_watch_params_field. Required. */
    uint64_t field_mask;
    /** Returns what the context gets that code at @a caller is about to make, of @ref ucp_layout_context_flags_t; 0:
     * nothing, and @a made is not called. */
    unsigned (*choose)(const void *caller, void *arg);
    /** The context exists. @a flags are those that it has: without @ref UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS if it has no
     * windows, or if a user chose another format of addresses; with @ref UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS or
     * @ref UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS only if it was made without this library's transports. Default: NULL, not
     * called. */
    void (*made)(ucp_context_h context, unsigned flags, void *arg);
    /** Passed to both; not owned. Default: NULL. */
    void *arg;
} ucp_layout_context_watch_params_t;

/**
 * @brief Choose from now on what contexts get that this process makes by @c ucp_init. The process has one watch; a new
 * one replaces it.
 *
 * Only contexts of the UCX that this library works with are watched, and only if the library was preloaded or is linked
 * before UCX. The caller's configuration is as before when @c ucp_init returns.
 *
 * @param [in] params  Copied; NULL ends the watch. The functions may still be running in another thread after the
 *                     return.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (no @a choose, or unknown bits of the mask) or UCS_ERR_NO_MEMORY.
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_context_watch(const ucp_layout_context_watch_params_t *params);

/**
 * @brief Read an option as UCX does: from the environment, else from UCX's configuration files (ucx.conf). For options
 * of a library or program that is no part of UCX.
 *
 * @param [in]  name    The name of the option without the prefix UCX_, such as "LAYOUT_MPI_ENABLE".
 * @param [out] value   Its text, which ends with 0; written only on success.
 * @param [in]  length  Bytes of @a value.
 *
 * @return UCS_OK,
 *         UCS_ERR_INVALID_PARAM     name or value is NULL,
 *         UCS_ERR_NO_ELEM           it has no value, or an empty one,
 *         UCS_ERR_NO_DEVICE         no UCX has been loaded yet, so nobody knows its files,
 *         UCS_ERR_BUFFER_TOO_SMALL  the text is longer than @a length allows,
 *         UCS_ERR_NO_MEMORY. None of these is logged.
 *
 * @note Thread safe, as long as nobody changes the environment.
 */
ucs_status_t ucp_layout_option_query(const char *name, char *value, size_t length);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
