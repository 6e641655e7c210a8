// The layer over one mlx5 domain of stock UCX: windows are registered as hardware keys, everything else as before.
//
// The stock transports (rc_mlx5, dc_mlx5, ud_mlx5, rc_verbs) then send and receive windows like any memory: they read
// the key from the handle and the address from the request. The bind queue and the spare keys are made with the first
// window, so a process without windows costs the device nothing.
//
// Locks: UCP calls the operations under its context's lock. Nothing here waits for UCP.
#pragma once

#include "abi/domain_layer.h"
#include "alias_table.h"
#include "base_memory.h"
#include "card_memory.h"
#include "exported_keys.h"
#include "late_part.h"
#include "registered_ranges.h"
#include "staged_copies.h"
#include "ucs/window/window_keys.h"
#include "uct/ib/mlx5/layout/domain.h"
#include "window_handle.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ucxl::mlx5
{

enum class copy_direction : std::uint8_t { from_card, to_card };

class window_domain final : public abi::domain_layer
{
public:
    window_domain(const abi::stock_domain& stock, ibv_pd* pd, std::string device, const window_directory& windows);
    ~window_domain() override;

    // See window_keys. None if the window has its key already, which stays.
    result<std::optional<window_key::planned>> plan(const window_content& content, key_choice choice);
    // False: it got its key meanwhile.
    result<bool> bind(const window_content& content, window_key::planned&& planned);
    void suspend(const std::byte* address) noexcept;
    result<void> resume(const std::byte* address);
    result<void> rebind(const window_content& content);
    void remove(const std::byte* address) noexcept;
    bool has_key(const std::byte* address) const;
    // Memory of the card.
    result<std::byte*> allocate(std::uint64_t length);
    bool free(const std::byte* address); // false: it is not of this card
    // Copies between memory of this card and other memory. False: it is not of this card, or the device failed.
    bool copy_card_memory(std::byte* address, std::uint64_t length, std::byte* other, copy_direction direction);
    bool exports_with(const access_token& token) const;
    // Registers memory, for local use.
    result<base_memory::held> hold(const memory_range& range);

    void adjust(abi::memory_type_masks& masks) const override;
    ucs_status_t mem_alloc(std::size_t* length, void** address, const abi::allocation_request& request,
                           uct_mem_h* memh) override;
    ucs_status_t mem_free(uct_mem_h memh) override;
    ucs_status_t mem_reg(void* address, std::size_t length, const abi::mem_reg_params* params,
                         uct_mem_h* memh) override;
    ucs_status_t mem_dereg(const abi::mem_dereg_params* params) override;
    ucs_status_t mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice) override;
    ucs_status_t mkey_pack(uct_mem_h memh, void* address, std::size_t length, const abi::mkey_pack_params* params,
                           void* buffer) override;
    bool can_pack_element(uct_mem_h memh) const override;
    ucs_status_t mem_attach(const void* exported_key, abi::mem_attach_params* params, uct_mem_h* memh) override;
    std::size_t exported_key_length(std::size_t) const override { return exported_handle::length; }

private:
    // What the device gives, made with the first window.
    struct device_side {
        device_side(ibv_pd* pd, domain_parts&& parts, std::unique_ptr<base_memory> registered)
            : keys(pd, std::move(parts)), memory(std::move(registered))
        {
        }

        domain keys;
        std::unique_ptr<base_memory> memory;
        late_part<card_memory> card;      // made with the first allocation
        late_part<staged_copies> copies;  // made with the first imported window
        late_part<exported_keys> exports; // made with the first export
    };

    // The caller holds the lock, also of what follows.
    domain_figures figures() const;
    void show() const;
    // Counts a key that came, or uncounts one that goes.
    void count(const window_key& key, bool is_there);
    // Does what may change the state of the key, and shows it.
    template <typename Action>
    auto act_on(const window_record& record, Action&& act);
    result<std::unique_ptr<device_side>> open_device();
    result<device_side*> device();
    result<card_memory*> card();
    result<memic_allocation> allocate_memory(std::uint64_t length);
    card_memory* existing_card() const;
    std::optional<memic_allocation> find_card_memory(const void* address, std::uint64_t length) const;
    // Whether the window has its key. A key of other content at its address is removed.
    result<bool> resume_if_known(const window_content& content);
    void remove_locked(const std::byte* address) noexcept;
    std::shared_ptr<window_record> find(const std::byte* address) const;
    result<std::shared_ptr<window_record>> add_record(const window_content& content, window_key::planned&& planned);
    result<std::shared_ptr<window_record>> record_for(const void* address, std::uint64_t length);
    result<window_handle*> make_handle();
    result<window_handle*> register_range(const void* address, std::uint64_t length);
    result<void> give_own_key(window_handle& handle);
    result<exported_keys*> exports();
    result<staged_copies*> copies();
    result<exported_handle> export_window(window_handle& handle);
    result<exported_handle> export_buffer(uct_mem_h memh, const void* address, std::size_t length);
    // Lets the CPU copy the window, if the device can.
    result<void> show_imported(window_handle& handle, const exported_handle& imported);
    ucs_status_t export_memory(uct_mem_h memh, void* address, std::size_t length, const abi::mkey_pack_params* params,
                               void* buffer);
    bool may_hand_out(window_handle& handle, unsigned flags) noexcept;

    ibv_pd* const _pd;
    mutable std::atomic<bool> _offers_memory{false}; // UCX was told so
    const std::string _device_name;
    const window_directory& _windows;
    shown_domain* const _shown;

    mutable std::mutex _lock; // guards what follows, and the keys of all records
    late_part<device_side> _device;
    bool _was_unusable = false;                                          // the device side could not be made, at first
    std::map<const std::byte*, std::shared_ptr<window_record>> _records; // by the address of the window
    alias_table _aliases;                                                // has its own lock
    registered_ranges _ranges;                                           // of plain memory, with its own lock
    std::atomic<exported_keys*> _exports{nullptr};                       // those of the device side
    // Of the keys of all handles and records.
    std::uint64_t _num_exported_windows = 0;
    std::uint64_t _num_live             = 0;
    std::uint64_t _num_suspended        = 0;
    std::uint64_t _num_entries          = 0; // of the live ones
};

} // namespace ucxl::mlx5
