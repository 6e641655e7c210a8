// The doorbell pages (UARs) that this process has mapped, and which of them trap. A store to a trapping page stops the
// thread; it is decoded and given to the device as a doorbell. A page that does not trap is plain memory, and its users
// tell the device themselves (direct_verbs.h).
//
// The addresses of pages are read from /proc/thread-self/maps, because UCX's hooks of mmap() bypass those of others.
// /proc/self would be empty once the main thread has ended.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ucxl::softhca
{

// Gets the doorbells. Called in the signal handler of the thread that stored.
class doorbell_taker
{
public:
    virtual ~doorbell_taker() = default;

    virtual void ring(std::uint32_t uar, std::size_t offset, std::uint64_t value) = 0;
    // A store may have been missed: look after all queues once.
    virtual void missed_some() = 0;
    // Stores to this page can no longer be observed: look after the queues all the time.
    virtual void lost_track() = 0;
};

class doorbell_pages
{
public:
    // Adds a page that the program is about to map.
    void add(std::uint32_t uar, bool trapping);
    void remove(std::uint32_t uar);

    // Finds the pages mapped since, in the file with that device and inode. Cheap when none is missing.
    void locate(std::uint64_t device, std::uint64_t inode);

    void make_trapping(std::uint32_t uar);
    void make_trapping_at(const void* address);
    // Null when it is not mapped.
    std::byte* address(std::uint32_t uar) const;
    bool traps(std::uint32_t uar) const;

    // In a child of fork(): ignores stores to these pages.
    void disown() { _disowned.store(true); }

    // For the signal handler. False when the fault is not about these pages.
    bool handle(int signal, const siginfo_t& fault, void* context, doorbell_taker& taker);

private:
    struct page {
        std::atomic<std::uint32_t> uar      = 0; // 0: free
        std::atomic<std::uintptr_t> address = 0; // 0: not known yet
        std::atomic<bool> trapping          = false;
        std::atomic<std::uint32_t> low_half = 0; // of a doorbell that is stored in two halves
        std::atomic<unsigned> steppers      = 0; // threads that execute one instruction on the open page
    };

    page* find(std::uint32_t uar);
    const page* find(std::uint32_t uar) const { return const_cast<doorbell_pages*>(this)->find(uar); }
    page* find_at(std::uintptr_t address);
    void protect(page& slot);
    bool step(page& slot, std::size_t offset, void* context, doorbell_taker& taker);
    bool finish_step(void* context, doorbell_taker& taker);
    void ring(page& slot, std::size_t offset, unsigned width, std::uint64_t value, doorbell_taker& taker);

    static constexpr std::size_t capacity = 1024;

    std::array<page, capacity> _pages{};
    std::atomic<std::size_t> _used = 0; // later pages were never used
    std::atomic<unsigned> _missing = 0; // pages without an address
    std::atomic<bool> _disowned    = false;
    std::mutex _changing;
};

} // namespace ucxl::softhca
