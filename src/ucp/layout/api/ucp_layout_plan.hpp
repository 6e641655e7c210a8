/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_plan.hpp
 * The owners of plans and datatypes. Part of ucp_layout.hpp.
 */

#ifndef UCP_LAYOUT_PLAN_HPP_
#define UCP_LAYOUT_PLAN_HPP_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "ucp_layout_create.hpp"

/** The C++ API. */
namespace ucx_layout
{

/** Owns a ucp_layout_plan_h: a layout compiled for the CPU. Any number of threads may run it. */
class plan
{
public:
    /**
     * As ucp_layout_plan_create().
     *
     * @param layout  The layout; may be released after the call.
     * @param count   Number of layouts, each at the extent of the one before.
     * @return The plan, or the error.
     */
    static result<plan> create(const layout &layout, std::size_t count = 1) noexcept
    {
        const ucp_layout_plan_params_t params{UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT, count};
        ucp_layout_plan_h              created = nullptr;
        const ucs_status_t             status  = ucp_layout_plan_create(layout.get(), &params, &created);
        return status == UCS_OK ? result<plan>(plan(created)) : std::unexpected(status);
    }

    /**
     * Copies a packed range out of described memory.
     *
     * @param bases   Base address of every source.
     * @param offset  First packed byte.
     * @param into    Receives as many packed bytes as it holds; must not overlap the described ones.
     * @return UCS_OK, or the error; nothing was copied then.
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
     * @return UCS_OK, or the error; nothing was copied then.
     */
    ucs_status_t scatter(std::span<void *const> bases, std::size_t offset,
                         std::span<const std::byte> from) const noexcept
    {
        return ucp_layout_plan_scatter(get(), bases.data(), layout::count(bases), offset, from.size(), from.data());
    }

    /**
     * Copies a packed range of other described memory into a packed range of the memory that this plan describes.
     *
     * @param bases        Base address of every source of this plan.
     * @param offset       First packed byte to write.
     * @param from         Describes the memory to read, which must not overlap.
     * @param from_bases   Base address of every source of that plan.
     * @param from_offset  First packed byte to read.
     * @param length       Packed bytes.
     * @return UCS_OK, or the error; nothing was copied then.
     */
    ucs_status_t copy(std::span<void *const> bases, std::size_t offset, const plan &from,
                      std::span<const void *const> from_bases, std::size_t from_offset,
                      std::size_t length) const noexcept
    {
        return ucp_layout_plan_copy(get(), bases.data(), layout::count(bases), offset, from.get(),
                                    const_cast<void *const *>(from_bases.data()), layout::count(from_bases),
                                    from_offset, length);
    }

    /** @return Bytes of all layouts; 0 after a move. */
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

/** Owns a UCP datatype made from a layout. Operations that have started may outlive it. */
class datatype
{
public:
    /**
     * As ucp_layout_datatype_create().
     *
     * @param layout  The layout; may be released after the call.
     * @return The datatype, or the error.
     */
    static result<datatype> create(const layout &layout) noexcept
    {
        ucp_datatype_t     created = 0;
        const ucs_status_t status  = ucp_layout_datatype_create(layout.get(), &created);
        return status == UCS_OK ? result<datatype>(datatype(created)) : std::unexpected(status);
    }

    /**
     * Takes over the datatype of another owner.
     *
     * @param other  Owns nothing afterwards.
     */
    datatype(datatype &&other) noexcept : _value(std::exchange(other._value, ucp_datatype_t{0})) {}

    /**
     * Releases the own datatype and takes over that of another owner.
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
