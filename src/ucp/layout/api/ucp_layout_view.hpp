/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_view.hpp
 * Common definitions, and the concept of a view. Part of ucp_layout.hpp.
 */

#ifndef UCP_LAYOUT_VIEW_HPP_
#define UCP_LAYOUT_VIEW_HPP_

#include <concepts>
#include <cstddef>
#include <expected>
#include <type_traits>
#include <utility>

#include "ucp_layout.h"

/** The C++ API. */
namespace ucx_layout
{

/** The result of a function that can fail: the value, or the status of the C function. */
template <typename T>
using result = std::expected<T, ucs_status_t>;

/** Not part of the interface. */
namespace detail
{

/** Whether element i of a view is at data_handle()[a sum of strides], without an accessor in between. */
template <typename View>
constexpr bool has_plain_elements =
    std::is_pointer_v<std::remove_cvref_t<decltype(std::declval<const View &>().data_handle())>> &&
    (!requires { typename View::reference; } ||
     requires {
         requires std::is_same_v<typename View::reference, decltype(*std::declval<const View &>().data_handle())>;
     });

/** Whether a view has one distance per dimension, whatever its extents are. */
template <typename View>
constexpr bool has_strides =
    !requires { View::is_always_strided(); } || requires { requires View::is_always_strided(); };

/** The type of the elements, const where they are. */
template <typename View>
using element_of = std::remove_reference_t<decltype(*std::declval<const View &>().data_handle())>;

} // namespace detail

/**
 * What this header needs of mdspan: a pointer to the first element, and for each dimension an extent and a stride in
 * elements. std::mdspan and std::submdspan of any extents fit, with layout_left, layout_right or layout_stride, also of
 * rank 0.
 */
template <typename View>
concept mdspan_like = requires(const View &view, std::size_t dimension) {
    { *view.data_handle() };
    { View::rank() } -> std::convertible_to<std::size_t>;
    { view.extent(dimension) } -> std::convertible_to<std::size_t>;
} && (View::rank() == 0 || requires(const View &view, std::size_t dimension) {
                          { view.stride(dimension) } -> std::convertible_to<std::ptrdiff_t>;
                      });

} // namespace ucx_layout

#endif
