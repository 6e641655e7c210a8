/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

#ifndef UCP_LAYOUT_H_
#define UCP_LAYOUT_H_

#include "ucp_layout_create.h"
#include "ucp_layout_datatype.h"
#include "ucp_layout_def.h"
#include "ucp_layout_failure.h"
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

/** @} */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
