#include "memory_figures.h"

#include "sys/fork.h"
#include "sys/process.h"
#include "uct/layout/base/process_page.h"

#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>

namespace ucxl::memory_figures
{

namespace
{

constexpr const char* page_name = "ucx-layout-memory";
constexpr std::size_t num_words = sizeof(memory_page) / sizeof(std::uint64_t);
using page_words                = std::array<std::uint64_t, num_words>;
static_assert(sizeof(page_words) == sizeof(memory_page) && std::is_trivially_copyable_v<memory_page>);

constexpr std::array<std::pair<const char*, std::uint64_t memory_page::*>, 9> files = {{
    {"regions", &memory_page::num_regions},
    {"region_bytes", &memory_page::region_bytes},
    {"peer_windows", &memory_page::peer_windows},
    {"peer_windows_idle", &memory_page::peer_windows_idle},
    {"peer_regions", &memory_page::peer_regions},
    {"peer_bytes", &memory_page::peer_bytes},
    {"passes_shared", &memory_page::passes_shared},
    {"passes_alone", &memory_page::passes_alone},
    {"pieces_moved", &memory_page::pieces_moved},
}};

void show_number(void*, ucs_string_buffer_t* text, void*, std::uint64_t index)
{
    ucs_string_buffer_appendf(text, "%lu\n", read().*files[index].second);
}

struct own_page {
    std::mutex lock;
    std::atomic<memory_page*> page{nullptr};
    std::atomic<pid_t> owner{0};
};

own_page& the_page()
{
    return only_one_over_fork<own_page>();
}

// Others take it under locks of theirs, so fork takes it after these: it is made when the library is loaded.
[[gnu::constructor(200)]] void make_page_at_load()
{
    the_page();
}

bool is_present(const own_page& own)
{
    return own.owner.load(std::memory_order_acquire) == own_pid();
}

// Null only without memory for it: then nobody sees the figures.
memory_page* make_or_find() noexcept
{
    own_page& own = the_page();
    if (!is_present(own)) {
        const std::lock_guard guard(own.lock);
        if (!is_present(own)) {
            auto* const made = static_cast<memory_page*>(make_process_page(page_name, sizeof(memory_page)));
            if (made == nullptr) {
                return nullptr;
            }
            made->form = memory_page::current_form;
            // Last, so that nobody takes the page of the parent for that of this process.
            own.page.store(made, std::memory_order_relaxed);
            own.owner.store(own_pid(), std::memory_order_release);
        }
    }
    return own.page.load(std::memory_order_relaxed);
}

void set(std::uint64_t& word, std::uint64_t value)
{
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

void add(std::uint64_t memory_page::* word, std::uint64_t number) noexcept
{
    if (memory_page* const page = make_or_find()) {
        std::atomic_ref(page->*word).fetch_add(number, std::memory_order_relaxed);
    }
}

// Under the lock of the regions.
void list_regions(std::span<const region_ptr> all)
{
    memory_page* const page = make_or_find();
    if (page == nullptr) {
        return;
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const region& each = *all[i];
        bytes += each.length();
        if (i < memory_page::max_regions) {
            memory_page::region& shown = page->regions[i];
            set(shown.start, reinterpret_cast<std::uintptr_t>(each.start()));
            set(shown.length, each.length());
            set(shown.inode, each.inode());
            set(shown.origin, static_cast<std::uint64_t>(each.origin()));
        }
    }
    set(page->num_regions, all.size());
    set(page->region_bytes, bytes);
}

} // namespace

void count_pass(bool was_shared) noexcept
{
    add(was_shared ? &memory_page::passes_shared : &memory_page::passes_alone, 1);
}

void count_pieces(unsigned number) noexcept
{
    add(&memory_page::pieces_moved, number);
}

void show_peers(std::size_t windows, std::size_t idle, std::size_t regions, std::uint64_t bytes) noexcept
{
    if (memory_page* const page = make_or_find()) {
        set(page->peer_windows, windows);
        set(page->peer_windows_idle, idle);
        set(page->peer_regions, regions);
        set(page->peer_bytes, bytes);
    }
}

void publish()
{
    static char folder;
    ucs_vfs_obj_add_dir(nullptr, &folder, "layout/memory");
    for (std::uint64_t file = 0; file < files.size(); ++file) {
        ucs_vfs_obj_add_ro_file(&folder, show_number, nullptr, file, "%s", files[file].first);
    }
    region_table::instance().watch(list_regions);
}

memory_page read()
{
    const own_page& own = the_page();
    if (!is_present(own)) {
        return {};
    }
    page_words words;
    auto* const source = reinterpret_cast<std::uint64_t*>(own.page.load());
    for (std::size_t i = 0; i < num_words; ++i) {
        words[i] = std::atomic_ref(source[i]).load(std::memory_order_relaxed);
    }
    return std::bit_cast<memory_page>(words);
}

bool read_of(pid_t pid, memory_page& figures)
{
    page_words words{};
    const auto state = read_process_page(pid, page_name, memory_page::current_form, words);
    figures          = state == process_page_state::present ? std::bit_cast<memory_page>(words) : memory_page{};
    return state != process_page_state::unknown;
}

} // namespace ucxl::memory_figures
