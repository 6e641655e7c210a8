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
 * movable, not copyable, and release what they own; one that was moved from owns nothing, and may only be assigned to or
 * destroyed. Sizes, offsets and strides are bytes but where elements are named; the outermost dimension comes first.
 * Thread safety is that of the C functions: objects that own different handles may be used by different threads.
 */

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

/** The C++ API. */
namespace ucx_layout
{

/** What a function gives that can fail: the value, or the status of the C function. */
template <typename T>
using result = std::expected<T, ucs_status_t>;

/** What does not concern users. */
namespace detail
{

/** Whether element i of a view is at data_handle()[some sum of strides]: no accessor comes between. */
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
 * What mdspan is in the eyes of this header: a pointer to the first element, and per dimension a size and a distance in
 * elements. std::mdspan and std::submdspan of any extents with layout_left, layout_right or layout_stride, of rank 0 too.
 */
template <typename View>
concept mdspan_like = requires(const View &view, std::size_t dimension) {
    { *view.data_handle() };
    { View::rank() } -> std::convertible_to<std::size_t>;
    { view.extent(dimension) } -> std::convertible_to<std::size_t>;
} && (View::rank() == 0 || requires(const View &view, std::size_t dimension) {
                          { view.stride(dimension) } -> std::convertible_to<std::ptrdiff_t>;
                      });

/** Owns a ucp_layout_h. */
class layout
{
public:
    using dim         = ucp_layout_dim_t;         /**< One dimension */
    using element     = ucp_layout_element_t;     /**< What is repeated: bytes, or a layout */
    using iov         = ucp_layout_iov_t;         /**< One part of @ref concatenate */
    using interleaved = ucp_layout_interleaved_t; /**< One source of @ref interleave */

    /**
     * Takes over a handle.
     *
     * @param handle  A layout, or null.
     */
    explicit layout(ucp_layout_h handle) noexcept : _handle(handle) {}

    /**
     * As ucp_layout_create().
     *
     * @param params  What the layout is.
     * @return The layout, or why there is none.
     */
    static result<layout> create(const ucp_layout_params_t &params) noexcept
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_create(&params, made); });
    }

    /**
     * Elements in a row, at the extent of each.
     *
     * @param count  Elements; 0: no bytes.
     * @param item   The element.
     * @return The layout, or why there is none.
     */
    static result<layout> create_contig(std::size_t count, element item) noexcept
    {
        ucp_layout_params_t params{};
        params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_COUNT;
        params.kind       = UCP_LAYOUT_KIND_CONTIG;
        params.element    = item;
        params.count      = count;
        return create(params);
    }

    /**
     * Contiguous bytes.
     *
     * @param length  Bytes.
     * @return The layout, or why there is none.
     */
    static result<layout> create_contig(std::size_t length) noexcept { return create_contig(1, bytes(length)); }

    /**
     * An element repeated in several dimensions.
     *
     * @param item  The element.
     * @param dims  Outermost (slowest) dimension first, at most UCP_LAYOUT_MAX_DEPTH.
     * @return The layout, or why there is none.
     */
    static result<layout> create_strided(element item, std::span<const dim> dims) noexcept
    {
        ucp_layout_params_t params{};
        params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS;
        params.kind       = UCP_LAYOUT_KIND_STRIDED;
        params.element    = item;
        params.dims       = dims.data();
        params.num_dims   = dims.size() > UINT32_MAX ? UINT32_MAX : static_cast<unsigned>(dims.size());
        return create(params);
    }

    /**
     * Blocks of one length in several dimensions.
     *
     * @param length  Bytes of a block.
     * @param dims    As above: create_strided(8, {{.count = 64, .stride = 1024}}).
     * @return The layout, or why there is none.
     */
    static result<layout> create_strided(std::size_t length, std::initializer_list<dim> dims) noexcept
    {
        return create_strided(bytes(length), std::span(dims.begin(), dims.size()));
    }

    /**
     * Parts at any offsets of any sources, one after another.
     *
     * @param parts  In packed order.
     * @return The layout, or why there is none.
     */
    static result<layout> concatenate(std::span<const iov> parts) noexcept
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_concatenate(parts.data(), parts.size(), made); });
    }

    /**
     * Some elements of each source in turn.
     *
     * @param sources  In the order of each cycle.
     * @return The layout, or why there is none.
     */
    static result<layout> interleave(std::span<const interleaved> sources) noexcept
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_interleave(sources.data(), sources.size(), made); });
    }

    /**
     * The elements a view shows, from its data_handle(), the last dimension fastest.
     *
     * @param view  The view; only its shape is read.
     * @return The layout, or why there is none.
     */
    template <mdspan_like View>
    static result<layout> describe(const View &view) noexcept
    {
        using value = std::remove_cv_t<detail::element_of<View>>;
        static_assert(detail::has_plain_elements<View>,
                      "the accessor of this view computes its elements: there is no memory to describe");
        static_assert(detail::has_strides<View>, "the mapping of this view has no stride per dimension");
        static_assert(std::is_trivially_copyable_v<value>, "elements must be plain bytes");
        constexpr std::size_t rank = View::rank();
        static_assert(rank <= UCP_LAYOUT_MAX_DEPTH, "more dimensions than a layout may have");
        if constexpr (rank == 0) {
            return create_contig(sizeof(value));
        } else {
            dim dims[rank];
            for (std::size_t i = 0; i < rank; ++i) {
                dims[i].count  = static_cast<std::size_t>(view.extent(i));
                dims[i].stride = static_cast<std::ptrdiff_t>(view.stride(i)) * std::ptrdiff_t{sizeof(value)};
            }
            return create_strided(bytes(sizeof(value)), dims);
        }
    }

    /**
     * As ucp_layout_parse().
     *
     * @param text  "strided(4096,64,128)"
     * @return The layout, or why there is none.
     */
    static result<layout> parse(const char *text) noexcept
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_parse(text, made); });
    }

    /**
     * Reads what @ref serialize wrote. The bytes may be hostile.
     *
     * @param from  The bytes.
     * @return The layout, or why there is none.
     */
    static result<layout> deserialize(std::span<const std::byte> from) noexcept
    {
        return make([&](ucp_layout_h *made) { return ucp_layout_deserialize(from.data(), from.size(), made); });
    }

    /**
     * As ucp_layout_query().
     *
     * @param fields  UCP_LAYOUT_ATTR_FIELD_*, what is asked for.
     * @return The attributes, or UCS_ERR_INVALID_PARAM.
     */
    result<ucp_layout_attr_t> query(std::uint64_t fields) const noexcept
    {
        ucp_layout_attr_t attr{};
        attr.field_mask           = fields;
        const ucs_status_t status = ucp_layout_query(get(), &attr);
        return status == UCS_OK ? result<ucp_layout_attr_t>(attr) : std::unexpected(status);
    }

    /**
     * As ucp_layout_query_bounds(), all of them.
     *
     * @param source  Which base address.
     * @return The bounds, or UCS_ERR_INVALID_PARAM.
     */
    result<ucp_layout_bounds_t> query_bounds(std::uint32_t source = 0) const noexcept
    {
        ucp_layout_bounds_t bounds{};
        bounds.field_mask = UCP_LAYOUT_BOUNDS_FIELD_TRUE_LB | UCP_LAYOUT_BOUNDS_FIELD_TRUE_UB |
                            UCP_LAYOUT_BOUNDS_FIELD_LB | UCP_LAYOUT_BOUNDS_FIELD_UB;
        const ucs_status_t status = ucp_layout_query_bounds(get(), source, &bounds);
        return status == UCS_OK ? result<ucp_layout_bounds_t>(bounds) : std::unexpected(status);
    }

    /**
     * As ucp_layout_serialize().
     *
     * @param into  Receives the bytes: at least the attribute serialized_length.
     * @return The bytes written, or UCS_ERR_BUFFER_TOO_SMALL.
     */
    result<std::size_t> serialize(std::span<std::byte> into) const noexcept
    {
        std::size_t        length = into.size();
        const ucs_status_t status = ucp_layout_serialize(get(), into.data(), &length);
        return status == UCS_OK ? result<std::size_t>(length) : std::unexpected(status);
    }

    /**
     * As ucp_layout_gather(): a packed range out of described memory, without UCP.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param into    Receives as many packed bytes as it has.
     * @return UCS_OK, or why nothing was copied.
     */
    ucs_status_t gather(std::span<const void *const> bases, std::size_t offset,
                        std::span<std::byte> into) const noexcept
    {
        return ucp_layout_gather(get(), const_cast<void *const *>(bases.data()), count(bases), offset, into.size(),
                                 into.data());
    }

    /**
     * As ucp_layout_scatter(): contiguous bytes into described memory, without UCP.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param from    The bytes.
     * @return UCS_OK, or why nothing was copied.
     */
    ucs_status_t scatter(std::span<void *const> bases, std::size_t offset,
                         std::span<const std::byte> from) const noexcept
    {
        return ucp_layout_scatter(get(), bases.data(), count(bases), offset, from.size(), from.data());
    }

    /** @return Bytes described; 0 for an object that was moved from. */
    std::size_t packed_length() const noexcept
    {
        return get() == nullptr
                   ? 0
                   : query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH).value_or(ucp_layout_attr_t{}).packed_length;
    }

    /** @return This layout, to be nested in another one; this one may be released after that. */
    element as_element() const noexcept { return {.length = 0, .layout = get()}; }

    /** @return The handle, which stays with this object. */
    ucp_layout_h get() const noexcept { return _handle.get(); }

private:
    friend class window;
    friend class plan;

    struct destroy {
        void operator()(ucp_layout *handle) const noexcept { ucp_layout_destroy(handle); }
    };

    static element bytes(std::size_t length) noexcept { return {.length = length, .layout = nullptr}; }

    // More than the library has is as wrong as any other wrong number.
    template <typename Pointer>
    static std::uint32_t count(std::span<Pointer> bases) noexcept
    {
        return bases.size() > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(bases.size());
    }

    template <typename Create>
    static result<layout> make(Create &&call) noexcept
    {
        ucp_layout_h       made   = nullptr;
        const ucs_status_t status = call(&made);
        return status == UCS_OK ? result<layout>(layout(made)) : std::unexpected(status);
    }

    std::unique_ptr<ucp_layout, destroy> _handle;
};

/** Owns a ucp_layout_window_h. */
class window
{
public:
    /**
     * As ucp_layout_map().
     *
     * @param context  UCP context, or null if only the address is wanted.
     * @param params   What to show.
     * @return The window, or why there is none.
     */
    static result<window> map(ucp_context_h context, const ucp_layout_map_params_t &params) noexcept
    {
        window       made;
        ucs_status_t status = ucp_layout_map(context, &params, &made._handle);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH;
        status          = ucp_layout_window_query(made._handle, &attr);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        made._address = attr.address;
        made._length  = attr.length;
        return made;
    }

    /**
     * A window over memory of the application.
     *
     * @param context  As above.
     * @param shown    The layout; may be released after the call.
     * @param bases    Base address of every source. Memory that is constant can be sent, and must not be received into.
     * @param flags    UCP_LAYOUT_MAP_FLAG_EXCLUSIVE, or 0.
     * @return The window, or why there is none.
     */
    static result<window> map(ucp_context_h context, const layout &shown, std::span<const void *const> bases,
                              unsigned flags = 0) noexcept
    {
        ucp_layout_map_params_t params{};
        params.field_mask =
            UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout    = shown.get();
        params.bases     = const_cast<void *const *>(bases.data());
        params.num_bases = layout::count(bases);
        params.flags     = flags;
        return map(context, params);
    }

    /**
     * A window over memory of the application, of a layout of one source.
     *
     * @param context  As above.
     * @param shown    As above.
     * @param base     The base address. An array of base addresses is none.
     * @param flags    As above.
     * @return The window, or why there is none.
     */
    template <typename T>
        requires(!std::is_pointer_v<T>)
    static result<window> map(ucp_context_h context, const layout &shown, T *base, unsigned flags = 0) noexcept
    {
        const void *const address = base;
        return map(context, shown, std::span<const void *const>(&address, 1), flags);
    }

    /**
     * A window over what a view shows.
     *
     * @param context  As above.
     * @param view     The view; of const elements, too.
     * @param flags    As above.
     * @return The window, or why there is none.
     */
    template <mdspan_like View>
    static result<window> map(ucp_context_h context, const View &view, unsigned flags = 0) noexcept
    {
        const auto shown = layout::describe(view);
        return shown ? map(context, *shown, view.data_handle(), flags) : std::unexpected(shown.error());
    }

    /**
     * A window with zeroed memory of its own, see bases().
     *
     * @param context  As above.
     * @param shown    As above.
     * @return The window, or why there is none.
     */
    static result<window> allocate(ucp_context_h context, const layout &shown) noexcept
    {
        ucp_layout_map_params_t params{};
        params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout     = shown.get();
        params.flags      = UCP_LAYOUT_MAP_FLAG_ALLOCATE;
        return map(context, params);
    }

    /**
     * Takes over what another one owns.
     *
     * @param other  Owns nothing afterwards.
     */
    window(window &&other) noexcept
        : _handle(std::exchange(other._handle, nullptr)), _address(std::exchange(other._address, nullptr)),
          _length(std::exchange(other._length, 0))
    {
    }

    /**
     * Releases what this one owns and takes over what another one does.
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

    /** @return Where the window is, for UCP calls. */
    void *address() const noexcept { return _address; }

    /** @return Packed bytes. */
    std::size_t length() const noexcept { return _length; }

    /** @return The handle, which stays with this object. */
    ucp_layout_window_h get() const noexcept { return _handle; }

    /** @return The stock memory handle in the context of map(), or null where there is none. */
    ucp_mem_h memh() const noexcept
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH;
        return ucp_layout_window_query(_handle, &attr) == UCS_OK ? attr.memh : nullptr;
    }

    /**
     * As ucp_layout_window_memh().
     *
     * @param context  UCP context.
     * @return The stock memory handle in that context, or why there is none.
     */
    result<ucp_mem_h> memh(ucp_context_h context) const noexcept
    {
        ucp_mem_h          made   = nullptr;
        const ucs_status_t status = ucp_layout_window_memh(_handle, context, &made);
        return status == UCS_OK ? result<ucp_mem_h>(made) : std::unexpected(status);
    }

    /**
     * As ucp_layout_window_detach().
     *
     * @param context  UCP context that is to be cleaned up.
     * @return UCS_OK or UCS_ERR_INVALID_PARAM.
     */
    ucs_status_t detach(ucp_context_h context) noexcept { return ucp_layout_window_detach(_handle, context); }

    /**
     * As ucp_layout_rebind().
     *
     * @param to  Base address of every source.
     * @return UCS_OK, or why the window shows what it showed before.
     */
    ucs_status_t rebind(std::span<const void *const> to) noexcept
    {
        return ucp_layout_rebind(_handle, const_cast<void *const *>(to.data()), layout::count(to));
    }

    /**
     * As ucp_layout_window_bases().
     *
     * @param into  Receives the base address of every source: at least as many as there are.
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

/** Owns a ucp_layout_plan_h: a layout compiled for the CPU. Any number of threads may run it. */
class plan
{
public:
    /**
     * As ucp_layout_plan_create().
     *
     * @param described  The layout; may be released after the call.
     * @param count      Layouts, one after another at the extent.
     * @return The plan, or why there is none.
     */
    static result<plan> create(const layout &described, std::size_t count = 1) noexcept
    {
        const ucp_layout_plan_params_t params{UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT, count};
        ucp_layout_plan_h              made   = nullptr;
        const ucs_status_t             status = ucp_layout_plan_create(described.get(), &params, &made);
        return status == UCS_OK ? result<plan>(plan(made)) : std::unexpected(status);
    }

    /**
     * Copies a packed range out of described memory.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param into    Receives as many packed bytes as it has; must not overlap the described ones.
     * @return UCS_OK, or why nothing was copied.
     */
    ucs_status_t gather(std::span<const void *const> bases, std::size_t offset,
                        std::span<std::byte> into) const noexcept
    {
        return ucp_layout_plan_gather(get(), const_cast<void *const *>(bases.data()), layout::count(bases), offset,
                                      into.size(), into.data());
    }

    /**
     * Copies contiguous bytes into described memory.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param from    The bytes; must not overlap the described ones.
     * @return UCS_OK, or why nothing was copied.
     */
    ucs_status_t scatter(std::span<void *const> bases, std::size_t offset,
                         std::span<const std::byte> from) const noexcept
    {
        return ucp_layout_plan_scatter(get(), bases.data(), layout::count(bases), offset, from.size(), from.data());
    }

    /**
     * Copies a packed range of other described memory into a packed range of what this plan describes.
     *
     * @param bases        Base address of every source of this plan.
     * @param offset       First packed byte to write.
     * @param from         Describes the memory to read, which must not overlap.
     * @param from_bases   Base address of every source of that plan.
     * @param from_offset  First packed byte to read.
     * @param length       Packed bytes.
     * @return UCS_OK, or why nothing was copied.
     */
    ucs_status_t copy(std::span<void *const> bases, std::size_t offset, const plan &from,
                      std::span<const void *const> from_bases, std::size_t from_offset,
                      std::size_t length) const noexcept
    {
        return ucp_layout_plan_copy(get(), bases.data(), layout::count(bases), offset, from.get(),
                                    const_cast<void *const *>(from_bases.data()), layout::count(from_bases),
                                    from_offset, length);
    }

    /** @return Bytes of all layouts; 0 for an object that was moved from. */
    std::size_t packed_length() const noexcept
    {
        ucp_layout_plan_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_PLAN_ATTR_FIELD_PACKED_LENGTH;
        return get() != nullptr && ucp_layout_plan_query(get(), &attr) == UCS_OK ? attr.packed_length : 0;
    }

    /** @return The handle, which stays with this object. */
    ucp_layout_plan_h get() const noexcept { return _handle.get(); }

private:
    explicit plan(ucp_layout_plan_h handle) noexcept : _handle(handle) {}

    struct destroy {
        void operator()(ucp_layout_plan *handle) const noexcept { ucp_layout_plan_destroy(handle); }
    };

    std::unique_ptr<ucp_layout_plan, destroy> _handle;
};

/** Owns a UCP datatype made of a layout. To be released after all operations on it. */
class datatype
{
public:
    /**
     * As ucp_layout_datatype_create().
     *
     * @param described  The layout; may be released after the call.
     * @return The datatype, or why there is none.
     */
    static result<datatype> create(const layout &described) noexcept
    {
        ucp_datatype_t     made   = 0;
        const ucs_status_t status = ucp_layout_datatype_create(described.get(), &made);
        return status == UCS_OK ? result<datatype>(datatype(made)) : std::unexpected(status);
    }

    /**
     * Takes over what another one owns.
     *
     * @param other  Owns nothing afterwards.
     */
    datatype(datatype &&other) noexcept : _value(std::exchange(other._value, ucp_datatype_t{0})) {}

    /**
     * Releases what this one owns and takes over what another one does.
     *
     * @param other  Owns nothing afterwards.
     * @return This object.
     */
    datatype &operator=(datatype &&other) noexcept
    {
        datatype taken(std::move(other));
        std::swap(_value, taken._value);
        return *this;
    }

    /** Releases the datatype. */
    ~datatype() { ucp_layout_datatype_destroy(_value); }

    /** @return The datatype for UCP calls, which stays with this object. */
    ucp_datatype_t get() const noexcept { return _value; }

private:
    explicit datatype(ucp_datatype_t value) noexcept : _value(value) {}

    ucp_datatype_t _value; // a generic datatype is never 0
};

} // namespace ucx_layout

#endif
