#include "staged_copies.h"

#include "uct/ib/mlx5/layout/domain.h"

#include <algorithm>
#include <cstring>

namespace ucxl::mlx5
{

result<std::unique_ptr<staged_copies>> staged_copies::create(ibv_pd* pd)
{
    constexpr std::uint32_t depth = 2; // one request at a time
    auto queue                    = UCXL_TRY(bind_queue::open(pd, domain::default_port, depth, false));
    std::unique_ptr<staged_copies> created(new staged_copies(std::move(queue)));
    created->_buffer = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
    created->_registration.reset(
        ibv_reg_mr(pd, created->_buffer.get(), buffer_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (created->_registration == nullptr) {
        return fail_errno("registering a buffer for copies of imported memory");
    }
    return created;
}

// The queue pair is connected to itself: it gathers by a local key and writes to a remote one.
result<void> staged_copies::move(const ibv_sge& from, std::uint64_t to, std::uint32_t rkey)
{
    if (!UCXL_TRY(_queue.attempt_write(from, to, rkey))) {
        return fail(errc::io_error, std::format("{} bytes at 0x{:x} or 0x{:x} are not reached by their keys any more",
                                                from.length, from.addr, to));
    }
    return {};
}

result<void> staged_copies::read(std::uint32_t key, std::uintptr_t address, std::uint64_t length, void* target)
{
    const std::lock_guard guard(_lock);
    auto* bytes = static_cast<std::byte*>(target);
    while (length > 0) {
        const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, buffer_bytes));
        UCXL_TRY(move({.addr = address, .length = part, .lkey = key}, reinterpret_cast<std::uintptr_t>(_buffer.get()),
                      _registration->rkey));
        std::memcpy(bytes, _buffer.get(), part);
        address += part;
        bytes += part;
        length -= part;
    }
    return {};
}

result<void> staged_copies::write(std::uint32_t key, std::uintptr_t address, std::uint64_t length, const void* source)
{
    const std::lock_guard guard(_lock);
    const auto* bytes = static_cast<const std::byte*>(source);
    while (length > 0) {
        const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, buffer_bytes));
        std::memcpy(_buffer.get(), bytes, part);
        UCXL_TRY(
            move({.addr = reinterpret_cast<std::uintptr_t>(_buffer.get()), .length = part, .lkey = _registration->lkey},
                 address, key));
        address += part;
        bytes += part;
        length -= part;
    }
    return {};
}

} // namespace ucxl::mlx5
