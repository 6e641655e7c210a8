#include "imported_buffer.h"

#include "examples/common/check.h"

#include <utility>

namespace examples
{

memory_handle::memory_handle(ucp_context_h context, const ucp_mem_map_params_t& params) : _context(context)
{
    check(ucp_mem_map(context, &params, &_memh), "ucp_mem_map");
}

memory_handle::~memory_handle()
{
    ucp_mem_unmap(_context, _memh);
}

std::string memory_handle::packed_key() const
{
    void* key          = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(_context, _memh, &key, &length), "ucp_rkey_pack");
    std::string packed(static_cast<const char*>(key), length);
    ucp_rkey_buffer_release(key);
    return packed;
}

static ucp_mem_map_params_t params_of(void* address, std::size_t length)
{
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = address;
    params.length     = length;
    return params;
}

mapped_memory::mapped_memory(ucp_context_h context, void* address, std::size_t length)
    : memory_handle(context, params_of(address, length))
{
}

static ucp_mem_map_params_t params_of(const exported_buffer& exported)
{
    ucp_mem_map_params_t params{};
    params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
    params.exported_memh_buffer = exported.handle.data();
    return params;
}

imported_buffer::imported_buffer(ucp_context_h context, const exported_buffer& exported)
    : _address(exported.address), _length(exported.length), _memory(context, params_of(exported))
{
}

ucp_request_param_t imported_buffer::param() const
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    param.memh         = _memory.get();
    return param;
}

remote_key::remote_key(ucp_ep_h endpoint, const std::string& packed)
{
    check(ucp_ep_rkey_unpack(endpoint, packed.data(), &_key), "ucp_ep_rkey_unpack");
}

remote_key::~remote_key()
{
    if (_key != nullptr) {
        ucp_rkey_destroy(_key);
    }
}

remote_key::remote_key(remote_key&& other) noexcept : _key(std::exchange(other._key, nullptr))
{
}

} // namespace examples
