#include "heap_regions.h"

#include "abi/log.h"
#include "sys/fork.h"
#include "sys/heap_memory.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace ucxl
{

namespace
{

class heap_regions
{
public:
    static heap_regions& instance()
    {
        static heap_regions& only = *[] {
            region_table::instance(); // fork takes its lock after ours
            auto* const made = new heap_regions;
            hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
            pthread_atfork(nullptr, nullptr, [] { instance().withdraw_in_child(); });
            return made;
        }();
        return only;
    }

    bool has_heap() const { return _tell != nullptr; }

    void share_new()
    {
        heap_memory memory{};
        if (_tell(_num_seen.load(std::memory_order_acquire), &memory) == heap_memory_none) {
            return;
        }
        const std::lock_guard guard(_lock);
        unsigned piece = _num_seen.load(std::memory_order_relaxed);
        for (int kind; (kind = _tell(piece, &memory)) != heap_memory_none; ++piece) {
            if (kind == heap_memory_shared) {
                share(memory);
            }
        }
        _num_seen.store(piece, std::memory_order_release);
    }

    region_ptr find(const void* start, std::uint64_t length)
    {
        share_new();
        const std::lock_guard guard(_lock);
        const auto found = std::ranges::find_if(
            _regions, [&](const region_ptr& each) { return !each->is_withdrawn() && each->holds(start, length); });
        return found == _regions.end() ? nullptr : *found;
    }

private:
    heap_regions() : _tell(find_heap_memory()) {}

    void share(const heap_memory& memory)
    {
        auto made = region::share(memory.start, memory.length, memory.fd, memory.file_offset);
        if (made) {
            _regions.reserve(_regions.size() + 1);
            if (const auto added = region_table::instance().add(*made); !added) {
                ucs_debug("memory of the heap stays plain: %s", added.error().message.c_str());
                return;
            }
            _regions.push_back(std::move(*made));
        } else {
            ucs_debug("memory of the heap stays plain: %s", made.error().message.c_str());
        }
    }

    // In a child the heap is a private copy, and peers must not get keys that name the file of the parent.
    void withdraw_in_child() const
    {
        for (const region_ptr& each : _regions) {
            each->withdraw_in_child();
        }
    }

    const heap_memory_function _tell;
    std::mutex _lock;
    std::vector<region_ptr> _regions; // they stay for ever, as the memory does
    std::atomic<unsigned> _num_seen{0};
};

} // namespace

void share_heap()
{
    heap_regions& heap = heap_regions::instance();
    if (heap.has_heap()) {
        heap.share_new();
    }
}

region_ptr region_of_heap(const void* start, std::uint64_t length)
{
    heap_regions& heap = heap_regions::instance();
    return heap.has_heap() ? heap.find(start, length) : nullptr;
}

} // namespace ucxl
