// What the regions of one protection domain share: capabilities, bind queue, spare keys, and memory for entries.
#pragma once

#include <atomic>
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

// What a domain needs from the device before it can be made.
struct domain_parts {
    capabilities caps; // only those that the self-test confirmed
    self_test_result found;
    bind_queue queue;
};

struct domain {
    inline static constexpr std::uint8_t default_port   = 1;
    inline static constexpr std::uint32_t default_depth = 128; // requests of the bind queue
    inline static constexpr std::uint32_t highest_depth = 4096;

    domain(ibv_pd* protection_domain, domain_parts&& parts)
        : pd(protection_domain), caps(parts.caps), found(parts.found), queue(std::move(parts.queue)),
          keys(protection_domain), roots(protection_domain), exported(protection_domain), memory(protection_domain)
    {
    }

    // Opens the bind queue and runs the self-test. Errors: unsupported (the device has no such keys), io_error,
    // no_memory.
    static result<domain_parts> open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth);

    // Of every key change.
    request_flags change_flags() const { return flags_of(caps); }

    ibv_pd* const pd;
    const capabilities caps;
    const self_test_result found;

    std::mutex lock; // guards all members below
    bind_queue queue;
    key_pool keys;
    key_pool roots;    // first keys of windows: unlike the others they keep the start address of their last window
    key_pool exported; // first keys that other functions of the device may use
    key_variants variants;
    staging memory;
    std::unordered_map<std::uint32_t, const region*> bound; // regions with a layout, or with one prepared, by key
    const ibv_qp* checked_qp  = nullptr;                    // the last caller's queue pair that has room
    std::uint32_t checked_qpn = 0;
    std::atomic<std::uint64_t> num_binds{0}; // requests that were executed; any thread may ask
    std::atomic<std::uint64_t> num_invalidations{0};
};

} // namespace ucxl::mlx5
