// A memory key with its layout: lowered, with keys and memory for the entries, and bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "address_overlay.h"
#include "domain.h"
#include "lower.h"

namespace ucxl::mlx5
{

// The base address of a source.
struct source_base {
    std::uint64_t address = 0;
    std::uint32_t lkey    = 0;
};

struct region_options {
    key_rights rights;
    std::uint32_t max_entries = 64;
    std::uint64_t address     = 0;
    // For regions that come and go: the key is a spare one of this pool (domain::roots, or domain::exported for keys
    // that other functions of the device may use) and becomes one again, and the region keeps what suspension needs.
    // Old users of the key are told apart by its variant; of an exported one, by its address alone, after it rested
    // (see key_pool). Null: a key of its own.
    key_pool domain::* pool = nullptr;
};

// A layout that was lowered before there was a region for it, and what the result depends on.
struct lowered_layout {
    layout_ptr shape;
    device_limits limits;
    plan keys;
};

class region
{
public:
    // As prepare() does it in a region of these options and any address, over memory without regions. Errors: those of
    // lower().
    static result<lowered_layout> lower_ahead(const domain& domain, const region_options& options,
                                              const layout_ptr& layout);
    static result<std::unique_ptr<region>> create(domain& domain, const region_options& options);
    ~region();
    region(const region&)            = delete;
    region& operator=(const region&) = delete;

    domain& owner() const { return _domain; }
    const region_options& options() const { return _options; }
    // Counts the keys of the pool that the region's key comes from.
    std::uint64_t key_created() const { return _root.created; }
    std::uint32_t key() const { return _overlay ? _overlay->key() : _root.number; }
    std::uint64_t address() const { return _options.address; }
    std::uint64_t length() const { return _bound.length; }
    const plan_cost& cost() const { return _bound.cost; }
    // Of the deeper one of the layout in force and the one prepared.
    unsigned depth() const { return std::max(_bound.cost.depth, _prepared.cost.depth); }
    bool is_prepared() const { return !_prepared.requests.empty(); }
    // The current layout; null without one.
    const layout* shown() const { return _bound.shown.get(); }
    std::span<const source_base> bases() const { return _bound.bases; }

    // Prepares everything for the layout. The region stays as it is until the requests are executed and adopt() is
    // called. Discards a layout prepared before. Lowers the layout, unless that was done ahead under the same limits.
    result<void> prepare(const layout_ptr& layout, std::span<const source_base> bases,
                         const lowered_layout* ahead = nullptr);

    // Appends the requests of the prepared layout, for the queue pair `qpn`.
    void append_requests(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // The domain's own queue has executed the requests of the prepared layout, which is in force from now on.
    void adopt() noexcept;
    // A queue of the caller has them, and may fail before it executes them: then the first key still shows an older
    // layout. So the keys below it stay with this region until the domain's own queue has changed the first one.
    void adopt_posted() noexcept;
    // Before a queue of the caller gets the requests.
    void expect_posting();

    void append_invalidation(std::uint32_t qpn, std::vector<request_bytes>& to) const;
    // Binds the first key again after an invalidation; the keys below it never changed. Only for windows with a layout.
    void encode_resumption(std::uint32_t qpn, request_bytes& request) const;
    void encode_suspension(std::uint32_t qpn, request_bytes& request) const;
    // After a suspension or a resumption: whether the device may still follow the first key.
    void set_bound(bool is_bound) { _is_bound = is_bound; }
    bool may_be_bound() const { return _is_bound; }
    // Removes the layout. Keys and memory that the device may still have bound are not given to others.
    void forget(bool is_invalidated) noexcept;

private:
    region(domain& domain, const region_options& options, key_pool::key&& root,
           std::optional<address_overlay>&& overlay)
        : _domain(domain), _options(options), _root(std::move(root)), _overlay(std::move(overlay))
    {
    }

    // A layout and everything it holds.
    struct binding {
        std::vector<request_bytes> requests; // they bind it; without queue pair and flags. In force: the last, if any
        std::vector<key_pool::key> keys;     // the nested keys
        std::vector<staging::room> memory;
        layout_ptr shown;
        std::vector<source_base> bases;
        std::uint64_t length = 0;
        plan_cost cost;
    };

    // Errors: invalid_param (the bases lead back to this region), exceeds_limit.
    result<device_limits> limits_for(std::span<const source_base> bases) const;
    result<void> check_leads_elsewhere(std::span<const source_base> bases) const;
    result<void> check_end(std::uint64_t length) const;
    key_rights nested_rights() const;
    bind_request request_for_root(std::uint64_t length) const;
    result<void> add_key(const plan& all, std::size_t id, std::span<const source_base> bases, binding& to);
    result<void> add_request(const bind_request& request, key_kind kind, std::uint32_t turns,
                             std::span<const resolved_entry> entries, binding& to);
    void replace_bound() noexcept;
    void release(binding& unused) noexcept;
    void give_back(key_pool::key&& unused) noexcept;
    void give_back(const std::vector<staging::room>& unused) noexcept;
    result<key_pool::key> take_key(std::uint32_t entries);
    // The device follows the first key to the layout in force or to none, and has read its entries.
    void note_executed() noexcept;

    // The device reads entries in memory when it executes the request. No more than that may be under way at once.
    static constexpr std::size_t max_posted_lists = 64;

    domain& _domain;
    const region_options _options;
    key_pool::key _root;
    std::optional<address_overlay> _overlay; // over the root, so it must end first
    binding _bound;
    binding _prepared;
    bool _is_bound   = false; // the device may follow the first key
    bool _has_posted = false; // it may follow it to an older layout
    // Of older layouts. This region may use the keys again.
    std::vector<key_pool::key> _own_keys;
    std::vector<std::vector<staging::room>> _posted_memory; // the oldest first
};

} // namespace ucxl::mlx5
