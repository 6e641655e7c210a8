#include "failure_page.h"

#include "process_page.h"
#include "sys/fork.h"
#include "sys/process.h"

#include <cstdlib>
#include <mutex>
#include <new>

namespace ucxl
{

namespace
{

constexpr const char* file_name = "ucx-layout-failures";

struct own_page {
    std::mutex lock;
    std::atomic<failure_page*> page{nullptr};
    std::atomic<pid_t> owner{0};
};

own_page& the_page()
{
    return only_one_over_fork<own_page>();
}

// Others take it under locks of theirs, so fork takes it after these: it is made when the library is loaded.
[[gnu::constructor(200)]] void make_failure_page_at_load()
{
    the_page();
}

// Without a file the counts are in private memory, and only this process can read them.
void* make_page()
{
    void* const made = make_process_page(file_name, sizeof(failure_page));
    return made != nullptr ? made : std::calloc(1, sizeof(failure_page));
}

} // namespace

failure_page* own_failure_page() noexcept
{
    own_page& own   = the_page();
    const pid_t pid = own_pid();
    if (own.owner.load(std::memory_order_acquire) == pid) {
        return own.page.load(std::memory_order_relaxed);
    }
    const std::lock_guard guard(own.lock);
    if (own.owner.load() == pid) {
        return own.page.load();
    }
    void* const memory = make_page();
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const created = new (memory) failure_page{};
    created->num_kinds  = num_failure_kinds;
    created->magic      = failure_page::form;
    // Last, so that nobody takes the page of the parent for that of this process.
    own.page.store(created, std::memory_order_relaxed);
    own.owner.store(pid, std::memory_order_release);
    return created;
}

const failure_page* known_failure_page() noexcept
{
    const own_page& own = the_page();
    return own.owner.load(std::memory_order_acquire) == own_pid() ? own.page.load(std::memory_order_relaxed) : nullptr;
}

failure_counts read_failure_page(const failure_page* page)
{
    failure_counts counts;
    for (std::size_t kind = 0; page != nullptr && kind < num_failure_kinds; ++kind) {
        counts.all[kind]    = page->all[kind].load(std::memory_order_relaxed);
        counts.silent[kind] = page->silent[kind].load(std::memory_order_relaxed);
    }
    return counts;
}

bool count_failures_of(pid_t pid, failure_counts& counts)
{
    counts = {};
    std::array<std::uint64_t, sizeof(failure_page) / sizeof(std::uint64_t)> words{};
    const auto state = read_process_page(pid, file_name, failure_page::form, words);
    if (state != process_page_state::present || words[1] != num_failure_kinds) {
        return state == process_page_state::absent;
    }
    for (std::size_t kind = 0; kind < num_failure_kinds; ++kind) {
        counts.all[kind]    = words[2 + kind];
        counts.silent[kind] = words[2 + num_failure_kinds + kind];
    }
    return true;
}

} // namespace ucxl
