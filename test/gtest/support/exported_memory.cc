#include "exported_memory.h"

#include <algorithm>
#include <array>

#include <sys/mman.h>

namespace ucxl::test
{

std::vector<std::byte> exported(ucp_mem_h memh)
{
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer       = nullptr;
    std::size_t length = 0;
    if (ucp_memh_pack(memh, &params, &buffer, &length) != UCS_OK) {
        return {};
    }
    const auto* const first = static_cast<const std::byte*>(buffer);
    std::vector<std::byte> packed(first, first + length);
    const ucp_memh_buffer_release_params_t release{};
    ucp_memh_buffer_release(buffer, &release);
    return packed;
}

bool is_of_the_library(std::span<const std::byte> packed)
{
    constexpr std::array<unsigned char, 6> mark{0xff, 0xff, 0xff, 0xff, 0x6c, 0x78};
    return !std::ranges::search(packed, std::as_bytes(std::span(mark))).empty();
}

plain_buffer::plain_buffer(ucp_context_h context, std::size_t length) : _context(context)
{
    void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap failed");
    _bytes = std::span(static_cast<std::byte*>(memory), length);
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = memory;
    params.length     = length;
    const auto status = ucp_mem_map(context, &params, &_memh);
    if (status != UCS_OK) {
        munmap(memory, length);
    }
    check_ok(status, "ucp_mem_map");
}

plain_buffer::~plain_buffer()
{
    unmap();
    munmap(_bytes.data(), _bytes.size());
}

void plain_buffer::unmap()
{
    if (_memh != nullptr) {
        ucp_mem_unmap(_context, _memh);
    }
    _memh = nullptr;
}

imported_memory::imported_memory(ucp_context_h context, std::span<const std::byte> packed) : _context(context)
{
    ucp_mem_map_params_t params{};
    params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
    params.exported_memh_buffer = packed.data();
    _status                     = ucp_mem_map(context, &params, &_memh);
}

imported_memory::~imported_memory()
{
    if (_status == UCS_OK) {
        ucp_mem_unmap(_context, _memh);
    }
}

} // namespace ucxl::test
