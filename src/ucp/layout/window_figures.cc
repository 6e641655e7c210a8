#include "window_figures.h"

#include "decision.h"
#include "hardware_keys.h"
#include "sys/fork.h"
#include "uct/layout/base/process_page.h"

#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <utility>

#include <pthread.h>

namespace ucxl
{

namespace
{

constexpr const char* page_name = "ucx-layout-windows";

constexpr std::size_t num_words = sizeof(process_figures) / sizeof(std::uint64_t);
using page_words                = std::array<std::uint64_t, num_words>;
static_assert(sizeof(page_words) == sizeof(process_figures) && std::is_trivially_copyable_v<process_figures>);

// Where the figures are if there is no memory for a page that others can read.
alignas(std::uint64_t) process_figures private_page{};

constexpr std::array<std::pair<const char*, std::uint64_t domain_figures::*>, 13> device_files = {{
    {"live", &domain_figures::keys_live},
    {"suspended", &domain_figures::keys_suspended},
    {"spare", &domain_figures::keys_spare},
    {"entries", &domain_figures::entries},
    {"binds", &domain_figures::binds},
    {"invalidations", &domain_figures::invalidations},
    {"bases_registered", &domain_figures::bases_registered},
    {"memic_chunks", &domain_figures::memic_chunks},
    {"memic_bytes", &domain_figures::memic_bytes},
    {"memic_free", &domain_figures::memic_free},
    {"exported", &domain_figures::exported},
    {"exported_spare", &domain_figures::exported_spare},
    {"aliases", &domain_figures::aliases},
}};

constexpr std::array<std::pair<const char*, process_figures::text process_figures::device::*>, 2> text_files = {{
    {"unusable", &process_figures::device::unusable},
    {"choices", &process_figures::device::choices},
}};

void set(std::uint64_t& word, std::uint64_t value)
{
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

// Only one thread at a time changes a figure.
void change(std::uint64_t& word, std::int64_t difference)
{
    set(word, std::atomic_ref(word).load(std::memory_order_relaxed) + static_cast<std::uint64_t>(difference));
}

void set(process_figures::text& text, std::string_view value)
{
    std::array<std::uint64_t, sizeof(text) / sizeof(std::uint64_t)> words{};
    value.copy(reinterpret_cast<char*>(words.data()), sizeof(text) - 1);
    auto* const target = reinterpret_cast<std::uint64_t*>(text.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
        set(target[i], words[i]);
    }
}

// Other processes of the user can write the page. It may not end.
std::string_view content_of(const process_figures::text& text)
{
    return {text.data(), strnlen(text.data(), text.size())};
}

process_figures copy_of(process_figures* page)
{
    page_words words;
    auto* const source = reinterpret_cast<std::uint64_t*>(page);
    for (std::size_t i = 0; i < num_words; ++i) {
        words[i] = std::atomic_ref(source[i]).load(std::memory_order_relaxed);
    }
    return std::bit_cast<process_figures>(words);
}

// "N blocks at N" for "7 blocks at 0x1f".
std::string without_numbers(std::string_view text)
{
    std::string kept;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto is_digit = [&](std::size_t at) {
            return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
        };
        if (!is_digit(i)) {
            kept += text[i];
            continue;
        }
        kept += 'N';
        const bool is_hex = text.substr(i).starts_with("0x");
        i += is_hex ? 2 : 0;
        while (is_digit(i) || (is_hex && i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0)) {
            ++i;
        }
        --i;
    }
    return kept;
}

void show_number(void*, ucs_string_buffer_t* text, void*, std::uint64_t index)
{
    const process_figures figures = window_figures::instance().read();
    const std::array numbers{figures.keyed, figures.copied, figures.unasked};
    ucs_string_buffer_appendf(text, "%lu\n", numbers[index]);
}

void show_reasons(void*, ucs_string_buffer_t* text, void*, std::uint64_t)
{
    const process_figures figures = window_figures::instance().read();
    for (const auto& reason : figures.reasons) {
        if (reason.all != 0) {
            ucs_string_buffer_appendf(text, "%lu %lu %s\n", reason.now, reason.all, printable(reason.latest).c_str());
        }
    }
}

// The index is that of the device, and of its file.
void show_device_number(void*, ucs_string_buffer_t* text, void*, std::uint64_t index)
{
    const process_figures figures = window_figures::instance().read();
    const auto& device            = figures.devices[index / device_files.size()];
    ucs_string_buffer_appendf(text, "%lu\n", device.sum.*device_files[index % device_files.size()].second);
}

// The same of texts.
void show_device_text(void*, ucs_string_buffer_t* text, void*, std::uint64_t index)
{
    const process_figures figures = window_figures::instance().read();
    const auto& device            = figures.devices[index / text_files.size()];
    ucs_string_buffer_appendf(text, "%s\n", printable(device.*text_files[index % text_files.size()].second).c_str());
}

// Their addresses name the folders. They stay, because somebody may be reading a file while its folder goes.
std::array<char, process_figures::max_devices> device_folders;

void publish_windows()
{
    static char folder;
    ucs_vfs_obj_add_dir(nullptr, &folder, "layout/windows");
    ucs_vfs_obj_add_ro_file(&folder, show_number, nullptr, 0, "keyed");
    ucs_vfs_obj_add_ro_file(&folder, show_number, nullptr, 1, "copied");
    ucs_vfs_obj_add_ro_file(&folder, show_number, nullptr, 2, "unasked");
    ucs_vfs_obj_add_ro_file(&folder, show_reasons, nullptr, 0, "reasons");
}

void publish_device(std::size_t index, const char* name)
{
    char* const folder = &device_folders[index];
    ucs_vfs_obj_add_dir(nullptr, folder, "layout/keys/%s", name);
    for (std::size_t file = 0; file < device_files.size(); ++file) {
        ucs_vfs_obj_add_ro_file(folder, show_device_number, nullptr, index * device_files.size() + file, "%s",
                                device_files[file].first);
    }
    for (std::size_t file = 0; file < text_files.size(); ++file) {
        ucs_vfs_obj_add_ro_file(folder, show_device_text, nullptr, index * text_files.size() + file, "%s",
                                text_files[file].first);
    }
}

} // namespace

class window_figures::domain_of_device final : public shown_domain
{
public:
    domain_of_device(window_figures& figures, const std::string& name)
        : device(figures.device_named(name)), _all(figures)
    {
    }
    ~domain_of_device() override;

    void show_unusable(const std::string& reason) override { show(&process_figures::device::unusable, reason); }
    void show_choices(const std::string& choices) override { show(&process_figures::device::choices, choices); }
    void show_figures(const domain_figures& figures) noexcept override;

    std::atomic<process_figures::device*> device; // in the page, or null if there is no room in it

private:
    void show(process_figures::text process_figures::device::* text, const std::string& value)
    {
        const std::lock_guard guard(_all._lock);
        if (process_figures::device* const place = device) {
            set(place->*text, value);
        }
    }

    window_figures& _all;
    domain_figures _figures{}; // that are part of the sum of the device
};

// Only the difference is added to the sum of the device, because this runs whenever a window is mapped.
void window_figures::domain_of_device::show_figures(const domain_figures& figures) noexcept
{
    process_figures::device* const place = device.load(std::memory_order_relaxed);
    for (const auto& [name, figure] : device_files) {
        const std::uint64_t difference = figures.*figure - _figures.*figure;
        if (place != nullptr && difference != 0) {
            std::atomic_ref(place->sum.*figure).fetch_add(difference, std::memory_order_relaxed);
        }
    }
    _figures = figures;
}

window_figures::domain_of_device::~domain_of_device()
{
    show_figures({});
    const std::lock_guard guard(_all._lock);
    std::erase(_all._domains, this);
    if (process_figures::device* const place = device) {
        change(place->domains, -1);
        if (place->domains == 0) {
            ucs_vfs_obj_remove(&device_folders[static_cast<std::size_t>(place - _all._page.load()->devices.data())]);
            set(place->name, "");
            set(place->unusable, "");
            set(place->choices, "");
        }
    }
}

std::string printable(const process_figures::text& text)
{
    std::string shown(content_of(text));
    std::ranges::replace_if(shown, [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; }, '?');
    return shown;
}

// Never destroyed: contexts may end while the process does.
window_figures& window_figures::instance()
{
    static window_figures& only = *[] {
        auto* const created = new window_figures;
        hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
        // Before a child has windows of its own, it has those of its parent.
        pthread_atfork(nullptr, nullptr, [] { instance().move_to_own_page(true); });
        publish_windows();
        return created;
    }();
    return only;
}

window_figures::window_figures() : _page(&private_page)
{
    private_page.form = process_figures::current_form;
    move_to_own_page(false);
}

void window_figures::move_to_own_page(bool is_child)
{
    process_figures content = copy_of(_page);
    if (is_child) {
        content.devices = {}; // their domains are the parent's
        for (const auto& domain : _domains) {
            domain->device = nullptr;
        }
    }
    void* const memory = make_process_page(page_name, sizeof(process_figures));
    auto* const page   = memory != nullptr ? static_cast<process_figures*>(memory) : &private_page;
    std::memcpy(static_cast<void*>(page), &content, sizeof(content));
    _page = page;
}

// Returns the class of windows that are copied for such a reason.
std::uint8_t window_figures::reason_like(std::string_view reason)
{
    auto& reasons         = _page.load()->reasons;
    const auto last       = reasons.end() - 1;
    const std::string own = without_numbers(reason.substr(0, sizeof(process_figures::text) - 1));
    const auto found      = std::find_if(reasons.begin(), last, [&](const process_figures::reason& known) {
        return known.all == 0 || without_numbers(content_of(known.latest)) == own;
    });
    set(found->latest, reason);
    change(found->all, 1);
    return static_cast<std::uint8_t>(found - reasons.begin());
}

carrier_count window_figures::classify(const cached_window& window)
{
    const window_carrier carrier = carrier_of(window);
    const bool is_copied = carrier == window_carrier::undecided ? hardware_keys() == nullptr : !may_have_keys(carrier);
    return is_copied ? carrier_count{.carrier = window_carrier::copies, .reason = reason_like(why_no_key(window))}
                     : carrier_count{.carrier = carrier};
}

std::uint64_t& window_figures::count_of(const cached_window& window)
{
    process_figures& figures = *_page.load();
    switch (*window.counted.carrier) {
    case window_carrier::keys:
        return figures.keyed;
    case window_carrier::undecided:
        return figures.unasked;
    default:
        return figures.copied;
    }
}

void window_figures::add(cached_window& window)
{
    carrier_count counted = window.counted;
    if (!counted.carrier || (*counted.carrier == window_carrier::undecided && window.had_memory_handle)) {
        counted = classify(window);
    } else if (counted.is_live) {
        return;
    }
    remove(window);
    window.counted         = counted;
    window.counted.is_live = true;
    change(count_of(window), 1);
    if (counted.carrier == window_carrier::copies) {
        change(_page.load()->reasons[counted.reason].now, 1);
    }
}

void window_figures::remove(cached_window& window) noexcept
{
    if (!std::exchange(window.counted.is_live, false)) {
        return;
    }
    change(count_of(window), -1);
    if (window.counted.carrier == window_carrier::copies) {
        change(_page.load()->reasons[window.counted.reason].now, -1);
    }
}

// The place of the device, or a free one, or null.
process_figures::device* window_figures::device_named(std::string_view name)
{
    auto& devices       = _page.load()->devices;
    const auto has_name = [&](const auto& device) { return name == content_of(device.name); };
    const auto is_free  = [](const auto& device) { return device.name[0] == 0; };
    const auto known    = std::ranges::find_if(devices, has_name);
    const auto found    = known != devices.end() ? known : std::ranges::find_if(devices, is_free);
    return found == devices.end() ? nullptr : &*found;
}

std::unique_ptr<shown_domain> window_figures::show_domain(const std::string& device)
{
    const std::lock_guard guard(_lock);
    _domains.reserve(_domains.size() + 1);
    auto shown = std::make_unique<domain_of_device>(*this, device);
    _domains.push_back(shown.get());
    if (process_figures::device* const place = shown->device) {
        if (place->domains == 0) {
            publish_device(static_cast<std::size_t>(place - _page.load()->devices.data()), device.c_str());
            set(place->name, device);
        }
        change(place->domains, 1);
    }
    return shown;
}

process_figures window_figures::read() const
{
    return copy_of(_page);
}

bool window_figures::read_of(pid_t pid, process_figures& figures)
{
    page_words words{};
    const auto state = read_process_page(pid, page_name, process_figures::current_form, words);
    figures          = state == process_page_state::present ? std::bit_cast<process_figures>(words) : process_figures{};
    return state != process_page_state::unknown;
}

} // namespace ucxl
