// A memory key and the layout it has: lowered, given keys and memory for the entries, and bound.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "address_overlay.h"
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
    static result<std::unique_ptr<region>> create(domain& in, const region_options& options);
    ~region();
    region(const region&)            = delete;
    region& operator=(const region&) = delete;

    domain& owner() const { return _domain; }
    const region_options& options() const { return _options; }
    std::uint32_t key() const { return _overlay ? _overlay->key() : _root->lkey; }
    std::uint64_t address() const { return _options.address; }
    std::uint64_t length() const { return _bound.length; }
    const plan_cost& cost() const { return _bound.cost; }
    bool is_prepared() const { return !_prepared.requests.empty(); }
    // What it shows; null without a layout.
    const layout* shown() const { return _bound.of.get(); }
    std::span<const source_base> bases() const { return _bound.bases; }

    // Makes everything ready for the layout; the region is what it was until the requests were executed and adopt()
    // is called. A layout prepared before is forgotten.
    result<void> prepare(const layout_ptr& of, std::span<const source_base> bases);

    // The requests of what was prepared, for the queue pair of that number.
    void append_requests(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // What was prepared is in force now.
    void adopt();

    void append_invalidation(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // No layout any more. What the device may still have bound to something is not given to others.
    void forget(bool is_invalidated);

private:
    region(domain& in, const region_options& options, mkey_owner&& root, std::optional<address_overlay>&& overlay)
        : _domain(in), _options(options), _root(std::move(root)), _overlay(std::move(overlay))
    {
    }

    // A layout and what it holds on to.
    struct binding {
        std::vector<request_bytes> requests; // to bind it, without queue pair and flags
        std::vector<key_pool::key> keys;     // nested ones
        std::vector<staging::room> memory;
        layout_ptr of;
        std::vector<source_base> bases;
        std::uint64_t length = 0;
        plan_cost cost;
    };

    result<device_limits> limits_for(std::span<const source_base> bases) const;
    result<void> check_end(std::uint64_t length) const;
    bind_request request_for_root(std::uint64_t length) const;
    result<void> add_key(const plan& all, std::size_t id, std::span<const source_base> bases, binding& to);
    result<void> add_request(const bind_request& request, key_kind kind, std::uint32_t turns,
                             std::span<const resolved_entry> entries, binding& to);
    void release(binding& unused);

    domain& _domain;
    const region_options _options;
    mkey_owner _root;
    std::optional<address_overlay> _overlay; // over the root, so it ends first
    binding _bound;
    binding _prepared;
};

} // namespace ucxl::mlx5
