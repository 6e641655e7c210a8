/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCP_LAYOUT_H_
#define UCP_LAYOUT_H_

#include "ucp_layout_context.h"
#include "ucp_layout_create.h"
#include "ucp_layout_datatype.h"
#include "ucp_layout_def.h"
#include "ucp_layout_failure.h"
#include "ucp_layout_memory.h"
#include "ucp_layout_plan.h"
#include "ucp_layout_query.h"
#include "ucp_layout_window.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * @defgroup UCP_LAYOUT Non-contiguous memory as one UCP buffer
 *
 * A @e layout describes where bytes are, without addresses. A @e window is a layout applied to base addresses: a range
 * of reserved addresses, as long as the packed layout, that shows the described bytes in packed order. Stock UCP calls
 * take the window address as any other buffer: ucp_tag_send_nbx, ucp_stream_send_nbx, ucp_am_send_nbx, ucp_put_nbx,
 * ucp_get_nbx, the receive calls, ucp_rkey_pack. The application packs nothing. The CPU cannot access a window.
 * For packing without UCP, a @e plan is a layout compiled for the CPU.
 *
 * @code{.c}
 * ucp_layout_window_h window;
 * ucp_layout_h column;
 * void *address;
 *
 * ucp_layout_strided(sizeof(double), 1024, sizeof(matrix[0]), &column);
 * ucp_layout_map_base(context, column, &matrix[0][5], &window, &address);
 * ucp_tag_send_nbx(ep, address, 1024 * sizeof(double), tag, &request_param);
 * @endcode
 *
 * <b>Conventions</b> are those of UCP.
 * - The caller sets @e field_mask to the fields it has filled in, or asks for. The library reads and writes no other
 *   field. An unknown bit is UCS_ERR_INVALID_PARAM.
 * - A function writes its outputs only when it returns UCS_OK. On failure it leaves nothing behind.
 * - Whoever finds an error logs it once, at level error, with the names of the parameter and of the limit. A pointer
 *   that must not be NULL but is gives UCS_ERR_INVALID_PARAM.
 * - All sizes, offsets, strides and lengths are in bytes. Lists of dimensions begin with the outermost one. Sources are
 *   numbered from 0.
 * - Handles of layouts and plans are counted or owned pointers: using one after its destruction is undefined. Handles
 *   of windows are never reused: a stale one gives UCS_ERR_INVALID_PARAM.
 * - Functions are thread safe unless they say otherwise. None may be called from a signal handler.
 *
 * Both peers of a transfer with a window need this library. To stock UCX a window is memory of type
 * UCS_MEMORY_TYPE_RDMA, for which it has no transport. A peer without the library still receives short messages from a
 * window; longer ones (rendezvous) and remote access do not work, and may never complete.
 * @{
 */

/** Version of this header: changes when something is removed or changes its meaning. */
#define UCP_LAYOUT_API_MAJOR 1
/** Version of this header: changes when something is added. */
#define UCP_LAYOUT_API_MINOR 0
/** A version as one number, to compare with others made by this macro: @e _major, then @e _minor. */
#define UCP_LAYOUT_API_VERSION(_major, _minor) (((_major) << 24) | ((_minor) << 16))

/**
 * @brief Get the version of the loaded library, which may be newer than the header.
 *
 * @param [out] major_version   Major version; may be NULL.
 * @param [out] minor_version   Minor version; may be NULL.
 * @param [out] release_number  Release of that minor version; may be NULL.
 */
void ucp_layout_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number);

/**
 * @brief Get the version of the loaded library as text: "1.0.0".
 *
 * @return The text, valid for the life of the process.
 */
const char *ucp_layout_get_version_string(void);

/**
 * @brief Have errors in a text and not in the log: for bindings to languages that make exceptions of them.
 *
 * @param [out] text    Receives what functions of this library find wrong from now on when this thread calls them, a
 *                      line for each error, cut to the length, with a final 0. Empty at first. Must stay until the
 *                      thread calls this function again. NULL: errors are logged again.
 * @param [in]  length  Bytes of @a text.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM (text is not NULL and length is 0).
 *
 * @note Each thread has a text of its own.
 */
ucs_status_t ucp_layout_capture_errors(char *text, size_t length);

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
