#include "dpu.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <sys/mman.h>

namespace ucxl::test
{

namespace
{

constexpr std::size_t staging_bytes = 1 << 20;

} // namespace

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

// Nothing of imported memory may be copied by the CPU.
context_options dpu_context(bool caches_imports)
{
    context_options options{.config = {{"TLS", "rc_x,lay_copy"}, {"NET_DEVICES", dpu_device}, {"ZCOPY_THRESH", "0"}}};
    options.features |= caches_imports ? UCP_FEATURE_EXPORTED_MEMH : 0;
    return options;
}

dpu_side::dpu_side(ucp_context_h shared)
    : _context(shared), _worker(open_worker(_context)), _staging(_context, staging_bytes)
{
    connect();
}

dpu_side::dpu_side()
    : _own(std::make_unique<test::context>(dpu_context())), _context(_own->get()), _worker(open_worker(_context)),
      _staging(_context, staging_bytes)
{
    connect();
}

dpu_side::~dpu_side()
{
    close();
    ucp_worker_destroy(_worker);
}

void dpu_side::connect()
{
    ucp_ep_params_t params{};
    params.field_mask     = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode       = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    _endpoint             = test::connect(_worker, address_of(_worker), params);
    const ucp_request_param_t plain{};
    check_ok(finish(ucp_ep_flush_nbx(_endpoint, &plain)), "the first flush");
}

void dpu_side::close()
{
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags        = UCP_EP_CLOSE_FLAG_FORCE;
    finish(ucp_ep_close_nbx(_endpoint, &force));
}

ucs_status_t dpu_side::finish(ucs_status_ptr_t request)
{
    const bool may_hang = _patience != std::chrono::milliseconds(0);
    const auto deadline = std::chrono::steady_clock::now() + (may_hang ? _patience : std::chrono::seconds(10));
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(_worker);
        if (std::chrono::steady_clock::now() > deadline) {
            check(may_hang, "a request of the DPU did not end");
            return UCS_ERR_TIMED_OUT;
        }
    }
    return test::finish(request, [] {});
}

ucs_status_t dpu_side::put(const void* from, ucp_mem_h local, std::size_t length, void* to, ucp_mem_h remote)
{
    void* packed     = nullptr;
    std::size_t size = 0;
    ucp_rkey_h key   = nullptr;
    check_ok(ucp_rkey_pack(context(), remote, &packed, &size), "ucp_rkey_pack");
    const auto unpacked = ucp_ep_rkey_unpack(_endpoint, packed, &key);
    ucp_rkey_buffer_release(packed);
    check_ok(unpacked, "ucp_ep_rkey_unpack");
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    param.memh         = local;
    const auto status  = finish(ucp_put_nbx(_endpoint, from, length, reinterpret_cast<std::uint64_t>(to), key, &param));
    if (status == UCS_ERR_TIMED_OUT) {
        return status;
    }
    const ucp_request_param_t plain{};
    const auto flushed = finish(ucp_ep_flush_nbx(_endpoint, &plain));
    if (flushed == UCS_ERR_TIMED_OUT) {
        return flushed;
    }
    ucp_rkey_destroy(key);
    const auto first = status != UCS_OK ? status : flushed;
    if (first != UCS_OK) {
        close();
        connect();
    }
    return first;
}

ucs_status_t dpu_side::read(const imported_memory& memory, const void* address, std::span<std::byte> to)
{
    check(to.size() <= staging_bytes, "{} bytes to read", to.size());
    const auto status = put(address, memory.get(), to.size(), _staging.address(), _staging.memh());
    std::ranges::copy(_staging.bytes().first(to.size()), to.begin());
    return status;
}

ucs_status_t dpu_side::write(const imported_memory& memory, void* address, std::span<const std::byte> from)
{
    check(from.size() <= staging_bytes, "{} bytes to write", from.size());
    std::ranges::copy(from, _staging.address());
    return put(_staging.address(), _staging.memh(), from.size(), address, memory.get());
}

} // namespace ucxl::test
