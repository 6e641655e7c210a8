/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCP_LAYOUT_FAILURE_H_
#define UCP_LAYOUT_FAILURE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @defgroup UCP_LAYOUT_FAILURE Failed operations on windows
 *
 * An operation that fails ends at its initiator with an error status. For some operations stock UCX has no way to fail;
 * docs/limits.md lists them. Their failures are called @e silent here: the initiator gets UCS_OK. Every failure, silent
 * or not, is counted, logged (at most ten a second) and reported to a callback, in the process that refused the
 * operation. If a target refuses a put or an atomic operation, its initiator gets a notice, which counts there as a
 * silent failure. That needs the hooks @e put and @e atomic in the target and @e reply in the initiator, which are
 * there by default (UCX_LAYOUT_HOOKS, @ref ucp_layout_print_hooks).
 *
 * Code that must not lose a byte compares the silent count of @ref UCP_LAYOUT_FAILURE_ANY before and after its
 * transfers, or sets a callback.
 * @{
 */

/** What failed. Later releases may have more kinds. */
typedef enum ucp_layout_failure_kind {
    UCP_LAYOUT_FAILURE_ANY,           /**< All kinds together, also those of later releases. Only for counting */
    UCP_LAYOUT_FAILURE_READ,          /**< From a window of this process, by this process: it read zeros */
    UCP_LAYOUT_FAILURE_WRITE,         /**< To a window of this process, by this process: the bytes were dropped */
    UCP_LAYOUT_FAILURE_PEER_READ,     /**< From memory of this process, by a peer */
    UCP_LAYOUT_FAILURE_PEER_WRITE,    /**< To memory of this process, by a peer */
    UCP_LAYOUT_FAILURE_PEER_ATOMIC,   /**< On memory of this process, by a peer */
    UCP_LAYOUT_FAILURE_REMOTE_READ,   /**< From a window of a peer, by this process */
    UCP_LAYOUT_FAILURE_REMOTE_WRITE,  /**< To a window of a peer, by this process */
    UCP_LAYOUT_FAILURE_REMOTE_ATOMIC, /**< On a window of a peer, by this process */
    UCP_LAYOUT_FAILURE_DATATYPE       /**< A layout datatype that could not be sent or received */
} ucp_layout_failure_kind_t;

/** Fields of @ref ucp_layout_failure_attr_t. */
enum ucp_layout_failure_attr_field {
    UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL    = UCS_BIT(0), /**< all */
    UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT = UCS_BIT(1)  /**< silent */
};

/** Counts since the process began, see @ref ucp_layout_failure_query. */
typedef struct ucp_layout_failure_attr {
    uint64_t field_mask; /**< Mask of fields to fill in, @ref ucp_layout_failure_attr_field */
    uint64_t all;        /**< Failures of the kind */
    uint64_t silent;     /**< Those whose initiator got UCS_OK */
} ucp_layout_failure_attr_t;

/**
 * @brief Get the number of failed operations of one kind, or of all. UCX's virtual file system shows the same in
 * layout/failures.
 *
 * @param [in]     pid   0 for this process, or the number of another process of this user and PID namespace.
 * @param [in]     kind  What to count.
 * @param [in,out] attr  field_mask selects the fields to fill in; written only on success.
 *
 * @return UCS_OK,
 *         UCS_ERR_INVALID_PARAM  the kind is unknown, or attr is NULL or has an unknown bit,
 *         UCS_ERR_NO_ELEM        there is no such process, or it has not loaded this release of the library.
 *
 * @note Thread safe. The two counts may differ by a failure that happens during the call.
 */
ucs_status_t ucp_layout_failure_query(pid_t pid, ucp_layout_failure_kind_t kind, ucp_layout_failure_attr_t *attr);

/** Fields of @ref ucp_layout_failure_t. */
enum ucp_layout_failure_field {
    UCP_LAYOUT_FAILURE_FIELD_KIND      = UCS_BIT(0), /**< kind */
    UCP_LAYOUT_FAILURE_FIELD_SILENT    = UCS_BIT(1), /**< silent */
    UCP_LAYOUT_FAILURE_FIELD_ADDRESS   = UCS_BIT(2), /**< address */
    UCP_LAYOUT_FAILURE_FIELD_LENGTH    = UCS_BIT(3), /**< length */
    UCP_LAYOUT_FAILURE_FIELD_OPERATION = UCS_BIT(4), /**< operation */
    UCP_LAYOUT_FAILURE_FIELD_REASON    = UCS_BIT(5)  /**< reason */
};

/** One failure, as passed to a callback. Valid during the call; the strings stay valid. */
typedef struct ucp_layout_failure {
    uint64_t                  field_mask; /**< Mask of the fields that the library has filled in,
                                               @ref ucp_layout_failure_field. This release fills in all of them; later
                                               ones may set more bits */
    ucp_layout_failure_kind_t kind;       /**< What failed; never @ref UCP_LAYOUT_FAILURE_ANY, maybe a kind of a later
                                               release */
    int                       silent;     /**< Whether its initiator gets UCS_OK */
    uint64_t                  address;    /**< First byte of the range, in the process that owns it */
    size_t                    length;     /**< Bytes of the range, or of the part of it that was refused */
    const char               *operation;  /**< Who refused it, such as "lay_copy" */
    const char               *reason;     /**< Follows "LENGTH bytes at ADDRESS": "are not ..." */
} ucp_layout_failure_t;

/**
 * Callback of @ref ucp_layout_failure_watch. It runs in the thread that found the failure, inside a call of UCX or of
 * this library, which waits for it. It must not call communication functions of UCX; it may unmap windows.
 */
typedef void (*ucp_layout_failure_cb_t)(const ucp_layout_failure_t *failure, void *arg);

/**
 * @brief Set the function to call at every failure from now on. The process has one; a new one replaces it.
 *
 * @param [in] cb   The callback; NULL removes it. The old one may still be running in another thread after the return.
 * @param [in] arg  Passed to the callback; not owned.
 *
 * @return UCS_OK.
 *
 * @note Thread safe.
 */
ucs_status_t ucp_layout_failure_watch(ucp_layout_failure_cb_t cb, void *arg);

/**
 * @brief Print for people where this library changes stock UCX in this process: what, why, whether the change is
 * active, and what happens without it. The option UCX_LAYOUT_HOOKS disables each change.
 *
 * @param [in] stream  Where to print.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (stream is NULL), UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR.
 */
ucs_status_t ucp_layout_print_hooks(FILE *stream);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
