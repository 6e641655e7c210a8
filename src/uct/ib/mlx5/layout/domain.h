// What the regions of one protection domain share: capabilities, the bind queue, spare keys, memory for entries.
#pragma once

#include <mutex>
#include <unordered_map>

#include "bind_queue.h"
#include "capabilities.h"
#include "key_pool.h"
#include "staging.h"

namespace ucxl::mlx5
{

struct domain {
    domain(ibv_pd* of, const capabilities& device, bind_queue&& opened)
        : pd(of), caps(device), queue(std::move(opened)), keys(of), memory(of)
    {
    }

    ibv_pd* const pd;
    const capabilities caps;

    std::mutex lock; // guards all below
    bind_queue queue;
    key_pool keys;
    staging memory;
    std::unordered_map<std::uint32_t, unsigned> depth_of_key; // of bound regions, by key: keys on the way to memory
};

} // namespace ucxl::mlx5
