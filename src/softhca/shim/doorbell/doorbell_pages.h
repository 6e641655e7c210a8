// The doorbell pages (UARs) that this process has mapped, and which of them trap: a store to a trapping page stops the
// thread, is decoded and given to the device as a doorbell. A page that does not trap is plain memory; those who store
// there tell the device themselves (verbs_calls.h).
//
// Where a page was mapped is looked up in /proc/self/maps, because UCX's hooks of mmap() bypass those of anybody else.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ucxl::softhca
{

// What a store means to the device. In the handler of the store's thread.
class doorbell_taker
{
public:
    virtual ~doorbell_taker() = default;

    virtual void ring(std::uint32_t uar, std::size_t offset, std::uint64_t value) = 0;
    // A store may have been missed: look after all queues once.
    virtual void missed_some() = 0;
    // Stores to this page cannot be followed any more: look after the queues without being told.
    virtual void lost_track() = 0;
};

class doorbell_pages
{
public:
    // A page of that file, to be mapped by somebody soon.
    void add(std::uint32_t uar, bool trapping);
    void remove(std::uint32_t uar);

    // Finds what was mapped since, in the file with those numbers. Cheap where nothing is missing.
    void locate(std::uint64_t device, std::uint64_t inode);

    void make_trapping(std::uint32_t uar);
    void make_trapping_at(const void* address);
    // Null where it is not mapped.
    std::byte* address(std::uint32_t uar) const;
    bool traps(std::uint32_t uar) const;

    // In the child of fork(): stores to these pages go nowhere.
    void disown() { _disowned.store(true); }

    // For the signal handler. False: not about these pages.
    bool handle(int signal, const siginfo_t& fault, void* context, doorbell_taker& taker);

private:
    struct page {
        std::atomic<std::uint32_t> uar      = 0; // 0: free
        std::atomic<std::uintptr_t> address = 0; // 0: not known yet
        std::atomic<bool> trapping          = false;
        std::atomic<std::uint32_t> low_half = 0; // of a doorbell stored in two halves
        std::atomic<unsigned> steppers      = 0; // threads that execute one instruction on the open page
    };

    page* find(std::uint32_t uar);
    const page* find(std::uint32_t uar) const { return const_cast<doorbell_pages*>(this)->find(uar); }
    page* find_at(std::uintptr_t address);
    void protect(page& which);
    bool step(page& which, std::size_t offset, void* context, doorbell_taker& taker);
    bool finish_step(void* context, doorbell_taker& taker);
    void ring(page& which, std::size_t offset, unsigned width, std::uint64_t value, doorbell_taker& taker);

    static constexpr std::size_t capacity = 1024;

    std::array<page, capacity> _pages{};
    std::atomic<std::size_t> _used = 0; // pages beyond were never used
    std::atomic<unsigned> _missing = 0; // without an address
    std::atomic<bool> _disowned    = false;
    std::mutex _changing;
};

} // namespace ucxl::softhca
