#include "rdma_memory.h"

#include "tools/common/failure.h"
#include "tools/common/log.h"

namespace ucxl::perf
{

using tools::check;
using tools::give_up;

rdma_memory rdma_memory::create(ucp_process& owner, std::size_t length)
{
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.length      = length;
    params.flags       = UCP_MEM_MAP_ALLOCATE;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    rdma_memory memory;
    {
        const tools::held_log log;
        const ucs_status_t status = ucp_mem_map(owner.context(), &params, &memory._memh);
        if (status != UCS_OK) {
            memory._memh = nullptr;
            give_up("-m rdma: no device gives {} bytes of its memory ({}). It takes a network card with device memory "
                    "and a transport of it in UCX_TLS, as rc_x; -m host needs none",
                    length, log.text(ucs_status_string(status)));
        }
    }
    memory._owner = &owner;
    ucp_mem_attr_t attr{};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_MEM_TYPE;
    check(ucp_mem_query(memory._memh, &attr), "ucp_mem_query");
    if (attr.mem_type != UCS_MEMORY_TYPE_RDMA) {
        give_up("-m rdma: ucp_mem_map gave memory of type {}", ucs_memory_type_names[attr.mem_type]);
    }
    memory._address = reinterpret_cast<std::uintptr_t>(attr.address);
    memory._key     = tools::unpack_key(owner.loopback(), tools::pack_key(owner.context(), memory._memh));
    return memory;
}

rdma_memory::~rdma_memory()
{
    _key.reset();
    if (_memh != nullptr) {
        ucp_mem_unmap(_owner->context(), _memh);
    }
}

void rdma_memory::swap(rdma_memory& other) noexcept
{
    std::swap(_owner, other._owner);
    std::swap(_memh, other._memh);
    std::swap(_address, other._address);
    std::swap(_key, other._key);
}

void rdma_memory::write(std::size_t offset, std::span<const std::byte> source)
{
    const ucp_request_param_t param{};
    _owner->finish(ucp_put_nbx(_owner->loopback(), source.data(), source.size(), _address + offset, _key.get(), &param),
                   "ucp_put_nbx");
    flush();
}

void rdma_memory::read(std::size_t offset, std::span<std::byte> destination)
{
    const ucp_request_param_t param{};
    _owner->finish(
        ucp_get_nbx(_owner->loopback(), destination.data(), destination.size(), _address + offset, _key.get(), &param),
        "ucp_get_nbx");
}

void rdma_memory::flush()
{
    const ucp_request_param_t param{};
    _owner->finish(ucp_ep_flush_nbx(_owner->loopback(), &param), "ucp_ep_flush_nbx");
}

} // namespace ucxl::perf
