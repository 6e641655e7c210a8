#include "device_window_keys.h"

#include "sys/rollback.h"
#include "window_domain.h"

#include <algorithm>

namespace ucxl::mlx5
{

namespace
{

struct keys_of_domains final : planned_keys {
    struct key {
        window_keys::domain_id domain;
        window_key::planned planned;
    };

    window_content content;
    std::vector<key> keys;
};

// What is done in one domain has to be undone in the others, whatever goes wrong.
template <typename Body>
result<void> contained(Body&& body) noexcept
{
    try {
        return body();
    } catch (const std::exception&) {
        return fail(errc::no_memory, {});
    }
}

} // namespace

// Never destroyed: contexts may end while the process does.
device_window_keys& device_window_keys::instance()
{
    static device_window_keys& only = *new device_window_keys;
    return only;
}

void device_window_keys::add(window_domain* domain)
{
    const std::lock_guard guard(_lock);
    _domains.push_back(domain);
}

void device_window_keys::remove(window_domain* domain)
{
    const std::lock_guard guard(_lock);
    std::erase(_domains, domain);
}

window_domain* device_window_keys::find(domain_id id) const
{
    const auto found = std::ranges::find(_domains, id, [](const window_domain* domain) -> domain_id { return domain; });
    return found == _domains.end() ? nullptr : *found;
}

template <typename Action>
void device_window_keys::for_all(Action&& act)
{
    const std::lock_guard guard(_lock);
    for (window_domain* const domain : _domains) {
        act(*domain);
    }
}

result<std::unique_ptr<planned_keys>> device_window_keys::plan(std::span<const domain_id> domains,
                                                               const window_content& content, key_choice choice)
{
    const std::lock_guard guard(_lock);
    auto all     = std::make_unique<keys_of_domains>();
    all->content = content;
    for (const domain_id id : domains) {
        if (window_domain* const domain = find(id)) {
            if (auto planned = UCXL_TRY(domain->records.plan(content, choice))) {
                all->keys.push_back({domain, std::move(*planned)});
            }
        }
    }
    return all;
}

result<void> device_window_keys::bind(planned_keys& planned, std::byte* address)
{
    const std::lock_guard guard(_lock);
    auto& all           = static_cast<keys_of_domains&>(planned);
    all.content.address = address;
    std::vector<window_domain*> changed;
    changed.reserve(all.keys.size());
    rollback undo([&] {
        for (window_domain* const domain : changed) {
            domain->records.remove(address);
        }
    });
    for (auto& [id, key] : all.keys) {
        window_domain* const domain = find(id);
        if (domain != nullptr && UCXL_TRY(domain->records.bind(all.content, std::move(key)))) {
            changed.push_back(domain);
        }
    }
    undo.cancel();
    return {};
}

void device_window_keys::suspend(const std::byte* address)
{
    for_all([&](window_domain& domain) { domain.records.suspend(address); });
}

result<void> device_window_keys::resume(const std::byte* address)
{
    result<void> all;
    for_all([&](window_domain& domain) {
        if (auto done = contained([&] { return domain.records.resume(address); }); !done && all) {
            all = std::move(done);
        }
    });
    if (!all) {
        remove(address);
    }
    return all;
}

result<void> device_window_keys::rebind(const window_content& before, const window_content& after)
{
    const std::lock_guard guard(_lock);
    for (std::size_t i = 0; i < _domains.size(); ++i) {
        const auto done = contained([&] { return _domains[i]->records.rebind(after); });
        if (done) {
            continue;
        }
        for (std::size_t changed = 0; changed < i; ++changed) {
            if (!contained([&] { return _domains[changed]->records.rebind(before); })) {
                _domains[changed]->records.remove(before.address); // rather no key than one over the wrong memory
            }
        }
        return done;
    }
    return {};
}

bool device_window_keys::has_key(const std::byte* address) const
{
    const std::lock_guard guard(_lock);
    return std::ranges::any_of(_domains, [&](const window_domain* domain) { return domain->records.has_key(address); });
}

void device_window_keys::remove(const std::byte* address)
{
    for_all([&](window_domain& domain) { domain.records.remove(address); });
}

result<std::byte*> device_window_keys::allocate(std::span<const domain_id> domains, std::uint64_t length)
{
    const std::lock_guard guard(_lock);
    result<std::byte*> allocated = fail(errc::unsupported, "the context has no device with memory of its own");
    for (const domain_id id : domains) {
        if (window_domain* const domain = find(id)) {
            allocated =
                domain->card.allocate(length).transform([](const memic_allocation& made) { return made.address; });
        }
        if (allocated) {
            break;
        }
    }
    return allocated;
}

void device_window_keys::free(const std::byte* address)
{
    const std::lock_guard guard(_lock);
    for (window_domain* const domain : _domains) {
        if (domain->free_card_memory(address)) {
            return;
        }
    }
}

bool device_window_keys::exports_with(const access_token& token)
{
    bool has_token = false;
    for_all([&](window_domain& domain) { has_token = has_token || domain.exchanged.exports_with(token); });
    return has_token;
}

bool device_window_keys::copy_card_memory(std::byte* address, std::uint64_t length, std::byte* other,
                                          copy_direction direction)
{
    const std::lock_guard guard(_lock);
    return std::ranges::any_of(
        _domains, [&](window_domain* domain) { return domain->card.copy(address, length, other, direction); });
}

} // namespace ucxl::mlx5
