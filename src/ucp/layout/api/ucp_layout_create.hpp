/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_create.hpp
 * The owner of a layout. Part of ucp_layout.hpp.
 */

#ifndef UCP_LAYOUT_CREATE_HPP_
#define UCP_LAYOUT_CREATE_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

#include "ucp_layout_view.hpp"

/** The C++ API. */
namespace ucx_layout
{

/** Owns a ucp_layout_h. */
class layout
{
public:
    using dim         = ucp_layout_dim_t;         /**< One dimension */
    using element     = ucp_layout_element_t;     /**< The element that repeats: bytes, or a layout */
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
     * @param params  Describe the layout.
     * @return The layout, or the error.
     */
    static result<layout> create(const ucp_layout_params_t &params) noexcept
    {
        return make([&](ucp_layout_h *layout) { return ucp_layout_create(&params, layout); });
    }

    /**
     * Elements in sequence, each at the extent of the one before.
     *
     * @param count  Number of elements; 0: no bytes.
     * @param item   The element.
     * @return The layout, or the error.
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
     * @return The layout, or the error.
     */
    static result<layout> create_contig(std::size_t length) noexcept { return create_contig(1, bytes(length)); }

    /**
     * An element repeated in several dimensions.
     *
     * @param item  The element.
     * @param dims  Outermost (slowest) dimension first, at most UCP_LAYOUT_MAX_DEPTH.
     * @return The layout, or the error.
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
     * @return The layout, or the error.
     */
    static result<layout> create_strided(std::size_t length, std::initializer_list<dim> dims) noexcept
    {
        return create_strided(bytes(length), std::span(dims.begin(), dims.size()));
    }

    /**
     * Parts at any offsets of any sources, in sequence.
     *
     * @param parts  In packed order.
     * @return The layout, or the error.
     */
    static result<layout> concatenate(std::span<const iov> parts) noexcept
    {
        return make([&](ucp_layout_h *layout) { return ucp_layout_concatenate(parts.data(), parts.size(), layout); });
    }

    /**
     * Some elements of each source in turn.
     *
     * @param sources  In the order of each cycle.
     * @return The layout, or the error.
     */
    static result<layout> interleave(std::span<const interleaved> sources) noexcept
    {
        return make(
            [&](ucp_layout_h *layout) { return ucp_layout_interleave(sources.data(), sources.size(), layout); });
    }

    /**
     * The elements of a view, beginning at data_handle(), the last dimension fastest.
     *
     * @param view  The view; only its shape is read.
     * @return The layout, or the error.
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
     * As ucp_layout_from_iov().
     *
     * @param list  The buffers in packed order.
     * @param base  The base address that the layout is going to be mapped with, usually the first buffer.
     * @return The layout, or the error.
     */
    static result<layout> from_iov(std::span<const ucp_dt_iov_t> list, const void *base) noexcept
    {
        return make([&](ucp_layout_h *layout) { return ucp_layout_from_iov(list.data(), list.size(), base, layout); });
    }

    /**
     * As ucp_layout_parse().
     *
     * @param text  "strided(4096,64,128)"
     * @return The layout, or the error.
     */
    static result<layout> parse(const char *text) noexcept
    {
        return make([&](ucp_layout_h *layout) { return ucp_layout_parse(text, layout); });
    }

    /**
     * Reads the bytes of @ref serialize. The bytes may be hostile.
     *
     * @param from  The bytes.
     * @return The layout, or the error.
     */
    static result<layout> deserialize(std::span<const std::byte> from) noexcept
    {
        return make([&](ucp_layout_h *layout) { return ucp_layout_deserialize(from.data(), from.size(), layout); });
    }

    /**
     * As ucp_layout_query().
     *
     * @param fields  The attributes to fill in: UCP_LAYOUT_ATTR_FIELD_*.
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
     * As ucp_layout_query_bounds(), with all fields.
     *
     * @param source  The source, below num_sources.
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
     * @param into  Receives the bytes; holds at least serialized_length bytes (see query()).
     * @return The bytes written, or UCS_ERR_BUFFER_TOO_SMALL.
     */
    result<std::size_t> serialize(std::span<std::byte> into) const noexcept
    {
        std::size_t        length = into.size();
        const ucs_status_t status = ucp_layout_serialize(get(), into.data(), &length);
        return status == UCS_OK ? result<std::size_t>(length) : std::unexpected(status);
    }

    /**
     * As ucp_layout_gather(): copies a packed range from described memory, without UCP.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param into    Receives as many packed bytes as it holds.
     * @return UCS_OK, or the error; nothing was copied then.
     */
    ucs_status_t gather(std::span<const void *const> bases, std::size_t offset,
                        std::span<std::byte> into) const noexcept
    {
        return ucp_layout_gather(get(), const_cast<void *const *>(bases.data()), count(bases), offset, into.size(),
                                 into.data());
    }

    /**
     * As ucp_layout_scatter(): copies contiguous bytes into described memory, without UCP.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param from    The bytes.
     * @return UCS_OK, or the error; nothing was copied then.
     */
    ucs_status_t scatter(std::span<void *const> bases, std::size_t offset,
                         std::span<const std::byte> from) const noexcept
    {
        return ucp_layout_scatter(get(), bases.data(), count(bases), offset, from.size(), from.data());
    }

    /**
     * As ucp_layout_copy(): copies a packed range from memory that another layout describes, without UCP.
     *
     * @param bases        Base address of every source of this layout, to be written.
     * @param offset       First packed byte to write.
     * @param from         The layout of the memory to read; may be this one.
     * @param from_bases   Base address of every source of it.
     * @param from_offset  First packed byte to read.
     * @param length       Packed bytes.
     * @return UCS_OK, or the error; nothing was copied then.
     */
    ucs_status_t copy(std::span<void *const> bases, std::size_t offset, const layout &from,
                      std::span<const void *const> from_bases, std::size_t from_offset,
                      std::size_t length) const noexcept
    {
        return ucp_layout_copy(get(), bases.data(), count(bases), offset, from.get(),
                               const_cast<void *const *>(from_bases.data()), count(from_bases), from_offset, length);
    }

    /** @return Bytes described; 0 after a move. */
    std::size_t packed_length() const noexcept
    {
        return get() == nullptr
                   ? 0
                   : query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH).value_or(ucp_layout_attr_t{}).packed_length;
    }

    /** @return This layout as an element of another one, after whose creation this one may be released. */
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

    // A count beyond the type's range fails like any other wrong number.
    template <typename Pointer>
    static std::uint32_t count(std::span<Pointer> bases) noexcept
    {
        return bases.size() > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(bases.size());
    }

    template <typename Create>
    static result<layout> make(Create &&call) noexcept
    {
        ucp_layout_h       created = nullptr;
        const ucs_status_t status  = call(&created);
        return status == UCS_OK ? result<layout>(layout(created)) : std::unexpected(status);
    }

    std::unique_ptr<ucp_layout, destroy> _handle;
};

} // namespace ucx_layout

#endif
