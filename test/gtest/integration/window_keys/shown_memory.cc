#include "shown_memory.h"

#include "integration/two_process/layouts.h"
#include "support/carrier_reason.h"

#include <memory>

namespace ucxl::test
{

shown_memory::shown_memory(spec_ptr spec) : _spec(std::move(spec)), _layout(two_process::create_layout(*_spec))
{
    _all.push_back(std::make_unique<memory>(*_spec, _seed));
}

std::vector<void*> shown_memory::bases(const memory& of) const
{
    const auto all = of.actual.bases();
    return {all.begin(), all.end()};
}

bool shown_memory::has_key() const
{
    return _window->carrier() == UCP_LAYOUT_CARRIER_KEYS;
}

std::string shown_memory::why_no_key() const
{
    return carrier_reason(*_window);
}

ucs_status_t shown_memory::map(ucp_context_h context)
{
    auto made = ucx_layout::window::map(context, _layout, bases(*_all.back()));
    if (!made) {
        return made.error();
    }
    _window.emplace(std::move(*made));
    return UCS_OK;
}

ucs_status_t shown_memory::rebind()
{
    auto next         = std::make_unique<memory>(*_spec, ++_seed);
    const auto status = _window->rebind(bases(*next));
    // What is not shown any more, or not yet, has to stay as it is.
    _all.insert(status == UCS_OK ? _all.end() : _all.end() - 1, std::move(next));
    return status;
}

void shown_memory::exchange(own_peer& peer)
{
    memory& shown     = *_all.back();
    const auto length = shown.actual.packed_length();
    std::vector<std::byte> got(length);
    check_ok(peer.send(_window->address(), got.data(), length), "a send of the window");
    check(got == shown.expected.gather(), "the window was sent with other bytes");
    const auto sent = random_bytes(++_seed, length);
    check_ok(peer.send(sent.data(), _window->address(), length), "a receive into the window");
    shown.expected.scatter(0, sent);
    verify();
}

ucs_status_t shown_memory::send_to(shown_memory& other, own_peer& peer)
{
    const auto length = _all.back()->actual.packed_length();
    const auto status = peer.send(_window->address(), other._window->address(), length);
    if (status == UCS_OK) {
        other._all.back()->expected.scatter(0, _all.back()->expected.gather());
    }
    return status;
}

void shown_memory::verify() const
{
    for (const auto& each : _all) {
        const auto difference = each->actual.first_difference(each->expected);
        check(difference.empty(), "{} memory: {}", each == _all.back() ? "shown" : "other", difference);
    }
}

} // namespace ucxl::test
