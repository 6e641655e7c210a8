// How many windows network cards carry, how many the CPU copies and why, and what each card has for it.
//
// People read it in UCX's virtual file system, below layout/windows and layout/keys, and other processes in a page
// (process_page.h). Both read without a lock: figures that change together may be seen one by one.
//
// Example: figures.add(window); ... figures.remove(window);
#pragma once

#include "sys/magic.h"
#include "ucs/window/window_keys.h"
#include "window_cache.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ucxl
{

// In the page: 64-bit words. All members of other processes may have any value.
struct process_figures {
    static constexpr auto current_form       = magic<std::uint64_t>("UCXWIND3");
    static constexpr std::size_t max_reasons = 8;
    static constexpr std::size_t max_devices = 8;
    using text                               = std::array<char, 192>;

    // Windows that were copied for one reason; numbers in its text do not count.
    struct reason {
        std::uint64_t now;
        std::uint64_t all; // since the process began
        text latest;       // with the numbers
    };
    // All domains of the device.
    struct device {
        text name; // empty: none
        text unusable;
        text choices; // what the device can do and the library uses
        std::uint64_t domains;
        domain_figures sum;
    };

    std::uint64_t form;
    std::uint64_t keyed;                     // windows that are mapped now
    std::uint64_t copied;                    // the same
    std::uint64_t unasked;                   // the same: no context has a memory handle of them
    std::array<reason, max_reasons> reasons; // the last one also stands for all further ones
    std::array<device, max_devices> devices; // further ones are left out
};

// As text that can be printed, whatever is in it.
std::string printable(const process_figures::text& text);

class window_figures
{
public:
    static window_figures& instance();

    // The window is mapped, or got its first memory handle. Adding it again is no error. The caller holds the lock of
    // map_state. Throws std::bad_alloc, and nothing has changed then.
    void add(cached_window& window);
    // It has no user any more.
    void remove(cached_window& window) noexcept;

    // As window_directory::show_domain().
    std::unique_ptr<shown_domain> show_domain(const std::string& device);

    process_figures read() const;
    // Of another process of this user. Returns false if there is none, or if it has never loaded this library.
    static bool read_of(pid_t pid, process_figures& figures);

private:
    class domain_of_device;

    window_figures();
    void move_to_own_page(bool is_child);
    carrier_count classify(const cached_window& window);
    std::uint8_t reason_like(std::string_view reason);
    process_figures::device* device_named(std::string_view name);
    std::uint64_t& count_of(const cached_window& window);

    std::atomic<process_figures*> _page;
    std::mutex _lock; // of what follows, and of the devices in the page but for their sums
    std::vector<domain_of_device*> _domains;
};

} // namespace ucxl
