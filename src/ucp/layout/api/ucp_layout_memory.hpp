/**
 * Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
 * See file LICENSE for terms.
 */

/** @file ucp_layout_memory.hpp
 * The owner of shared memory. Part of ucp_layout.hpp.
 */

#ifndef UCP_LAYOUT_MEMORY_HPP_
#define UCP_LAYOUT_MEMORY_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ucp_layout_create.hpp"

/** The C++ API. */
namespace ucx_layout
{

/** Owns a ucp_layout_memory_h. */
class memory
{
public:
    /**
     * As ucp_layout_memory_create().
     *
     * @param params  Length, and the caller's memory if it is that.
     * @return The memory, or the error.
     */
    static result<memory> create(const ucp_layout_memory_params_t &params) noexcept
    {
        memory       made;
        ucs_status_t status = ucp_layout_memory_create(&params, &made._handle);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        ucp_layout_memory_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS | UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH;
        status          = ucp_layout_memory_query(made._handle, &attr);
        if (status != UCS_OK) {
            return std::unexpected(status);
        }
        made._bytes = {static_cast<std::byte *>(attr.address), attr.length};
        return made;
    }

    /**
     * Zeroed memory that the library allocates.
     *
     * @param length  Bytes, at least 1; rounded up to whole pages.
     * @return The memory, or the error.
     */
    static result<memory> allocate(std::size_t length) noexcept
    {
        ucp_layout_memory_params_t params{};
        params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH;
        params.length     = length;
        return create(params);
    }

    /**
     * Memory of the caller: a shared mapping of a file in memory.
     *
     * @param bytes   The memory, at a page boundary. It must stay until the object ends.
     * @param fd      The file; may be closed after the call.
     * @param offset  Where the memory begins in the file.
     * @return The memory, or the error.
     */
    static result<memory> share(std::span<std::byte> bytes, int fd, std::uint64_t offset = 0) noexcept
    {
        ucp_layout_memory_params_t params{};
        params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                            UCP_LAYOUT_MEMORY_PARAM_FIELD_FD | UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET;
        params.length  = bytes.size();
        params.address = bytes.data();
        params.fd      = fd;
        params.offset  = offset;
        return create(params);
    }

    /**
     * Memory of the caller: a shared mapping of a file in memory, which is found by the address.
     *
     * @param bytes  The memory, at a page boundary. It must stay until the object ends.
     * @return The memory, or the error.
     */
    static result<memory> share(std::span<std::byte> bytes) noexcept { return of_caller(bytes, 0); }

    /**
     * Private memory of the caller, which moves into a file at the same addresses until the object ends.
     *
     * @param bytes  The memory, and what else is on its first and last page. It must stay until the object ends.
     * @return The memory, or the error.
     */
    static result<memory> move(std::span<std::byte> bytes) noexcept
    {
        return of_caller(bytes, UCP_LAYOUT_MEMORY_FLAG_MOVE);
    }

    /**
     * Takes over the memory of another owner.
     *
     * @param other  Owns nothing afterwards.
     */
    memory(memory &&other) noexcept
        : _handle(std::exchange(other._handle, nullptr)), _bytes(std::exchange(other._bytes, {}))
    {
    }

    /**
     * Releases the own memory and takes over that of another owner.
     *
     * @param other  Owns nothing afterwards.
     * @return This object.
     */
    memory &operator=(memory &&other) noexcept
    {
        memory moved(std::move(other));
        std::swap(_handle, moved._handle);
        std::swap(_bytes, moved._bytes);
        return *this;
    }

    /** As ucp_layout_memory_destroy(). */
    ~memory()
    {
        if (_handle != nullptr) {
            ucp_layout_memory_destroy(_handle);
        }
    }

    /** @return The handle, which the object goes on to own. */
    ucp_layout_memory_h get() const noexcept { return _handle; }

    /** @return The memory; if it was moved, with all of its first and last page. */
    std::span<std::byte> bytes() const noexcept { return _bytes; }

private:
    memory() = default;

    static result<memory> of_caller(std::span<std::byte> bytes, uint64_t flags) noexcept
    {
        ucp_layout_memory_params_t params{};
        params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                            UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS;
        params.length  = bytes.size();
        params.address = bytes.data();
        params.flags   = flags;
        return create(params);
    }

    ucp_layout_memory_h  _handle = nullptr;
    std::span<std::byte> _bytes;
};

} // namespace ucx_layout

#endif
