// What the regions of one protection domain share: capabilities, bind queue, spare keys, and memory for entries.
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
    domain(ibv_pd* protection_domain, const capabilities& device, const self_test_result& tested, bind_queue&& opened)
        : pd(protection_domain), caps(device), found(tested), queue(std::move(opened)), keys(protection_domain),
          memory(protection_domain)
    {
    }

    ibv_pd* const pd;
    const capabilities caps; // only those that the self-test confirmed
    const self_test_result found;

    std::mutex lock; // guards all members below
    bind_queue queue;
    key_pool keys;
    staging memory;
    std::unordered_map<std::uint32_t, const region*> bound; // regions with a layout, by key
};

} // namespace ucxl::mlx5
