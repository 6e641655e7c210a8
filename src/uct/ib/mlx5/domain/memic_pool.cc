#include "memic_pool.h"

#include <algorithm>
#include <utility>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint64_t most_chunk_bytes = std::uint64_t{64} << 10;

constexpr std::uint64_t whole_units(std::uint64_t bytes)
{
    return (bytes + device_memory::unit - 1) / device_memory::unit * device_memory::unit;
}

// Every chunk takes whole pages of the device's BAR (Linux, drivers/infiniband/hw/mlx5/dm.c, mlx5_cmd_alloc_memic), so
// small chunks waste it. Programs that run beside this one need room, too.
std::uint64_t chunk_length(std::uint64_t wanted, std::uint64_t limit)
{
    if (wanted == 0) {
        wanted = std::min(most_chunk_bytes, limit / 4);
    }
    wanted = std::clamp(wanted, device_memory::unit, limit);
    return wanted / device_memory::unit * device_memory::unit;
}

} // namespace

result<std::unique_ptr<memic_pool>> memic_pool::create(domain& domain, address_source& addresses,
                                                       const memic_options& options)
{
    if (domain.found.address == address_method::none) {
        return fail(errc::unsupported, "device memory needs keys with addresses, but all keys of this device begin at "
                                       "0");
    }
    ibv_device_attr_ex device{};
    if (const int error = ibv_query_device_ex(domain.pd->context, nullptr, &device); error != 0) {
        return fail_errno("the size of the device's memory", error);
    }
    if (device.max_dm_size < device_memory::unit) {
        return fail(errc::unsupported, "the device has no memory to give (max_dm_size is 0)");
    }
    const std::uint64_t chunk_bytes = chunk_length(options.chunk_bytes, device.max_dm_size);
    return std::unique_ptr<memic_pool>(new memic_pool(domain, addresses, device.max_dm_size, chunk_bytes));
}

std::unexpected<error> memic_pool::no_memory(std::uint64_t length, std::string_view reason) const
{
    const memic_statistics now = statistics();
    return fail(errc::no_memory,
                std::format("{} bytes of device memory: {}; {} bytes are in use here and {} in gaps, the device has {} "
                            "for all programs",
                            length, reason, now.bytes - now.free_bytes, now.free_bytes, now.limit));
}

result<memic_allocation> memic_pool::allocate(std::uint64_t length, memic_sharing sharing)
{
    if (length == 0) {
        return fail(errc::invalid_param, "an allocation of 0 bytes of device memory");
    }
    if (length > _limit || whole_units(length) > _limit) {
        return no_memory(length, "more than the device can have");
    }
    const std::uint64_t rounded = granule_allocator::rounded(length);
    const bool is_private       = sharing == memic_sharing::exclusive || rounded > _chunk_bytes;
    if (!is_private) {
        if (const auto taken = take_from_chunks(rounded)) {
            return cleared(*taken);
        }
    }
    return cleared(UCXL_TRY(grow(rounded, is_private)));
}

// The spare chunk only if no other one has room, so that it can be released. A private one is full.
memic_pool::chunk_ptr memic_pool::chunk_with_room(std::uint64_t length) const
{
    chunk_ptr spare;
    for (const auto& [address, chunk] : _chunks) {
        if (!chunk->is_private() && chunk->rooms.has_room(length)) {
            if (chunk.get() != _spare) {
                return chunk;
            }
            spare = chunk;
        }
    }
    return spare;
}

std::optional<memic_pool::taken_piece> memic_pool::take_from_chunks(std::uint64_t length)
{
    const std::lock_guard guard(_lock);
    chunk_ptr chunk = chunk_with_room(length);
    if (chunk == nullptr) {
        return std::nullopt;
    }
    const std::uint64_t offset = *chunk->rooms.take(length);
    if (_spare == chunk.get()) {
        _spare = nullptr;
    }
    return taken_piece{std::move(chunk), offset, length};
}

bool memic_pool::end_spare()
{
    chunk_ptr ended;
    {
        const std::lock_guard guard(_lock);
        if (_spare != nullptr) {
            ended = extract(*std::exchange(_spare, nullptr));
        }
    }
    return ended != nullptr;
}

result<memic_pool::taken_piece> memic_pool::grow(std::uint64_t length, bool is_private)
{
    const std::lock_guard growing(_growth);
    if (!is_private) {
        if (auto taken = take_from_chunks(length)) { // of a chunk that another thread has made meanwhile
            return std::move(*taken);
        }
    }
    auto made = make_chunk(length, is_private);
    if (!made && made.error().code == errc::no_memory && end_spare()) {
        made = make_chunk(length, is_private);
    }
    if (!made) {
        return made.error().code == errc::no_memory ? no_memory(length, made.error().message)
                                                    : std::unexpected(std::move(made).error());
    }
    taken_piece taken{*made, *(*made)->rooms.take(length), length};
    const std::lock_guard guard(_lock);
    _chunks.emplace(reinterpret_cast<std::uintptr_t>((*made)->address()), std::move(*made));
    return taken;
}

// Where the device has no room for a whole chunk, a smaller one is tried, down to what is needed.
result<memic_pool::chunk_ptr> memic_pool::make_chunk(std::uint64_t length, bool is_private)
{
    const std::uint64_t least = whole_units(length);
    std::uint64_t bytes       = is_private ? least : _chunk_bytes;
    auto memory               = device_memory::allocate(_domain.pd->context, bytes);
    while (!memory && memory.error().code == errc::no_memory && bytes > least) {
        bytes  = std::max(least, whole_units(bytes / 2));
        memory = device_memory::allocate(_domain.pd->context, bytes);
    }
    if (!memory) {
        return std::unexpected(std::move(memory).error());
    }
    return chunk_ptr(UCXL_TRY(
        memic_chunk::create(_domain, _addresses, std::move(*memory), is_private ? length : bytes, is_private)));
}

// Without a lock: nobody has the address yet.
result<memic_allocation> memic_pool::cleared(const taken_piece& taken)
{
    memic_chunk& chunk       = *taken.chunk;
    std::byte* const address = chunk.address() + taken.offset;
    if (auto done = chunk.memory().clear(taken.offset, taken.length); !done) {
        static_cast<void>(release(address));
        return std::unexpected(std::move(done).error());
    }
    return memic_allocation{address, taken.length, chunk.key()};
}

memic_pool::chunk_ptr memic_pool::extract(const memic_chunk& chunk) noexcept
{
    return std::move(_chunks.extract(reinterpret_cast<std::uintptr_t>(chunk.address())).mapped());
}

memic_pool::chunk_ptr memic_pool::retire_if_empty(memic_chunk& chunk) noexcept
{
    if (chunk.rooms.num_pieces() != 0) {
        return nullptr;
    }
    if (chunk.is_private()) {
        return extract(chunk);
    }
    if (_spare == nullptr) {
        _spare = &chunk;
        return nullptr;
    }
    return extract(_spare->length() < chunk.length() ? *std::exchange(_spare, &chunk) : chunk);
}

result<void> memic_pool::release(const void* address)
{
    chunk_ptr ended; // after the guard has gone
    const std::lock_guard guard(_lock);
    const std::optional<place> found = locate(address, 0);
    if (!found || !found->chunk->rooms.give_back(found->offset)) {
        return fail(errc::invalid_param, std::format("no allocation of device memory begins at {}", address));
    }
    ended = retire_if_empty(*found->chunk);
    return {};
}

std::optional<memic_pool::place> memic_pool::locate(const void* address, std::uint64_t length) const
{
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    const auto behind = _chunks.upper_bound(number);
    if (behind == _chunks.begin()) {
        return std::nullopt;
    }
    const auto& [start, chunk] = *std::prev(behind);
    const std::uint64_t offset = number - start;
    const auto piece           = chunk->rooms.find(offset, length);
    return piece ? std::optional(place{chunk.get(), offset, *piece}) : std::nullopt;
}

std::optional<memic_allocation> memic_pool::find(const void* address, std::uint64_t length) const
{
    const std::shared_lock guard(_lock);
    const std::optional<place> found = locate(address, length);
    if (!found) {
        return std::nullopt;
    }
    return memic_allocation{found->chunk->address() + found->piece.offset, found->piece.length, found->chunk->key()};
}

result<memic_pool::place> memic_pool::locate_for_copy(const void* address, std::uint64_t length) const
{
    const std::optional<place> found = locate(address, length);
    if (!found) {
        return fail(errc::invalid_param,
                    std::format("{} bytes from {} are not inside one allocation of device memory", length, address));
    }
    return *found;
}

result<void> memic_pool::copy_out(const void* address, std::uint64_t length, void* to) const
{
    const std::shared_lock guard(_lock);
    const place found = UCXL_TRY(locate_for_copy(address, length));
    return found.chunk->memory().read(found.offset, std::span(static_cast<std::byte*>(to), length));
}

result<void> memic_pool::copy_in(void* address, std::uint64_t length, const void* from)
{
    const std::shared_lock guard(_lock);
    const place found = UCXL_TRY(locate_for_copy(address, length));
    return found.chunk->memory().write(found.offset, std::span(static_cast<const std::byte*>(from), length));
}

memic_statistics memic_pool::statistics() const
{
    const std::shared_lock guard(_lock);
    memic_statistics now{.limit = _limit};
    for (const auto& [address, chunk] : _chunks) {
        ++now.chunks;
        now.allocations += chunk->rooms.num_pieces();
        now.bytes += chunk->length();
        now.free_bytes += chunk->rooms.free_bytes();
    }
    return now;
}

} // namespace ucxl::mlx5
