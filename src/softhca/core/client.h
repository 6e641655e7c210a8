// The processes that use the fabric: how they come, and how what they made goes with them.
#pragma once

#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

// A free index of the client table, made live; 0 when all are taken.
client_id enter_client(arena& memory, std::int32_t process, std::uint64_t start_time);

// Everything that process made, and its index. Under the lock.
void release_client(environment& device, client_id client);

// The same for every process that ended without doing so. Returns how many there were.
unsigned release_dead_clients(environment& device);

// The holder of the lock has died within a change: releases it and brings the counters back in line with the records.
void repair(environment& device);

// The lock of the host for a scope; repairs what its last holder left.
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
