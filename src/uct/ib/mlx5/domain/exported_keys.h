// The keys of one domain that other functions of the device may use: a pool of them, opened with one random token, and
// the buffers that they show. Making such a key costs two commands to the device, some 350 us; taking one of the pool
// and binding it costs about 1 us.
//
// A thread keeps some keys of each size that is in use ready, and ends those that nobody needed for some time. Keys
// that it makes are announced in the handles of others, so that importing processes can prepare for them.
//
// Example:
//     const auto handle = UCXL_TRY(exports->add(memh, address, length, lkey)); ...; exports->remove(memh);
//
// Thread safety: everything. The lock of the domain is taken inside, so a caller must not hold it.
#pragma once

#include "exported_handle.h"
#include "ucs/window/key_options.h"
#include "uct/ib/mlx5/layout/domain.h"
#include "uct/ib/mlx5/layout/region.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace ucxl::mlx5
{

class exported_keys
{
public:
    // Errors: unsupported (no address of a key can be chosen, or the device allows no other functions), io_error,
    // no_resource (the maximum is 0).
    static result<std::unique_ptr<exported_keys>> create(domain& keys, const export_options& options);
    ~exported_keys();
    exported_keys(const exported_keys&)            = delete;
    exported_keys& operator=(const exported_keys&) = delete;

    // Exports a registration of the process, all of it. The same one again costs a look-up. Errors: exceeds_limit (of
    // the length), no_resource (no key, see export_options), io_error, no_memory.
    result<exported_handle> add(const void* memh, std::uintptr_t address, std::uint64_t length, std::uint32_t lkey);
    // Nobody reaches it any more. Returns false if it was not added.
    bool remove(const void* memh) noexcept;

    // To be called before a region takes a key of that room from domain::exported. Errors: no_resource, as add().
    result<void> prepare_for_region(std::uint32_t octowords);
    // What others have to know of such a region.
    exported_handle handle_of(const region& region, std::uintptr_t address);

    bool has_token(const access_token& token) const { return _token == token; }
    std::size_t num_buffers() const { return _num_buffers.load(std::memory_order_relaxed); }

private:
    using buffers = std::unordered_map<const void*, key_pool::key>;

    exported_keys(domain& keys, const export_options& options) : _domain(keys), _options(options) {}

    // Of up to 2 GiB each. All have to fit into one request, too.
    static constexpr std::size_t max_buffer_entries = 32;
    static constexpr std::size_t most_unused_nodes  = 64;

    result<void> start();
    exported_handle handle_of(std::uint32_t key, std::uint64_t created, std::uintptr_t address, std::uint64_t length);
    // Under the domain's lock, as what follows.
    result<key_pool::key> take(std::unique_lock<std::mutex>& lock, std::uint32_t octowords);
    result<void> bind(const key_pool::key& key, std::uintptr_t address, std::uint64_t length, std::uint32_t lkey);
    void take_back(key_pool::key&& key) noexcept;
    void put(const void* memh, key_pool::key&& key);
    void refill_if_low(std::uint32_t octowords);
    void expect_size(std::uint32_t octowords);
    result<void> wait_for_key(std::unique_lock<std::mutex>& lock, std::uint32_t octowords);

    // Without it.
    void wake_filler();
    void fill();
    void end_idle();
    void run_filler(const std::stop_token& stop);

    domain& _domain;
    const export_options _options;
    access_token _token{};

    // Guarded by the lock of the domain.
    buffers _buffers;
    std::vector<buffers::node_type> _unused_nodes; // so that adding a buffer allocates nothing
    std::vector<std::uint32_t> _sizes;             // of keys to keep ready, octowords
    std::deque<exported_handle::announcement> _announced;
    std::atomic<std::size_t> _num_buffers{0};

    std::mutex _filler_lock;
    std::condition_variable_any _is_low;
    bool _wants_more = true;
    std::jthread _filler; // ends before the rest
};

} // namespace ucxl::mlx5
