// All domains with a layer, as libucp_layout sees them.
//
// The order of all locks of this folder. Who holds one may wait for those behind it only:
//   1. this object's lock
//   2. of a domain: window_records, under which keys are made and memory is registered; then domain_device, under which
//      the device is opened, its parts are made and its figures are shown
//   3. memic_pool, its lock for growing: device memory is allocated and registered under it
//   4. the lock of mlx5::domain, and those of the registration cache: the device is waited for
//   5. of src/ucs/window: the lock of the registries, then that of the list of readers
//   6. memic_pool, its lock for its chunks
//   7. imported_windows: shared while the card copies, for others only while its table changes; so 5 may ask it
//   8. the others, under which nothing is waited for: card_memory, device_memory, handle_table; window_figures of
//      src/ucp/layout
// Fork holds locks of src/ucp/layout, with that of window_figures, and then those of 5, so nothing under 5 waits for
// window_figures. Who holds the list of readers waits for all that are in a reader_section, and these copy memory of
// the card: so nothing under 6 waits for anything before it, nor for the device to execute a command. UCP's locks and
// that of src/ucp/layout's maps come before all of these.
#pragma once

#include "ucs/window/window_keys.h"
#include "uct/ib/mlx5/layout/vhca_access.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ucxl::mlx5
{

class window_domain;
enum class copy_direction : std::uint8_t;

// The lock is held while the domains work, so that none of them closes. No domain calls this object under its own lock.
class device_window_keys final : public window_keys
{
public:
    static device_window_keys& instance();

    void add(window_domain* domain);
    void remove(window_domain* domain);

    result<std::unique_ptr<planned_keys>> plan(std::span<const domain_id> domains, const window_content& content,
                                               key_choice choice) override;
    result<void> bind(planned_keys& planned, std::byte* address) override;
    void suspend(const std::byte* address) override;
    result<void> resume(const std::byte* address) override;
    result<void> rebind(const window_content& before, const window_content& after) override;
    bool has_key(const std::byte* address) const override;
    void remove(const std::byte* address) override;
    result<std::byte*> allocate(std::span<const domain_id> domains, std::uint64_t length) override;
    void free(const std::byte* address) override;
    bool has_card_memory() const override { return window_domain_offers.load(std::memory_order_relaxed) != 0; }

    // Whether a domain of this process exports keys with that token.
    bool exports_with(const access_token& token);

    // Copies between memory of whatever card and other memory. False: no card has it, or the device failed.
    bool copy_card_memory(std::byte* address, std::uint64_t length, std::byte* other, copy_direction direction);

    // By the domains themselves: they are asked while others are at work.
    std::atomic<unsigned> window_domain_offers{0};

private:
    window_domain* find(domain_id id) const;
    template <typename Action>
    void for_all(Action&& act);

    mutable std::mutex _lock;
    std::vector<window_domain*> _domains;
};

} // namespace ucxl::mlx5
