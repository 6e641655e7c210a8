#include "imported_windows.h"

#include "abi/log.h"
#include "sys/pages.h"
#include "sys/reserved_addresses.h"
#include "sys/rollback.h"

#include <algorithm>
#include <exception>
#include <format>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint64_t most_bytes    = std::uint64_t{1} << 45; // a quarter of the addresses of a process
constexpr std::uint64_t part_of_arena = 4;                      // it has up to three parts, each for other windows

std::uintptr_t number_of(const void* address)
{
    return reinterpret_cast<std::uintptr_t>(address);
}

std::uint64_t page_before(std::uint64_t address)
{
    return address & ~std::uint64_t{page_length() - 1};
}

// Whether the device did it. Who asked reports the failure; this says why.
template <typename Copy>
bool succeeds(Copy&& copy) noexcept
{
    try {
        const result<void> done = copy();
        if (!done) {
            ucs_debug("a copy of imported memory: %s", done.error().message.c_str());
        }
        return done.has_value();
    } catch (const std::exception& failure) {
        ucs_debug("a copy of imported memory: %s", failure.what());
        return false;
    }
}

} // namespace

// Never destroyed: contexts may end while the process does.
imported_windows& imported_windows::instance()
{
    static imported_windows& only = *new imported_windows;
    return only;
}

result<void> imported_windows::add(const exported_handle& handle, const alias_table::entry& alias,
                                   staged_copies& copies, const window_directory& windows)
{
    UCXL_TRY(windows.set_foreign(*this));
    {
        const std::lock_guard guard(_lock);
        _arena = windows.addresses_of_arena();
        UCXL_TRY(check_room(handle.address, handle.memory_bytes));
        if (!reserve(handle.address, handle.memory_bytes)) {
            return fail(errc::unsupported,
                        std::format("memory of this process is at some of the {} bytes at 0x{:x}, or they cannot be "
                                    "reserved",
                                    handle.memory_bytes, handle.address));
        }
        rollback undo([&] { free_reserved(handle.address, handle.memory_bytes); });
        _ranges.emplace(handle.address, range{handle.memory_bytes, &alias, &copies});
        undo.cancel();
        _longest = std::max(_longest, handle.memory_bytes);
        _bytes += handle.memory_bytes;
        _in_arena += bytes_in_arena(handle.address, handle.memory_bytes);
    }
    if (windows.holds_windows(reinterpret_cast<const void*>(handle.address), handle.memory_bytes)) {
        remove(handle.address, alias);
        return fail(errc::unsupported,
                    std::format("a window of this process is at the same address, 0x{:x}", handle.address));
    }
    return {};
}

void imported_windows::remove(std::uintptr_t address, const alias_table::entry& alias) noexcept
{
    const std::lock_guard guard(_lock);
    const auto [first, last] = _ranges.equal_range(address);
    const auto found         = std::find_if(first, last, [&](const auto& each) { return each.second.alias == &alias; });
    if (found != last) {
        const std::uint64_t length = found->second.length;
        _ranges.erase(found);
        _bytes -= length;
        _in_arena -= bytes_in_arena(address, length);
        free_reserved(address, length);
    }
}

std::uint64_t imported_windows::bytes_in_arena(std::uintptr_t address, std::uint64_t length) const
{
    const std::uint64_t start = std::max(address, _arena.start);
    const std::uint64_t end   = std::min(address + length, _arena.end);
    return end > start ? end - start : 0;
}

result<void> imported_windows::check_room(std::uintptr_t address, std::uint64_t length) const
{
    const auto check = [&](std::uint64_t used, std::uint64_t more, std::uint64_t most, const char* limit) {
        return more <= most - used
                   ? result<void>()
                   : fail(errc::exceeds_limit,
                          std::format("a window of another process has {} bytes at 0x{:x}: with those imported before, "
                                      "that is more than {} {}",
                                      length, address, most, limit));
    };
    UCXL_TRY(check(_bytes, length, most_bytes, "bytes"));
    const std::uint64_t most_in_arena = (_arena.end - _arena.start) / part_of_arena;
    return check(_in_arena, bytes_in_arena(address, length), most_in_arena,
                 "bytes at addresses of own windows (UCX_LAYOUT_ARENA_SIZE)");
}

template <typename Visit>
void imported_windows::for_each_own_part(std::uintptr_t address, std::uint64_t length, Visit&& visit) const
{
    std::uint64_t at        = page_before(address);
    const std::uint64_t end = round_to_pages(address + length);
    const auto visit_before = [&](std::uint64_t next) {
        if (at < std::min(next, end)) {
            visit(address_range{at, std::min(next, end)});
        }
    };
    bool is_before_arena  = _arena.start < _arena.end;
    const auto pass_arena = [&](std::uint64_t before) {
        if (is_before_arena && _arena.start <= before) {
            visit_before(_arena.start);
            at              = std::max(at, _arena.end);
            is_before_arena = false;
        }
    };
    for_each_near(at, end - at, [&](std::uintptr_t start, const range& known) {
        pass_arena(page_before(start));
        visit_before(page_before(start));
        at = std::max(at, round_to_pages(start + known.length));
    });
    pass_arena(end);
    visit_before(end);
}

bool imported_windows::reserve(std::uintptr_t address, std::uint64_t length) const
{
    if (address > std::uintptr_t{INTPTR_MAX} - length) {
        return false; // no process has such addresses
    }
    std::uint64_t reserved_to = 0;
    bool is_free              = true;
    for_each_own_part(address, length, [&](const address_range& part) {
        is_free = is_free && reserved_addresses::take(part);
        if (is_free) {
            reserved_to = part.end;
        }
    });
    if (!is_free) {
        for_each_own_part(address, length, [&](const address_range& part) {
            if (part.end <= reserved_to) {
                reserved_addresses::give_back(part);
            }
        });
    }
    return is_free;
}

void imported_windows::free_reserved(std::uintptr_t address, std::uint64_t length) const noexcept
{
    for_each_own_part(address, length, reserved_addresses::give_back);
}

template <typename Visit>
void imported_windows::for_each_near(std::uintptr_t address, std::uint64_t length, Visit&& visit) const
{
    const std::uintptr_t lowest = address - std::min<std::uint64_t>(address, _longest);
    for (auto each = _ranges.lower_bound(lowest);
         each != _ranges.end() && (each->first <= address || each->first - address < length); ++each) {
        visit(each->first, each->second);
    }
}

bool imported_windows::touches(const void* address, std::uint64_t length) const
{
    const std::uintptr_t wanted = number_of(address);
    bool is_touched             = false;
    const std::shared_lock guard(_lock);
    for_each_near(wanted, length, [&](std::uintptr_t start, const range& known) {
        is_touched = is_touched || start >= wanted || wanted - start < known.length;
    });
    return is_touched;
}

const imported_windows::range* imported_windows::find(std::uintptr_t address, std::uint64_t length) const
{
    const range* found = nullptr;
    bool is_clear      = true;
    for_each_near(address, length, [&](std::uintptr_t start, const range& known) {
        if (start > address || address - start > known.length || length > known.length - (address - start)) {
            return;
        }
        is_clear = is_clear && (found == nullptr || found->alias->owner.token == known.alias->owner.token);
        found    = &known;
    });
    return is_clear ? found : nullptr;
}

bool imported_windows::read(const void* address, std::uint64_t length, void* target) const
{
    const std::shared_lock guard(_lock);
    const range* const found = find(number_of(address), length);
    return found != nullptr &&
           succeeds([&] { return found->copies->read(found->alias->key(), number_of(address), length, target); });
}

bool imported_windows::write(void* address, std::uint64_t length, const void* source) const
{
    const std::shared_lock guard(_lock);
    const range* const found = find(number_of(address), length);
    return found != nullptr &&
           succeeds([&] { return found->copies->write(found->alias->key(), number_of(address), length, source); });
}

} // namespace ucxl::mlx5
