#include "mapped_ranges.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <format>
#include <memory>
#include <optional>

#include <sys/sysmacros.h>

namespace ucxl
{

namespace
{

using open_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Without its end; false at the end of the file.
bool read_line(std::FILE* from, std::string& line)
{
    line.clear();
    for (int character = 0; (character = std::getc(from)) != EOF;) {
        if (character == '\n') {
            return true;
        }
        line.push_back(static_cast<char>(character));
    }
    return !line.empty();
}

std::optional<mapped_range> parse_range(const std::string& line)
{
    mapped_range found{};
    unsigned major = 0, minor = 0;
    int name = 0;
    const int got =
        std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &found.start,
                    &found.end, found.access.data(), &found.file_offset, &major, &minor, &found.inode, &name);
    if (got != 7) {
        return std::nullopt;
    }
    found.device = makedev(major, minor);
    found.name   = line.substr(static_cast<std::size_t>(name));
    return found;
}

// "ShmemPmdMapped:    2048 kB"
void add_detail(mapped_range& to, std::string_view line)
{
    if (constexpr std::string_view flags = "VmFlags: "; line.starts_with(flags)) {
        to.flags = line.substr(flags.size());
        return;
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) {
        return;
    }
    const std::string_view name = line.substr(0, colon);
    const auto number           = line.find_first_not_of(' ', colon + 1);
    if (number != std::string_view::npos &&
        (name.ends_with("PmdMapped") || name == "AnonHugePages" || name.ends_with("_Hugetlb"))) {
        std::uint64_t kilobytes = 0;
        std::from_chars(line.data() + number, line.data() + line.size(), kilobytes);
        to.huge_bytes += kilobytes << 10;
    }
}

} // namespace

std::vector<mapped_range> mapped_ranges_of(pid_t pid, const address_range& within, bool with_details)
{
    const char* const kind = with_details ? "smaps" : "maps";
    const std::string path = pid == 0 ? std::format("/proc/self/{}", kind) : std::format("/proc/{}/{}", pid, kind);
    const open_file file(std::fopen(path.c_str(), "re"), std::fclose);
    std::vector<mapped_range> found;
    bool is_inside = false;
    for (std::string line; file != nullptr && read_line(file.get(), line);) {
        if (auto next = parse_range(line)) {
            if (next->start >= within.end) {
                break;
            }
            is_inside = next->end > within.start;
            if (is_inside) {
                found.push_back(std::move(*next));
            }
        } else if (is_inside) {
            add_detail(found.back(), line);
        }
    }
    return found;
}

std::optional<mapped_range> shared_range_around(const void* start, std::uint64_t length)
{
    const auto first  = reinterpret_cast<std::uintptr_t>(start);
    const auto ranges = mapped_ranges_of(0, {first, first + length}, false);
    const bool is_one =
        ranges.size() == 1 && ranges[0].is_shared() && ranges[0].start <= first && length <= ranges[0].end - first;
    return is_one ? std::optional(ranges[0]) : std::nullopt;
}

} // namespace ucxl
