#include "window_key.h"

#include "abi/log.h"
#include "uct/ib/mlx5/layout/explain.h"

#include <exception>
#include <format>

namespace ucxl::mlx5
{

namespace
{

region_options options_for(const domain& keys, const window_content& content, bool is_exported)
{
    return {
        .rights = {.local_write = true, .remote_read = true, .remote_write = true, .remote_atomic = keys.found.atomics},
        .max_entries = window_key_octowords,
        .address     = reinterpret_cast<std::uintptr_t>(content.address),
        .pool        = is_exported ? &domain::exported : &domain::roots};
}

} // namespace

result<window_key::shown_memory> window_key::hold_pieces(base_memory& memory, const memory_pieces& pieces)
{
    shown_memory all{.bases = {}, .held = {}, .shape = pieces.shape, .pieces = pieces};
    for (std::size_t i = 0; i < pieces.ranges.size(); ++i) {
        std::uint32_t lkey = 0; // nothing refers to a source without bytes
        if (pieces.ranges[i].length() > 0) {
            lkey = all.held.emplace_back(UCXL_TRY(memory.hold(pieces.ranges[i]))).lkey();
        }
        all.bases.push_back({pieces.origins[i], lkey});
    }
    return all;
}

result<window_key::shown_memory> window_key::hold(base_memory& memory, const layout_ptr& shape,
                                                  std::span<std::byte* const> bases)
{
    if (!is_scattered(*shape)) {
        if (auto whole = hold_pieces(memory, whole_sources(shape, bases))) {
            return whole;
        }
    }
    // Memory between the blocks may be missing.
    return hold_pieces(memory, UCXL_TRY(groups_of_blocks(*shape, bases)));
}

result<void> window_key::check_region() const
{
    if (_region == nullptr) {
        return fail(errc::io_error, "its key was destroyed, because it could not be invalidated");
    }
    return {};
}

result<void> window_key::show_bound(const lowered_layout* ahead)
{
    UCXL_TRY(_region->prepare(_bound.shape, _bound.bases, ahead));
    return bind(false);
}

result<void> window_key::bind(bool replace)
{
    region* const one = _region.get();
    UCXL_TRY(bind_all(std::span(&one, 1), replace));
    _is_suspended = false;
    return {};
}

result<window_key::planned> window_key::plan(const domain& domain, base_memory& memory, const window_content& content,
                                             key_choice choice)
{
    if (content.length == 0) {
        return fail(errc::unsupported, "the window is empty");
    }
    if (domain.found.address == address_method::none) {
        return fail(errc::unsupported,
                    "all keys of this device begin at address 0" + in_brackets(domain.found.address_refusal));
    }
    if (choice == key_choice::by_cost) {
        // UCP would take the card for atomic operations on the window, as it does for other memory. A card that refuses
        // one ends the connection, and the process.
        if (domain.caps.has_atomics && !domain.caps.atomics) {
            return fail(errc::unsupported,
                        std::format("this device does atomic operations, but none by keys of windows{}; without any on "
                                    "windows, UCX_LAYOUT_KEYS_WINDOWS=keys saves the copies",
                                    in_brackets(domain.found.atomics_refusal)));
        }
    }
    lowered_layout lowered;
    if (choice == key_choice::by_cost || !is_scattered(*content.shape)) {
        lowered = UCXL_TRY(region::lower_ahead(domain, options_for(domain, content, false), content.shape));
    }
    if (choice == key_choice::by_cost) {
        UCXL_TRY(prefer_key_for_window(lowered.keys.cost, *content.shape)); // before its memory is pinned
    }
    return planned{UCXL_TRY(hold(memory, content.shape, content.bases)), std::move(lowered)};
}

result<std::unique_ptr<window_key>> window_key::create(domain& domain, base_memory& memory,
                                                       const window_content& content, planned&& planned,
                                                       bool is_exported)
{
    std::unique_ptr<window_key> created(new window_key(memory, content));
    created->_region = UCXL_TRY(region::create(domain, options_for(domain, content, is_exported)));
    created->_bound  = std::move(planned.shown);
    UCXL_TRY(created->show_bound(&planned.lowered));
    return created;
}

window_key::~window_key()
{
    suspend();
}

void window_key::suspend() noexcept
{
    if (_is_suspended) {
        return;
    }
    _is_suspended = true;
    try {
        const auto done = mlx5::suspend(*_region);
        if (!done) {
            ucs_warn("the key 0x%x of the window at %p could not be invalidated and is destroyed: %s", key(),
                     static_cast<void*>(_content.address), done.error().message.c_str());
            _region.reset(); // a region that may be bound destroys its first key
        }
    } catch (const std::exception&) {
        _region.reset();
    }
    _bound.held.clear();
}

void window_key::end_bound() noexcept
{
    if (_region->may_be_bound()) {
        _region.reset();
    }
    _bound.bases.clear(); // so that nothing is taken for what the region still shows
    _bound.held.clear();
}

result<void> window_key::resume()
{
    if (!_is_suspended) {
        return {};
    }
    UCXL_TRY(check_region());
    auto again         = UCXL_TRY(hold_pieces(_memory, _bound.pieces));
    const bool is_same = std::ranges::equal(again.bases, _bound.bases, [](const auto& one, const auto& other) {
        return one.address == other.address && one.lkey == other.lkey;
    });
    _bound             = std::move(again);
    auto done          = is_same && _region->length() != 0 ? mlx5::resume(*_region) : show_bound();
    _is_suspended      = !done;
    if (!done) {
        end_bound();
    }
    return done;
}

result<void> window_key::rebind(std::vector<std::byte*> bases)
{
    auto shown = UCXL_TRY(hold(_memory, _content.shape, bases));
    return rebind(std::move(bases), std::move(shown));
}

result<void> window_key::rebind(std::vector<std::byte*> bases, shown_memory&& shown)
{
    UCXL_TRY(check_region());
    const bool was_suspended = _is_suspended;
    UCXL_TRY(_region->prepare(shown.shape, shown.bases));
    auto done = bind(!was_suspended);
    if (done) {
        _bound         = std::move(shown);
        _content.bases = std::move(bases);
        if (was_suspended) {
            suspend();
        }
        return {};
    }
    _is_suspended = true;
    if (was_suspended) {
        end_bound();
    } else if (!show_bound()) {
        ucs_warn("the key 0x%x of the window at %p shows nothing any more: %s", key(),
                 static_cast<void*>(_content.address), done.error().message.c_str());
        end_bound();
    }
    return done;
}

} // namespace ucxl::mlx5
