/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_window.hpp
 * The owner of a window. Part of ucp_layout.hpp.
 */

#ifndef UCP_LAYOUT_WINDOW_HPP_
#define UCP_LAYOUT_WINDOW_HPP_

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "ucp_layout_create.hpp"

/** The C++ API. */
namespace ucx_layout
{

/**
 * As ucp_layout_context_query().
 *
 * @param context  UCP context.
 * @return Who would carry a small window in that context, or UCS_ERR_NO_DEVICE if the context cannot use windows, or
 *         another error.
 */
inline result<ucp_layout_carrier_t> carrier_in(ucp_context_h context) noexcept
{
    ucp_layout_context_attr_t attr{};
    attr.field_mask           = UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER;
    const ucs_status_t status = ucp_layout_context_query(context, &attr);
    return status == UCS_OK ? result<ucp_layout_carrier_t>(attr.carrier) : std::unexpected(status);
}

/** Owns a ucp_layout_window_h. */
class window
{
public:
    /**
     * As ucp_layout_map().
     *
     * @param context  UCP context, or null if only the address is needed.
     * @param params   Layout, base addresses and options.
     * @return The window, or the error.
     */
    static result<window> map(ucp_context_h context, const ucp_layout_map_params_t &params) noexcept
    {
        window       window;
        ucs_status_t status = ucp_layout_map(context, &params, &window._handle);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH;
        status          = ucp_layout_window_query(window._handle, &attr);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        window._address = attr.address;
        window._length  = attr.length;
        return window;
    }

    /**
     * A window over memory of the application.
     *
     * @param context  As above.
     * @param layout   The layout; may be released after the call.
     * @param bases    Base address of every source. Constant memory can be sent, but must not be received into.
     * @param flags    UCP_LAYOUT_MAP_FLAG_EXCLUSIVE, or 0.
     * @return The window, or the error.
     */
    static result<window> map(ucp_context_h context, const layout &layout, std::span<const void *const> bases,
                              unsigned flags = 0) noexcept
    {
        ucp_layout_map_params_t params{};
        params.field_mask =
            UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout    = layout.get();
        params.bases     = const_cast<void *const *>(bases.data());
        params.num_bases = layout::count(bases);
        params.flags     = flags;
        return map(context, params);
    }

    /**
     * A window over memory of the application, for a layout of one source.
     *
     * @param context  As above.
     * @param layout   As above.
     * @param base     The base address, not an array of base addresses.
     * @param flags    As above.
     * @return The window, or the error.
     */
    template <typename T>
        requires(!std::is_pointer_v<T>)
    static result<window> map(ucp_context_h context, const layout &layout, T *base, unsigned flags = 0) noexcept
    {
        const void *const address = base;
        return map(context, layout, std::span<const void *const>(&address, 1), flags);
    }

    /**
     * A window over the elements of a view.
     *
     * @param context  As above.
     * @param view     The view; its elements may be constant.
     * @param flags    As above.
     * @return The window, or the error.
     */
    template <mdspan_like View>
    static result<window> map(ucp_context_h context, const View &view, unsigned flags = 0) noexcept
    {
        const auto described = layout::describe(view);
        return described ? map(context, *described, view.data_handle(), flags) : std::unexpected(described.error());
    }

    /**
     * A window with zeroed memory of its own; see bases().
     *
     * @param context  As above.
     * @param layout   As above.
     * @return The window, or the error.
     */
    static result<window> allocate(ucp_context_h context, const layout &layout) noexcept
    {
        ucp_layout_map_params_t params{};
        params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout     = layout.get();
        params.flags      = UCP_LAYOUT_MAP_FLAG_ALLOCATE;
        return map(context, params);
    }

    /**
     * As ucp_layout_window_find().
     *
     * @param address  First byte of the range.
     * @param length   Bytes of the range.
     * @return The handle, which stays with the owner of the window, or UCS_ERR_NO_ELEM.
     */
    static result<ucp_layout_window_h> find(const void *address, std::size_t length = 0) noexcept
    {
        ucp_layout_window_h found  = nullptr;
        const ucs_status_t  status = ucp_layout_window_find(address, length, &found);
        return status == UCS_OK ? result<ucp_layout_window_h>(found) : std::unexpected(status);
    }

    /**
     * Takes over the window of another owner.
     *
     * @param other  Owns nothing afterwards.
     */
    window(window &&other) noexcept
        : _handle(std::exchange(other._handle, nullptr)), _address(std::exchange(other._address, nullptr)),
          _length(std::exchange(other._length, 0))
    {
    }

    /**
     * Releases the own window and takes over that of another owner.
     *
     * @param other  Owns nothing afterwards.
     * @return This object.
     */
    window &operator=(window &&other) noexcept
    {
        window taken(std::move(other));
        std::swap(_handle, taken._handle);
        std::swap(_address, taken._address);
        std::swap(_length, taken._length);
        return *this;
    }

    /** Unmaps the window. */
    ~window()
    {
        if (_handle != nullptr) {
            ucp_layout_unmap(_handle);
        }
    }

    /** @return The address of the window, for UCP calls. */
    void *address() const noexcept { return _address; }

    /** @return Packed bytes. */
    std::size_t length() const noexcept { return _length; }

    /** @return The handle, which stays with this object. */
    ucp_layout_window_h get() const noexcept { return _handle; }

    /** @return The stock memory handle in the context of map(), or null if there is none. */
    ucp_mem_h memh() const noexcept
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH;
        return ucp_layout_window_query(_handle, &attr) == UCS_OK ? attr.memh : nullptr;
    }

    /** @return Who moves the bytes of the window at present; undecided after a move. */
    ucp_layout_carrier_t carrier() const noexcept
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER;
        return _handle != nullptr && ucp_layout_window_query(_handle, &attr) == UCS_OK ? attr.carrier
                                                                                       : UCP_LAYOUT_CARRIER_UNDECIDED;
    }

    /**
     * As ucp_layout_window_carrier_reason().
     *
     * @param into  Receives the text with a final 0.
     * @return UCS_OK, or the error.
     */
    ucs_status_t carrier_reason(std::span<char> into) const noexcept
    {
        return ucp_layout_window_carrier_reason(_handle, into.data(), into.size());
    }

    /**
     * As ucp_layout_window_memh().
     *
     * @param context  UCP context.
     * @return The stock memory handle in that context, or the error.
     */
    result<ucp_mem_h> memh(ucp_context_h context) const noexcept
    {
        ucp_mem_h          memh   = nullptr;
        const ucs_status_t status = ucp_layout_window_memh(_handle, context, &memh);
        return status == UCS_OK ? result<ucp_mem_h>(memh) : std::unexpected(status);
    }

    /**
     * As ucp_layout_window_detach().
     *
     * @param context  UCP context that will be cleaned up.
     * @return UCS_OK or UCS_ERR_INVALID_PARAM.
     */
    ucs_status_t detach(ucp_context_h context) noexcept { return ucp_layout_window_detach(_handle, context); }

    /**
     * As ucp_layout_rebind().
     *
     * @param to  Base address of every source.
     * @return UCS_OK, or the error; the window then shows the same bases as before.
     */
    ucs_status_t rebind(std::span<const void *const> to) noexcept
    {
        return ucp_layout_rebind(_handle, const_cast<void *const *>(to.data()), layout::count(to));
    }

    /**
     * As ucp_layout_window_bases().
     *
     * @param into  Receives the base address of every source; holds at least num_sources of them.
     * @return UCS_OK or UCS_ERR_BUFFER_TOO_SMALL.
     */
    ucs_status_t bases(std::span<void *> into) const noexcept
    {
        return ucp_layout_window_bases(_handle, into.data(), layout::count(into));
    }

private:
    window() = default;

    ucp_layout_window_h _handle  = nullptr;
    void               *_address = nullptr;
    std::size_t         _length  = 0;
};

} // namespace ucx_layout

#endif
