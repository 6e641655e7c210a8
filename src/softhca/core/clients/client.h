// The processes that use the fabric: how they attach, and how their objects are released when they end.
#pragma once

#include <cstdint>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// Takes a free index of the client table. Returns 0 when all are taken.
client_id enter_client(arena& memory, std::int32_t process, std::uint64_t start_time);

// Releases everything that process made, and its index. Under the lock.
void release_client(environment& device, client_id client);

// Releases every process that died without detaching. Returns how many there were.
unsigned release_dead_clients(environment& device);

// Called when the last holder of the lock died in the middle of a change: releases it and recounts the counters.
void repair(environment& device);

// Holds the lock of the host for a scope. Repairs the state when its last holder died.
class locked
{
public:
    explicit locked(environment& device) : _device(device)
    {
        if (_device.outside.lock()) {
            repair(_device);
        }
    }

    ~locked() { _device.outside.unlock(); }
    locked(const locked&)            = delete;
    locked& operator=(const locked&) = delete;

private:
    environment& _device;
};

} // namespace ucxl::softhca
