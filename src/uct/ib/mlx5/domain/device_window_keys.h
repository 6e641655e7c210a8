// All domains with a layer, as libucp_layout sees them.
#pragma once

#include "ucs/window/window_keys.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace ucxl::mlx5
{

class window_domain;

// The lock is held while the domains work, so that none of them closes. No domain calls this object under its own lock.
class device_window_keys final : public window_keys
{
public:
    static device_window_keys& instance();

    void add(window_domain* domain);
    void remove(window_domain* domain);

    void start_collecting() override;
    std::vector<domain_id> end_collecting() override;
    result<void> make(std::span<const domain_id> domains, const window_content& content, key_choice choice) override;
    void suspend(const std::byte* address) override;
    result<void> resume(const std::byte* address) override;
    result<void> rebind(const window_content& before, const window_content& after) override;
    bool has_key(const std::byte* address) const override;
    void remove(const std::byte* address) override;
    result<std::byte*> allocate(std::span<const domain_id> domains, std::uint64_t length) override;
    void free(const std::byte* address) override;
    bool has_card_memory() const override { return window_domain_offers.load(std::memory_order_relaxed) != 0; }

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
