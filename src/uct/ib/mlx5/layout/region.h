// A memory key and the layout it has: lowered, given keys and memory for the entries, and bound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "domain.h"
#include "lower.h"

namespace ucxl::mlx5
{

// Where a source of a layout begins.
struct source_base {
    std::uint64_t address = 0;
    std::uint32_t lkey    = 0;
};

struct region_options {
    key_rights rights;
    std::uint32_t max_entries = 64;
    std::uint64_t address     = 0;
};

class region
{
public:
    static outcome<std::unique_ptr<region>> create(domain& in, const region_options& options);
    ~region();
    region(const region&)            = delete;
    region& operator=(const region&) = delete;

    domain& owner() const { return _domain; }
    std::uint32_t key() const { return _root->lkey; }
    std::uint64_t address() const { return _options.address; }
    std::uint64_t length() const { return _bound.length; }
    const plan_cost& cost() const { return _bound.cost; }
    bool is_prepared() const { return !_prepared.requests.empty(); }

    // Makes everything ready for the layout; the region is what it was until the requests were executed and adopt()
    // is called. A layout prepared before is forgotten.
    outcome<void> prepare(const layout& of, std::span<const source_base> bases);

    // The requests of what was prepared, for the queue pair of that number.
    void append_requests(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // What was prepared is in force now.
    void adopt();

    void append_invalidation(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // No layout any more.
    void forget();

private:
    region(domain& in, const region_options& options, mkey_owner&& root)
        : _domain(in), _options(options), _root(std::move(root))
    {
    }

    // A layout and what it holds on to.
    struct binding {
        std::vector<request_bytes> requests; // to bind it, without queue pair and flags
        std::vector<key_pool::key> keys;     // nested ones
        std::vector<staging::room> memory;
        std::uint64_t length = 0;
        plan_cost cost;
    };

    outcome<device_limits> limits_for(std::span<const source_base> bases) const;
    outcome<void> add_key(const plan& all, std::size_t id, std::span<const source_base> bases, binding& to);
    void release(binding& unused);

    domain& _domain;
    const region_options _options;
    mkey_owner _root;
    binding _bound;
    binding _prepared;
};

// Binds what all of them have prepared, in one batch, and waits; `replace` takes the layouts they have away first.
// After a failure none of them has a layout.
outcome<void> bind_all(std::span<region* const> regions, bool replace);

outcome<void> invalidate_all(std::span<region* const> regions);

// Posts the same to a queue pair of the caller, and goes on.
outcome<void> post_all(ibv_qp* qp, std::span<region* const> regions, std::uint64_t wr_id, bool signaled);

} // namespace ucxl::mlx5
