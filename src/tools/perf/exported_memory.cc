#include "exported_memory.h"

namespace ucxl::perf
{

using tools::check;

namespace
{

constexpr std::size_t max_handle_length = 1 << 16;

struct exported_header {
    std::uint64_t address;
    std::uint64_t length;
};

} // namespace

exported_memory exported_memory::create(ucp_mem_h memh, std::uint64_t address, std::uint64_t length)
{
    if (memh == nullptr) {
        tools::give_up("the method registers no memory that could be exported");
    }
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer              = nullptr;
    std::size_t handle_length = 0;
    check(ucp_memh_pack(memh, &params, &buffer, &handle_length),
          "ucp_memh_pack with EXPORT (needs an mlx5 device, and for a window a hardware key)");
    const auto* const first = static_cast<const std::byte*>(buffer);
    exported_memory made{.address = address, .length = length, .handle = {first, first + handle_length}};
    const ucp_memh_buffer_release_params_t release{};
    ucp_memh_buffer_release(buffer, &release);
    return made;
}

void exported_memory::send(oob_socket& peer) const
{
    peer.send_with(oob_kind::exported, exported_header{.address = address, .length = length}, handle);
}

exported_memory exported_memory::receive(oob_socket& peer)
{
    auto [header, handle] =
        peer.receive_with<exported_header>(oob_kind::exported, max_handle_length, "an exported handle");
    return {.address = header.address, .length = header.length, .handle = std::move(handle)};
}

imported_memory imported_memory::create(ucp_context_h context, const exported_memory& exported)
{
    const auto handle = tools::padded(exported.handle);
    ucp_mem_map_params_t params{};
    params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
    params.exported_memh_buffer = handle.data();
    imported_memory made;
    made._context = context;
    check(ucp_mem_map(context, &params, &made._memh),
          "ucp_mem_map of exported memory (needs another function of the same device, --devices)");
    return made;
}

} // namespace ucxl::perf
