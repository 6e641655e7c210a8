// ucp_layout_print_memory: the figures of memory_figures.h as text, and what the system tells of the regions.
#include "ucp_layout.h"

#include "sys/mapped_ranges.h"
#include "ucs/sys/argument.h"
#include "uct/layout/peer/memory_figures.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <unistd.h>

using namespace ucxl;

namespace
{

std::string line(const char* name, std::uint64_t number)
{
    return std::format("{:<28} {:>12}\n", name, number);
}

const char* name_of(std::uint64_t origin)
{
    switch (static_cast<region_origin>(origin)) {
    case region_origin::library:
        return "allocated";
    case region_origin::caller:
        return "brought";
    case region_origin::moved:
        return "moved";
    }
    return "?";
}

// A region as the system shows it.
struct seen_region {
    memory_page::region told;
    dev_t device;
    std::uint64_t huge_bytes;
    std::vector<pid_t> mapped_by; // other processes than the owner
};

// Nothing if the memory has ended: the list is made anew with the next change only.
std::optional<seen_region> look_at(pid_t owner, const memory_page::region& told)
{
    seen_region seen{.told = told, .device = 0, .huge_bytes = 0, .mapped_by = {}};
    bool is_there = false;
    for (const mapped_range& range : mapped_ranges_of(owner, {told.start, told.start + told.length}, true)) {
        if (range.inode == told.inode) {
            is_there    = true;
            seen.device = range.device;
            seen.huge_bytes += range.huge_bytes;
        }
    }
    return is_there ? std::optional(std::move(seen)) : std::nullopt;
}

// Processes of other users do not tell what they have mapped.
void look_for_mappers(pid_t owner, std::span<seen_region> regions)
{
    const auto close = [](DIR* opened) { closedir(opened); };
    const std::unique_ptr<DIR, decltype(close)> listing(opendir("/proc"), close);
    while (const dirent* const entry = listing != nullptr ? readdir(listing.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        pid_t pid                   = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size() ||
            pid == owner) {
            continue;
        }
        for (const mapped_range& range : mapped_ranges_of(pid, {0, UINT64_MAX}, false)) {
            for (seen_region& region : regions) {
                if (range.inode == region.told.inode && range.device == region.device &&
                    !std::ranges::contains(region.mapped_by, pid)) {
                    region.mapped_by.push_back(pid);
                }
            }
        }
    }
}

std::string describe(const seen_region& region)
{
    std::string text =
        std::format("region at {:#x}: {} bytes, {}, {} bytes in huge pages, mapped by", region.told.start,
                    region.told.length, name_of(region.told.origin), region.huge_bytes);
    if (region.mapped_by.empty()) {
        return text + " no other process\n";
    }
    for (const pid_t pid : region.mapped_by) {
        text += std::format(" {}", pid);
    }
    return text + "\n";
}

std::string describe(pid_t owner, const memory_page& figures)
{
    std::string text = line("regions", figures.num_regions) + line("  bytes", figures.region_bytes) +
                       line("windows of peers", figures.peer_windows) +
                       line("  without a key", figures.peer_windows_idle) +
                       line("regions of peers", figures.peer_regions) + line("  bytes", figures.peer_bytes) +
                       line("passes shared", figures.passes_shared) + line("passes alone", figures.passes_alone) +
                       line("pieces moved for peers", figures.pieces_moved);
    const std::size_t number = std::min<std::uint64_t>(figures.num_regions, memory_page::max_regions);
    std::vector<seen_region> regions;
    for (const auto& told : std::span(figures.regions).first(number)) {
        if (auto seen = look_at(owner, told)) {
            regions.push_back(std::move(*seen));
        }
    }
    if (!regions.empty()) {
        look_for_mappers(owner, regions);
    }
    for (const seen_region& region : regions) {
        text += describe(region);
    }
    return text;
}

ucs_status_t print_memory(pid_t pid, FILE* stream)
{
    memory_page figures{};
    if (pid == 0) {
        figures = memory_figures::read();
    } else if (!memory_figures::read_of(pid, figures)) {
        ucs_error("ucp_layout_print_memory: process %d does not exist, cannot be inspected by this process, or has "
                  "not loaded this release of the library",
                  static_cast<int>(pid));
        return UCS_ERR_NO_ELEM;
    }
    if (std::fputs(describe(pid == 0 ? getpid() : pid, figures).c_str(), stream) < 0 || std::fflush(stream) != 0) {
        ucs_error("ucp_layout_print_memory: writing failed: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_print_memory(pid_t pid, FILE* stream)
{
    return checked(__func__, {{"stream", stream}}, [&] { return print_memory(pid, stream); });
}
