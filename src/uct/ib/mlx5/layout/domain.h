// What the regions of one protection domain share: capabilities, the bind queue, spare keys, memory for entries.
#pragma once

#include <mutex>
#include <unordered_map>

#include "bind_queue.h"
#include "capabilities.h"
#include "key_pool.h"
#include "self_test.h"
#include "staging.h"

namespace ucxl::mlx5
{

class region;

struct domain {
    domain(ibv_pd* of, const capabilities& device, const self_test_result& tested, bind_queue&& opened)
        : pd(of), caps(device), found(tested), queue(std::move(opened)), keys(of), memory(of)
    {
    }

    ibv_pd* const pd;
    const capabilities caps; // only what the self-test found to work
    const self_test_result found;

    std::mutex lock; // guards all below
    bind_queue queue;
    key_pool keys;
    staging memory;
    std::unordered_map<std::uint32_t, const region*> bound; // by key, those with a layout
};

} // namespace ucxl::mlx5
