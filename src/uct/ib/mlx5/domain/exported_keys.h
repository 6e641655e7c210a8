// The keys of one domain that other functions of the device may use: a pool of them, opened with one random token, and
// the buffers that they show. Making such a key costs two commands to the device, some 350 us; taking one of the pool
// and binding it costs about 1 us. A thread fills the pool up when it runs low.
//
// Example:
//     const auto handle = UCXL_TRY(exports->add(memh, address, length, lkey)); ...; exports->remove(memh);
//
// Thread safety: everything. The lock of the domain is taken inside, so a caller must not hold it.
#pragma once

#include "exported_handle.h"
#include "uct/ib/mlx5/layout/domain.h"
#include "uct/ib/mlx5/layout/region.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace ucxl::mlx5
{

class exported_keys
{
public:
    // `spare`: keys of the smallest size to keep ready. Errors: unsupported (no address of a key can be chosen, or the
    // device allows no other functions), io_error.
    static result<std::unique_ptr<exported_keys>> create(domain& keys, unsigned spare);
    ~exported_keys();
    exported_keys(const exported_keys&)            = delete;
    exported_keys& operator=(const exported_keys&) = delete;

    // Exports a registered buffer of the process. The same buffer again costs a look-up. Errors: exceeds_limit (of the
    // length), io_error, no_memory.
    result<exported_handle> add(const void* memh, std::uintptr_t address, std::uint64_t length, std::uint32_t lkey);
    // Nobody reaches it any more. Returns false if it was not added.
    bool remove(const void* memh) noexcept;

    // What others have to know of a region whose pool is domain::exported.
    exported_handle handle_of(const region& region) const;

    std::size_t num_buffers() const { return _num_buffers.load(std::memory_order_relaxed); }

private:
    exported_keys(domain& keys, unsigned spare) : _domain(keys), _spare(spare) {}

    // Of up to 2 GiB each. All have to fit into one request, too.
    static constexpr std::size_t max_buffer_entries = 32;

    result<void> start();
    exported_handle handle_of(std::uint32_t key, std::uint64_t created) const;
    // Under the domain's lock, as the next two.
    result<void> bind(const key_pool::key& key, std::uintptr_t address, std::uint64_t length, std::uint32_t lkey);
    void take_back(key_pool::key&& key) noexcept;
    bool is_running_low() const;
    void wake_filler();
    void fill();
    void keep_full(const std::stop_token& stop);

    domain& _domain;
    const unsigned _spare;
    access_token _token{};

    std::mutex _lock;
    std::unordered_map<const void*, key_pool::key> _buffers;
    std::atomic<std::size_t> _num_buffers{0};

    std::mutex _filler_lock;
    std::condition_variable_any _is_low;
    bool _wants_more = false;
    std::jthread _filler; // ends before the rest
};

} // namespace ucxl::mlx5
