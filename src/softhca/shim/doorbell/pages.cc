#include "pages.h"

#include "interrupted_thread.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/system/fault_signals.h"
#include "softhca/shim/system/libc_functions.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <sys/mman.h>
#include <sys/sysmacros.h>

namespace ucxl::softhca
{
namespace
{

constexpr std::uintptr_t page_bytes = 4096;

// A WQE may be copied to the page block by block. Only the first bytes of a register are a doorbell.
constexpr std::uintptr_t block_bytes      = 64;
constexpr std::size_t send_registers      = 0x800; // the first register
constexpr std::size_t send_register_bytes = 0x100;

// The instruction that this thread executes on an open page. Fixed offsets: the handler must not allocate.
struct stepping {
    void* page;
    std::size_t offset;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local stepping step_here = {nullptr, 0};

struct mapping {
    std::uintptr_t start;
    std::uintptr_t end;
    std::uint64_t offset;
};

template <typename Use>
void for_each_mapping(std::uint64_t device, std::uint64_t inode, Use use)
{
    FILE* const maps = libc().fopen("/proc/thread-self/maps", "re");
    if (maps == nullptr) {
        return;
    }
    std::array<char, 512> line;
    while (std::fgets(line.data(), static_cast<int>(line.size()), maps) != nullptr) {
        mapping found{};
        unsigned major_number   = 0;
        unsigned minor_number   = 0;
        std::uint64_t this_node = 0;
        const int fields =
            std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %x:%x %" SCNu64, &found.start,
                        &found.end, &found.offset, &major_number, &minor_number, &this_node);
        if (fields == 6 && this_node == inode && makedev(major_number, minor_number) == device) {
            use(found);
        }
    }
    std::fclose(maps);
}

} // namespace

doorbell_pages::page* doorbell_pages::find(std::uint32_t uar)
{
    const std::size_t used = _used.load();
    for (std::size_t i = 0; i < used; ++i) {
        if (_pages[i].uar.load() == uar) {
            return &_pages[i];
        }
    }
    return nullptr;
}

doorbell_pages::page* doorbell_pages::find_at(std::uintptr_t address)
{
    const std::uintptr_t start = address & ~(page_bytes - 1);
    const std::size_t used     = _used.load();
    for (std::size_t i = 0; i < used; ++i) {
        if (_pages[i].address.load() == start && start != 0) {
            return &_pages[i];
        }
    }
    return nullptr;
}

void doorbell_pages::add(std::uint32_t uar, bool trapping)
{
    const std::lock_guard hold(_changing);
    for (std::size_t i = 0; i < capacity; ++i) {
        page& slot = _pages[i];
        if (slot.uar.load() != 0) {
            continue;
        }
        slot.address.store(0);
        slot.trapping.store(trapping);
        slot.uar.store(uar);
        _missing.fetch_add(1);
        if (i >= _used.load()) {
            _used.store(i + 1);
        }
        return;
    }
}

void doorbell_pages::remove(std::uint32_t uar)
{
    const std::lock_guard hold(_changing);
    page* const slot = uar != 0 ? find(uar) : nullptr;
    if (slot == nullptr) {
        return;
    }
    if (slot->address.exchange(0) == 0) {
        _missing.fetch_sub(1);
    }
    slot->uar.store(0);
}

void doorbell_pages::protect(page& slot)
{
    ::mprotect(reinterpret_cast<void*>(slot.address.load()), page_bytes, PROT_READ);
}

void doorbell_pages::locate(std::uint64_t device, std::uint64_t inode)
{
    if (_missing.load() == 0) {
        return;
    }
    const std::lock_guard hold(_changing);
    for_each_mapping(device, inode, [this](const mapping& found) {
        const std::size_t used = _used.load();
        for (std::size_t i = 0; i < used; ++i) {
            page& slot                 = _pages[i];
            const std::uint64_t wanted = fabric_memory::uar_offset(slot.uar.load());
            if (slot.uar.load() == 0 || slot.address.load() != 0 || wanted < found.offset ||
                wanted - found.offset >= found.end - found.start) {
                continue;
            }
            slot.address.store(found.start + (wanted - found.offset));
            _missing.fetch_sub(1);
            if (slot.trapping.load()) {
                protect(slot);
            }
        }
    });
}

void doorbell_pages::make_trapping(std::uint32_t uar)
{
    const std::lock_guard hold(_changing);
    page* const slot = uar != 0 ? find(uar) : nullptr;
    if (slot != nullptr && !slot->trapping.exchange(true) && slot->address.load() != 0) {
        protect(*slot);
    }
}

void doorbell_pages::make_trapping_at(const void* address)
{
    page* const slot = find_at(reinterpret_cast<std::uintptr_t>(address));
    if (slot != nullptr) {
        make_trapping(slot->uar.load());
    }
}

std::byte* doorbell_pages::address(std::uint32_t uar) const
{
    const page* const slot = uar != 0 ? find(uar) : nullptr;
    return slot != nullptr ? reinterpret_cast<std::byte*>(slot->address.load()) : nullptr;
}

bool doorbell_pages::traps(std::uint32_t uar) const
{
    const page* const slot = uar != 0 ? find(uar) : nullptr;
    return slot != nullptr && slot->trapping.load();
}

void doorbell_pages::ring(page& slot, std::size_t offset, unsigned width, std::uint64_t value, doorbell_taker& taker)
{
    if (_disowned.load() || (offset >= send_registers && offset % send_register_bytes >= 8)) {
        return;
    }
    if (width >= 8) {
        taker.ring(slot.uar.load(), offset, value);
    } else if (width == 4 && offset % 8 == 0) {
        slot.low_half.store(static_cast<std::uint32_t>(value));
    } else if (width == 4) {
        taker.ring(slot.uar.load(), offset - 4, value << 32 | slot.low_half.load());
    }
}

bool doorbell_pages::step(page& slot, std::size_t offset, void* context, doorbell_taker& taker)
{
    auto* const start = reinterpret_cast<void*>(slot.address.load());
    // A thread that had finished its own step may have closed the page before this one executed its instruction: then
    // this is the same step again.
    const bool counted = step_here.page == start;
    if (!counted) {
        slot.steppers.fetch_add(1);
    }
    if (::mprotect(start, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        slot.steppers.fetch_sub(counted ? 0 : 1);
        return false;
    }
    if (_disowned.load()) {
        return true;
    }
    if (!interrupted_thread(context).begin_step()) {
        taker.lost_track();
        return true;
    }
    install_step_handler();
    step_here = {.page = start, .offset = offset};
    return true;
}

bool doorbell_pages::finish_step(void* context, doorbell_taker& taker)
{
    const stepping done = step_here;
    if (done.page == nullptr) {
        return false;
    }
    step_here.page = nullptr;
    interrupted_thread(context).end_step();
    page* const slot = find_at(reinterpret_cast<std::uintptr_t>(done.page));
    if (slot == nullptr) {
        return true;
    }
    const auto* const word = static_cast<const std::byte*>(done.page) + (done.offset & ~std::size_t{7});
    const std::uint64_t value =
        std::atomic_ref(*const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(word))).load();
    if (slot->steppers.fetch_sub(1) == 1) {
        protect(*slot);
    }
    ring(*slot, done.offset & ~std::size_t{7}, 8, value, taker);
    // Another thread may have stored to the open page meanwhile.
    taker.missed_some();
    return true;
}

bool doorbell_pages::handle(int signal, const siginfo_t& fault, void* context, doorbell_taker& taker)
{
    if (signal == SIGTRAP) {
        return finish_step(context, taker);
    }
    if (signal != SIGSEGV || fault.si_code != SEGV_ACCERR) {
        return false;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(fault.si_addr);
    page* const slot   = find_at(address);
    interrupted_thread thread(context);
    if (slot == nullptr || !thread.was_writing()) {
        return false;
    }
    const std::size_t offset = address % page_bytes;
    const auto store         = thread.store();
    const auto value         = store ? thread.value(*store) : std::nullopt;
    if (!value) {
        return step(*slot, offset, context, taker);
    }
    thread.skip(*store);
    if (store->width >= 16) {
        const std::uintptr_t block = address & ~(block_bytes - 1);
        thread.skip_copy_into(block, block_bytes);
    }
    ring(*slot, offset, store->width, *value, taker);
    return true;
}

} // namespace ucxl::softhca
