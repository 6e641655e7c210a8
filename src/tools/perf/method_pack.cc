#include "method_pack.h"

#include "tools/common/failure.h"

#include <cstring>

namespace ucxl::perf
{

namespace
{

constexpr std::size_t cache_line = 64;

} // namespace

pack_method::staging pack_method::staging::create(session& session, std::size_t length, unsigned slots, bool registered)
{
    const std::size_t distance = (length + cache_line - 1) / cache_line * cache_line;
    staging result{.length       = length,
                   .distance     = distance,
                   .memory       = anonymous_mapping::create(distance * slots),
                   .registration = {}};
    std::memset(result.memory.data(), 0, result.memory.size());
    if (registered) {
        result.registration = registered_memory::create(session.context(), result.memory.data(), result.memory.size());
    }
    return result;
}

pack_method::pack_method(session& session, image_pair& images, unsigned slots, bool registered)
    : method(images), _packing(images.source.blocks()), _unpacking(images.destination.blocks()),
      _outgoing(staging::create(session, images.source.packed_length(), slots, registered)),
      _incoming(staging::create(session, images.destination.packed_length(), slots, registered))
{
}

} // namespace ucxl::perf
