#include "shown_windows.h"

#include "kernel_copies.h"
#include "log.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <set>

#include <csignal>

namespace ucxl::nixl
{

namespace
{

using ucx_layout::result;

struct described_memory {
    ucx_layout::layout layout;
    std::vector<void*> bases;
    bool is_shared = true; // all of it is in files that other processes can map
};

bool is_inside(const ucx_layout::layout& layout, std::uint32_t source, const region_info& region)
{
    const auto bounds = layout.query_bounds(source);
    return bounds && bounds->true_lb >= 0 && static_cast<std::uint64_t>(bounds->true_ub) <= region.length;
}

// Of those that it names, each once. All of them are in the table.
std::uint64_t length_of_regions(const message& asked, const region_table& regions)
{
    std::uint64_t length = 0;
    for (const std::uint64_t id : std::set(asked.regions.begin(), asked.regions.end())) {
        length += regions.at(id)->info().length;
    }
    return length;
}

result<described_memory> check(const message& asked, const region_table& regions)
{
    auto layout = ucx_layout::layout::deserialize(std::as_bytes(std::span(asked.bytes)));
    if (!layout) {
        return std::unexpected(layout.error());
    }
    const auto attr = layout->query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES);
    if (!attr || attr->packed_length != asked.length || attr->packed_length == 0 ||
        attr->num_sources != asked.regions.size()) {
        log_error("an agent asks for a window of a wrong length or number of regions");
        return std::unexpected(UCS_ERR_INVALID_PARAM);
    }
    described_memory described{.layout = std::move(*layout), .bases = {}};
    for (std::uint32_t source = 0; source < attr->num_sources; ++source) {
        const auto found = regions.find(asked.regions[source]);
        if (found == regions.end()) {
            return std::unexpected(UCS_ERR_NO_ELEM); // deregistered
        }
        if (!is_inside(described.layout, source, found->second->info())) {
            log_error("an agent asks for bytes outside of registered memory");
            return std::unexpected(UCS_ERR_OUT_OF_RANGE);
        }
        described.bases.push_back(found->second->address());
        described.is_shared = described.is_shared && found->second->is_shared();
    }
    if (asked.length > shown_windows::unlimited_length &&
        asked.length / shown_windows::max_repeats > length_of_regions(asked, regions)) {
        log_error("an agent asks for a window of more than 16 times as many bytes as its regions have");
        return std::unexpected(UCS_ERR_EXCEEDS_LIMIT);
    }
    return described;
}

result<std::string> key_of(const ucx_layout::window& window, ucp_context_h context)
{
    void* key                 = nullptr;
    std::size_t length        = 0;
    const ucs_status_t status = ucx()->rkey_pack(context, window.memh(), &key, &length);
    if (status != UCS_OK) {
        return std::unexpected(status);
    }
    std::string bytes(static_cast<const char*>(key), length);
    ucx()->rkey_buffer_release(key);
    return bytes;
}

// Windows that are carried by copies in messages are reached by puts and gets, too, if their memory is shared.
reach way_to(const ucx_layout::window& window, const described_memory& shown)
{
    if (window.carrier() == UCP_LAYOUT_CARRIER_KEYS) {
        return reach::everywhere;
    }
    if (shown.is_shared) {
        return reach::neighbors;
    }
    return window.carrier() == UCP_LAYOUT_CARRIER_DIRECT || is_for_kernel(shown.layout) ? reach::kernel
                                                                                        : reach::messages;
}

} // namespace

// Windows of an agent that lives stay, so only what the kernel says for certain counts. The state of the process does
// not: it is 'Z' also if only the first of its threads has ended. And while no descriptor is free, nothing can be read.
bool has_ended(const process_identity& process)
{
    if (!may_share_memory(process_identity::own(), process)) {
        return false; // nobody here knows
    }
    if (watched_process(process.pid).has_ended()) {
        return true;
    }
    if (const auto status = status_of_process(process.pid)) {
        return status->start_time != process.start_time; // another one has the number by now
    }
    return kill(process.pid, 0) != 0 && errno == ESRCH;
}

message shown_windows::show(const message& asked, const region_table& regions, ucp_context_h context)
{
    message answer{.kind = message_kind::shown, .window = asked.window};
    const auto refuse = [&](ucs_status_t status) {
        answer.status = status;
        return answer;
    };
    if (_windows.size() >= _windows_at_next_look) {
        drop_ended_agents();
    }
    if (_windows.size() >= max_windows_of_all ||
        std::ranges::distance(windows_of(asked.sender)) >= std::ptrdiff_t{max_windows}) {
        return refuse(UCS_ERR_NO_RESOURCE);
    }
    auto memory = check(asked, regions);
    if (!memory) {
        return refuse(memory.error());
    }
    auto window = ucx_layout::window::map(context, memory->layout,
                                          std::vector<const void*>(memory->bases.begin(), memory->bases.end()));
    if (!window) {
        return refuse(window.error());
    }
    auto key = key_of(*window, context);
    if (!key) {
        return refuse(key.error());
    }
    answer.status  = UCS_OK;
    answer.way     = way_to(*window, *memory);
    answer.address = reinterpret_cast<std::uint64_t>(window->address());
    answer.length  = window->length();
    answer.bytes   = std::move(*key);
    const place at{asked.sender, asked.window};
    if (_windows.contains(at)) {
        return refuse(UCS_ERR_BUSY);
    }
    _windows.emplace(at, std::make_shared<shown_window>(shown_window{std::move(*window), std::move(memory->layout),
                                                                     std::move(memory->bases), asked.regions}));
    _processes.try_emplace(asked.sender, asked.process);
    return answer;
}

std::shared_ptr<shown_window> shown_windows::find(std::uint64_t agent, std::uint64_t number, std::uint64_t offset,
                                                  std::uint64_t length) const
{
    const auto found = _windows.find({agent, number});
    if (found == _windows.end()) {
        return nullptr;
    }
    const std::uint64_t all = found->second->window.length();
    return offset <= all && length <= all - offset ? found->second : nullptr;
}

void shown_windows::drop_up_to(std::uint64_t agent, std::uint64_t number)
{
    const auto dropped = windows_of(agent, number);
    _windows.erase(dropped.begin(), dropped.end());
}

void shown_windows::drop_agent(std::uint64_t agent)
{
    drop_up_to(agent, UINT64_MAX);
    _processes.erase(agent);
}

void shown_windows::drop_ended_agents()
{
    std::erase_if(_processes, [this](const auto& each) {
        const auto& [agent, process] = each;
        if (!windows_of(agent).empty() && !has_ended(process)) {
            return false;
        }
        drop_up_to(agent, UINT64_MAX);
        return true;
    });
    _windows_at_next_look = std::clamp(2 * _windows.size(), min_windows_to_look, max_windows_of_all);
}

void shown_windows::clear()
{
    _windows.clear();
    _processes.clear();
}

std::vector<std::weak_ptr<shown_window>> shown_windows::drop_region(std::uint64_t region)
{
    std::vector<std::weak_ptr<shown_window>> dropped;
    std::erase_if(_windows, [&](const auto& each) {
        const bool is_over_it = std::ranges::contains(each.second->regions, region);
        if (is_over_it) {
            dropped.push_back(each.second);
        }
        return is_over_it;
    });
    return dropped;
}

} // namespace ucxl::nixl
