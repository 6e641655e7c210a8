// Memory that other functions of the device use by exported keys, and theirs that this process has imported.
//
// Thread safety: everything. Its parts have their own locks; those of the domain's records and device are taken inside.
#pragma once

#include "abi/domain_layer.h"
#include "domain_device.h"
#include "registered_ranges.h"
#include "window_records.h"

#include <atomic>

namespace ucxl::mlx5
{

class exchanged_memory
{
public:
    exchanged_memory(domain_device& device, window_records& records) : _device(device), _records(records) {}
    exchanged_memory(const exchanged_memory&)            = delete;
    exchanged_memory& operator=(const exchanged_memory&) = delete;

    // Of UCX's registrations of plain memory.
    void note_registration(const void* memh, const memory_range& range) noexcept { _ranges.add(memh, range); }
    void forget_registration(const void* memh) noexcept;

    result<exported_handle> export_window(window_handle& handle);
    result<exported_handle> export_buffer(uct_mem_h memh, const void* address, std::size_t length);
    bool exports_with(const access_token& token) const;

    // The handle becomes that of the imported memory.
    result<void> import(window_handle& handle, const exported_handle& imported);
    void end_import(window_handle& handle) noexcept;

private:
    result<exported_keys*> exports();
    // Lets the CPU copy the window, if the device can.
    result<void> show_imported(window_handle& handle, const exported_handle& imported);

    domain_device& _device;
    window_records& _records;
    registered_ranges _ranges;                     // has its own lock
    std::atomic<exported_keys*> _exports{nullptr}; // those of the device
};

} // namespace ucxl::mlx5
