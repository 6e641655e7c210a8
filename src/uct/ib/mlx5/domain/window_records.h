// The keys of all windows in one domain: what `window_keys` does there, and the keys of the handles that UCP has.
//
// Locks: all keys are made, changed and ended under the one lock of this object. Nothing here waits for UCP.
#pragma once

#include "domain_device.h"
#include "window_handle.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace ucxl::mlx5
{

class window_records
{
public:
    explicit window_records(domain_device& device) : _device(device) {}
    ~window_records();
    window_records(const window_records&)            = delete;
    window_records& operator=(const window_records&) = delete;

    // See window_keys. None if the window has its key already, which stays.
    result<std::optional<window_key::planned>> plan(const window_content& content, key_choice choice);
    // False: it got its key meanwhile.
    result<bool> bind(const window_content& content, window_key::planned&& planned);
    void suspend(const std::byte* address) noexcept;
    result<void> resume(const std::byte* address);
    result<void> rebind(const window_content& content);
    void remove(const std::byte* address) noexcept;
    bool has_key(const std::byte* address) const;

    // A handle for the window that holds the range.
    result<window_handle*> make_handle(const void* address, std::uint64_t length);
    // Peers lose the keys that only the handle has.
    void give_back(window_handle& handle) noexcept;
    // Before memory of the card is freed: UCP keeps handles of it, and their keys would show it to earlier peers.
    void drop_own_keys_in(std::span<const std::byte> card_memory) noexcept;
    // What a peer gets for the handle, with UCX's flags of packing.
    std::uint64_t packed_key(window_handle& handle, unsigned flags);
    // The handle's key for others, which it gets now.
    result<exported_handle> export_handle(window_handle& handle, exported_keys& exports);

private:
    // The caller holds the lock, also of what follows. Does what may change the state of the key, and shows it.
    template <typename Action>
    auto act_on(const window_record& record, Action&& act);
    // Whether the window has its key. A key of other content at its address is removed.
    result<bool> resume_if_known(const window_content& content);
    void remove_locked(const std::byte* address) noexcept;
    std::shared_ptr<window_record> find(const std::byte* address) const;
    result<std::shared_ptr<window_record>> add_record(const window_content& content, window_key::planned&& planned);
    result<std::shared_ptr<window_record>> record_for(const void* address, std::uint64_t length);
    result<std::unique_ptr<window_key>> make_other_key(window_handle& handle, bool is_exported);
    result<std::unique_ptr<window_key>> make_key_of_card_memory(window_handle& handle);
    result<void> give_own_key(window_handle& handle);
    void drop_exported_key(window_handle& handle) noexcept;
    bool may_hand_out(window_handle& handle, unsigned flags) noexcept;

    domain_device& _device;
    mutable std::mutex _lock; // guards what follows, and the keys of all records
    std::map<const std::byte*, std::shared_ptr<window_record>> _records; // by the address of the window
    window_record _of_card_memory; // without a key: of all handles of memory of the card
};

} // namespace ucxl::mlx5
