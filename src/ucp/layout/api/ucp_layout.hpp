/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/**
 * @file ucp_layout.hpp
 * C++23 over ucp_layout.h: owners for the four handles, and layouts straight from anything shaped like std::mdspan.
 *
 * @code{.cpp}
 * auto window = ucx_layout::window::map(context, column);   // a std::mdspan with layout_stride
 * if (window) ucp_tag_send_nbx(ep, window->address(), window->length(), tag, &param);
 * @endcode
 *
 * Header only; nothing throws. Failures come back with the status of the C function, which logged why. Objects are
 * movable, not copyable, and release what they own; one that was moved from owns nothing, and may only be assigned to
 * or destroyed. Sizes, offsets and strides are bytes but where elements are named; the outermost dimension comes first.
 * Thread safety is that of the C functions: objects that own different handles may be used by different threads.
 */

#ifndef UCP_LAYOUT_HPP_
#define UCP_LAYOUT_HPP_

#include "ucp_layout_create.hpp"
#include "ucp_layout_memory.hpp"
#include "ucp_layout_plan.hpp"
#include "ucp_layout_view.hpp"
#include "ucp_layout_window.hpp"

#endif
