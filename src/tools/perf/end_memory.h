// Contiguous memory of one end of a transfer: of the host, or of a network card; then host memory stands in for it.
//
//     end_memory words = end_memory::create(own, bytes, memory_kind::rdma);
//     words.publish();      // the bytes of the host into the card
//     words.collect();      // and back
//
// Invariant: the ucp_process and the host memory outlive it.
#pragma once

#include "rdma_memory.h"
#include "registered_memory.h"
#include "test_kinds.h"

namespace ucxl::perf
{

// Memory that the peer may put to or get from. Slots are `slot_distance` bytes apart; 0: all are the same.
struct exposed_memory {
    ucp_mem_h memh            = nullptr;
    std::uint64_t address     = 0;
    std::size_t slot_distance = 0;
};

class end_memory
{
public:
    // registers: memory of the host, too.
    static end_memory create(ucp_process& own, std::span<std::byte> host, memory_kind kind, bool registers = true)
    {
        end_memory made;
        made._host = host;
        if (kind == memory_kind::rdma) {
            made._device = rdma_memory::create(own, host.size());
        } else if (registers) {
            made._registered = registered_memory::create(own.context(), host.data(), host.size());
        }
        return made;
    }

    std::size_t size() const { return _host.size(); }
    exposed_memory exposed() const
    {
        return {.memh    = is_device() ? _device.memh() : _registered.memh(),
                .address = is_device() ? _device.address() : reinterpret_cast<std::uintptr_t>(_host.data())};
    }
    void publish()
    {
        if (is_device()) {
            _device.write(0, _host);
        }
    }
    void collect()
    {
        if (is_device()) {
            _device.read(0, _host);
        }
    }

private:
    bool is_device() const { return _device.memh() != nullptr; }

    std::span<std::byte> _host;
    registered_memory _registered;
    rdma_memory _device;
};

} // namespace ucxl::perf
