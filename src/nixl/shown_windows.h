// Windows over regions of this process that other agents asked for.
//
// What they ask is checked: the regions have to be registered, and every byte has to be inside of them. A window ends
// when the agent drops it, when one of its regions is deregistered, or with the agent. What still moves bytes of it
// keeps it until then.
//
// Agents that are killed drop nothing. Whether those of this host have ended is looked at when there are twice as many
// windows as after the last look.
#pragma once

#include "message.h"
#include "region.h"
#include "ucx.h"

#include <map>
#include <memory>
#include <ranges>
#include <unordered_map>

namespace ucxl::nixl
{

using region_table = std::unordered_map<std::uint64_t, std::shared_ptr<region>>;

struct shown_window {
    ucx_layout::window window;
    ucx_layout::layout layout; // of it, over the bases
    std::vector<void*> bases;
    std::vector<std::uint64_t> regions;
};

// False also if nobody here knows, as of a process of another host.
bool has_ended(const process_identity& process);

class shown_windows
{
public:
    static constexpr std::size_t max_windows         = 4096;  // for one agent
    static constexpr std::size_t max_windows_of_all  = 65536; // agents choose their numbers themselves
    static constexpr std::size_t min_windows_to_look = 256;   // for agents that have ended
    // How often a list may name all bytes of its regions, if it is longer than that: a window needs as many addresses
    // of the arena (UCX_LAYOUT_ARENA_SIZE), and a short list could name the same bytes for ever.
    static constexpr std::uint64_t max_repeats      = 16;
    static constexpr std::uint64_t unlimited_length = std::uint64_t{1} << 30;

    // The answer to a message of kind show.
    message show(const message& asked, const region_table& regions, ucp_context_h context);
    // Null if the agent has no such window, or if these bytes are not inside of it.
    std::shared_ptr<shown_window> find(std::uint64_t agent, std::uint64_t number, std::uint64_t offset,
                                       std::uint64_t length) const;
    void drop(std::uint64_t agent, std::uint64_t number) { _windows.erase({agent, number}); }
    void drop_up_to(std::uint64_t agent, std::uint64_t number);
    void drop_agent(std::uint64_t agent);
    // Returns the windows that it drops. What moves bytes of one keeps it.
    std::vector<std::weak_ptr<shown_window>> drop_region(std::uint64_t region);
    void clear();
    std::size_t size() const { return _windows.size(); }

private:
    using place = std::pair<std::uint64_t, std::uint64_t>; // agent, number

    void drop_ended_agents();
    auto windows_of(std::uint64_t agent, std::uint64_t last = UINT64_MAX)
    {
        return std::ranges::subrange(_windows.lower_bound({agent, 0}), _windows.upper_bound({agent, last}));
    }

    std::map<place, std::shared_ptr<shown_window>> _windows;
    std::unordered_map<std::uint64_t, process_identity> _processes; // of agents with windows
    std::size_t _windows_at_next_look = min_windows_to_look;
};

} // namespace ucxl::nixl
