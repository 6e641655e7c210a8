/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

// C++23 over ucp_layout.h: owners for the three handles, and layouts straight from anything shaped like std::mdspan.
// Header only; nothing throws, failures come back as std::expected with the status the C function logged.
//
//     auto column = ucx_layout::layout::of(std::layout_stride view of the matrix);
//     auto window = ucx_layout::window::map(context, *column, matrix.data_handle());
//     ucp_tag_send_nbx(ep, window->address(), window->length(), tag, &param);
//
// Objects are movable, not copyable, and release what they own. Thread safety is that of the C functions.

#ifndef UCP_LAYOUT_HPP_
#define UCP_LAYOUT_HPP_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <ucp_layout.h>

namespace ucx_layout
{

template <typename T>
using result = std::expected<T, ucs_status_t>;

// What mdspan is in the eyes of this header: a pointer, and per dimension a size and a distance in elements.
template <typename T>
concept mdspan_like = requires(const T &view, std::size_t dimension) {
    { *view.data_handle() };
    { T::rank() } -> std::convertible_to<std::size_t>;
    { view.extent(dimension) } -> std::convertible_to<std::size_t>;
    { view.stride(dimension) } -> std::convertible_to<std::ptrdiff_t>;
};

class layout
{
public:
    using dim         = ucp_layout_dim_t;
    using element     = ucp_layout_element_t;
    using iov         = ucp_layout_iov_t;
    using interleaved = ucp_layout_interleaved_t;

    // Takes over a handle.
    explicit layout(ucp_layout_h handle) : _handle(handle) {}

    static result<layout> create(const ucp_layout_params_t &params)
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_create(&params, made); });
    }

    static result<layout> contig(std::size_t count, element item)
    {
        ucp_layout_params_t params{};
        params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_COUNT;
        params.kind       = UCP_LAYOUT_KIND_CONTIG;
        params.element    = item;
        params.count      = count;
        return create(params);
    }

    // Outermost (slowest) dimension first.
    static result<layout> strided(element item, std::span<const dim> dims)
    {
        ucp_layout_params_t params{};
        params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS;
        params.kind       = UCP_LAYOUT_KIND_STRIDED;
        params.element    = item;
        params.dims       = dims.data();
        params.num_dims   = static_cast<unsigned>(dims.size());
        return create(params);
    }

    static result<layout> strided(std::size_t length, std::initializer_list<dim> dims)
    {
        return strided({.length = length, .layout = nullptr}, std::span(dims.begin(), dims.size()));
    }

    static result<layout> list(std::span<const iov> parts)
    {
        ucp_layout_params_t params{};
        params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV;
        params.kind       = UCP_LAYOUT_KIND_IOV;
        params.iov        = parts.data();
        params.num_iov    = parts.size();
        return create(params);
    }

    static result<layout> interleave(std::span<const interleaved> sources)
    {
        ucp_layout_params_t params{};
        params.field_mask      = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_INTERLEAVED;
        params.kind            = UCP_LAYOUT_KIND_INTERLEAVED;
        params.interleaved     = sources.data();
        params.num_interleaved = sources.size();
        return create(params);
    }

    // The elements a view shows, from its data_handle(), the last dimension fastest.
    template <mdspan_like View>
    static result<layout> of(const View &view)
    {
        using value_type = std::remove_cvref_t<decltype(*view.data_handle())>;
        static_assert(std::is_trivially_copyable_v<value_type>, "elements must be plain bytes");
        constexpr std::size_t rank = View::rank();
        static_assert(rank <= UCP_LAYOUT_MAX_DEPTH, "more dimensions than a layout may have");
        dim dims[rank > 0 ? rank : 1];
        for (std::size_t i = 0; i < rank; ++i) {
            dims[i].count = static_cast<std::size_t>(view.extent(i));
            dims[i].stride =
                static_cast<std::ptrdiff_t>(view.stride(i)) * static_cast<std::ptrdiff_t>(sizeof(value_type));
        }
        return strided({.length = sizeof(value_type), .layout = nullptr}, std::span<const dim>(dims, rank));
    }

    static result<layout> parse(const char *text)
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_parse(text, made); });
    }

    static result<layout> unpack(std::span<const std::byte> wire)
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_unpack(wire.data(), wire.size(), made); });
    }

    result<ucp_layout_attr_t> query(std::uint64_t fields, std::uint32_t source = 0) const
    {
        ucp_layout_attr_t attr{};
        attr.field_mask           = fields;
        attr.source               = source;
        const ucs_status_t status = ucp_layout_query(get(), &attr);
        return status == UCS_OK ? result<ucp_layout_attr_t>(attr) : std::unexpected(status);
    }

    std::size_t packed_length() const { return query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH)->packed_length; }

    // To be nested in another layout; this one may be released after that.
    element nested() const { return {.length = 0, .layout = get()}; }

    ucp_layout_h get() const { return _handle.get(); }

private:
    struct destroy {
        void operator()(ucp_layout *handle) const { ucp_layout_destroy(handle); }
    };

    template <typename Create>
    static result<layout> make(Create &&call)
    {
        ucp_layout_h       made   = nullptr;
        const ucs_status_t status = call(&made);
        return status == UCS_OK ? result<layout>(layout(made)) : std::unexpected(status);
    }

    std::unique_ptr<ucp_layout, destroy> _handle;
};

class window
{
public:
    static result<window> map(ucp_context_h context, const ucp_layout_map_params_t &params)
    {
        window             made;
        const ucs_status_t status = ucp_layout_map(context, &params, &made._memh, &made._address);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        made._context = context;
        ucp_layout_mem_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_MEM_ATTR_FIELD_LENGTH;
        static_cast<void>(ucp_layout_mem_query(made._memh, &attr)); // cannot fail for a window just made
        made._length = attr.length;
        return made;
    }

    // One base address for every source of the layout.
    static result<window> map(ucp_context_h context, const layout &of, std::span<void *const> bases)
    {
        ucp_layout_map_params_t params{};
        params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
        params.layout     = of.get();
        params.bases      = bases.data();
        params.num_bases  = static_cast<std::uint32_t>(bases.size());
        return map(context, params);
    }

    static result<window> map(ucp_context_h context, const layout &of, void *base)
    {
        return map(context, of, std::span<void *const>(&base, 1));
    }

    // A window over what a view shows.
    template <mdspan_like View>
    static result<window> map(ucp_context_h context, const View &view)
    {
        return layout::of(view).and_then([&](const layout &of) { return map(context, of, view.data_handle()); });
    }

    // With zeroed memory of its own, see bases().
    static result<window> allocate(ucp_context_h context, const layout &of)
    {
        ucp_layout_map_params_t params{};
        params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout     = of.get();
        params.flags      = UCP_LAYOUT_MAP_FLAG_ALLOCATE;
        return map(context, params);
    }

    window(window &&other) noexcept
        : _context(std::exchange(other._context, nullptr)), _memh(std::exchange(other._memh, nullptr)),
          _address(std::exchange(other._address, nullptr)), _length(std::exchange(other._length, 0))
    {
    }

    window &operator=(window &&other) noexcept
    {
        if (this != &other) {
            release();
            _context = std::exchange(other._context, nullptr);
            _memh    = std::exchange(other._memh, nullptr);
            _address = std::exchange(other._address, nullptr);
            _length  = std::exchange(other._length, 0);
        }
        return *this;
    }

    ~window() { release(); }

    void       *address() const { return _address; }
    std::size_t length() const { return _length; } // bytes, packed
    ucp_mem_h   memh() const { return _memh; }

    ucs_status_t rebind(std::span<void *const> bases)
    {
        return ucp_layout_rebind(_memh, bases.data(), static_cast<std::uint32_t>(bases.size()));
    }

    // Fills in the base address of every source; into.size() must be at least their number.
    ucs_status_t bases(std::span<void *> into) const
    {
        ucp_layout_mem_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_MEM_ATTR_FIELD_BASES;
        attr.bases      = into.data();
        attr.num_bases  = static_cast<std::uint32_t>(into.size());
        return ucp_layout_mem_query(_memh, &attr);
    }

private:
    window() = default;

    void release()
    {
        if (_context != nullptr) {
            ucp_layout_unmap(_context, _memh);
        }
    }

    ucp_context_h _context = nullptr;
    ucp_mem_h     _memh    = nullptr;
    void         *_address = nullptr;
    std::size_t   _length  = 0;
};

class datatype
{
public:
    static result<datatype> create(const layout &of)
    {
        ucp_datatype_t     made   = 0;
        const ucs_status_t status = ucp_layout_datatype_create(of.get(), &made);
        return status == UCS_OK ? result<datatype>(datatype(made)) : std::unexpected(status);
    }

    datatype(datatype &&other) noexcept : _value(std::exchange(other._value, ucp_datatype_t{0})) {}

    datatype &operator=(datatype &&other) noexcept
    {
        std::swap(_value, other._value);
        return *this;
    }

    ~datatype()
    {
        if (_value != 0) {
            ucp_layout_datatype_destroy(_value);
        }
    }

    ucp_datatype_t get() const { return _value; }

private:
    explicit datatype(ucp_datatype_t value) : _value(value) {}

    ucp_datatype_t _value; // a generic datatype is never 0
};

} // namespace ucx_layout

#endif
