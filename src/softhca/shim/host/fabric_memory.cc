#include "fabric_memory.h"

#include "softhca/shim/system/libc_functions.h"
#include "softhca/shim/system/own_descriptors.h"
#include "softhca/shim/system/wake_timer.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <format>
#include <new>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl::softhca
{
namespace
{

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

// The offsets of the parts of the file.
constexpr std::uint64_t uar_start   = 3 * gibibyte;
constexpr std::uint64_t arena_start = 4 * gibibyte;
constexpr std::uint64_t lock_start  = (sizeof(arena) + 4095) / 4096 * 4096; // offset in the mapping
constexpr std::uint64_t map_bytes   = lock_start + 4096;

constexpr std::uint64_t page_bytes = 4096;

// As in get_dm_mmap_offset() of libmlx5: command 8 in bits 8 to 15, the index around it, in pages.
constexpr std::uint64_t memic_start(unsigned device)
{
    return device * 256 * mebibyte + 8 * mebibyte;
}

// As in mlx5_map_clock_info() of libmlx5: command 7.
constexpr std::uint64_t clock_page_start = 7 * mebibyte;

static_assert(memic_start(max_devices - 1) + memic_bytes <= uar_start);
static_assert(clock_page_start + page_bytes <= memic_start(0));
static_assert(uar_start + max_uars * page_bytes <= arena_start);
static_assert(memic_bytes / page_bytes <= 256, "a device's pages share the upper byte of the index");

std::string failure(const char* action, int error)
{
    return std::format("{}: {}", action, std::strerror(error));
}

std::uint64_t time_of_day_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// One point in time, on the device's clock (nanoseconds, never wraps) and as time of day: the start of the fabric.
// Later changes of the machine's time of day do not affect it.
bool write_clock_page(int file)
{
    mlx5_ib_clock_info page{};
    page.cycles          = monotonic_ns();
    page.nsec            = time_of_day_ns();
    page.mult            = 1;
    page.mask            = timestamp_mask;
    page.overflow_period = timestamp_mask;
    return ::pwrite(file, &page, sizeof(page), clock_page_start) == sizeof(page);
}

} // namespace

std::expected<std::byte*, std::string> fabric_memory::map(int file)
{
    void* const start = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, arena_start);
    if (start == MAP_FAILED) {
        return std::unexpected(failure("mapping the fabric", errno));
    }
    for (unsigned device = 0; device < max_devices; ++device) {
        void* const place = reinterpret_cast<arena*>(start)->memic[device].bytes.data();
        if (::mmap(place, memic_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                   static_cast<off_t>(memic_start(device))) == MAP_FAILED) {
            const int error = errno;
            ::munmap(start, map_bytes);
            return std::unexpected(failure("mapping device memory", error));
        }
    }
    ::madvise(start, map_bytes, MADV_DONTDUMP);
    return static_cast<std::byte*>(start);
}

std::expected<fabric_memory, std::string> fabric_memory::create(const fabric_options& options)
{
    const int file = to_high_descriptor(::memfd_create("softhca", MFD_CLOEXEC));
    if (file < 0) {
        return std::unexpected(failure("making the fabric's memory", errno));
    }
    if (::ftruncate(file, arena_start + map_bytes) != 0 || !write_clock_page(file)) {
        const int error = errno;
        libc().close(file);
        return std::unexpected(failure("making the fabric's memory", error));
    }
    const auto start = map(file);
    if (!start) {
        libc().close(file);
        return std::unexpected(start.error());
    }
    const fabric_memory made(*start, 0, file);
    fabric_options now   = options;
    now.now_ns           = monotonic_ns();
    const auto formatted = fabric::format(made.bytes(), now);
    const int locked     = formatted ? made.lock().make() : 0;
    if (!formatted || locked != 0) {
        ::munmap(*start, map_bytes);
        libc().close(file);
        return std::unexpected(formatted ? failure("making the fabric's lock", locked) : formatted.error());
    }
    return made;
}

std::expected<fabric_memory, std::string> fabric_memory::open(int process, int file)
{
    const int opened = reopen_descriptor(process, file, O_RDWR | O_CLOEXEC);
    if (opened < 0) {
        return std::unexpected(failure("opening the fabric of softhca-run", -opened));
    }
    struct stat found{};
    if (libc().fstat(opened, &found) != 0 || found.st_size != static_cast<off_t>(arena_start + map_bytes)) {
        libc().close(opened);
        return std::unexpected("the fabric is not one of this version of softhca");
    }
    const auto start = map(opened);
    libc().close(opened);
    if (!start) {
        return std::unexpected(start.error());
    }
    return fabric_memory(*start, process, file);
}

shared_lock& fabric_memory::lock() const
{
    return *std::launder(reinterpret_cast<shared_lock*>(_start + lock_start));
}

int fabric_memory::open_file(int flags) const
{
    return reopen_descriptor(_process != 0 ? _process : ::getpid(), _file, flags);
}

std::uint64_t fabric_memory::uar_offset(std::uint32_t uar)
{
    return uar_start + std::uint64_t{uar} * page_bytes;
}

std::uint16_t fabric_memory::memic_page_index(unsigned device, std::size_t page)
{
    return static_cast<std::uint16_t>(device << 8 | page);
}

} // namespace ucxl::softhca
