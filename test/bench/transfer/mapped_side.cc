#include "mapped_side.h"

#include "bench/common/tree_layout.h"
#include "support/must.h"

#include "ucs/layout/wire.h"

namespace ucxl::bench
{

namespace
{

template <typename T>
T made(ucx_layout::result<T>&& result, const char* what)
{
    test::check_ok(result ? UCS_OK : result.error(), what);
    return std::move(*result);
}

} // namespace

ucx_layout::layout public_layout(const layout_case& of)
{
    const layout_ptr inner = layout_of(*of.type);
    std::vector<std::byte> wire(wire_length(*inner));
    if (!pack_wire(*inner, wire)) {
        throw std::runtime_error("pack_wire");
    }
    return made(ucx_layout::layout::deserialize(wire), "layout");
}

std::span<std::byte> mapped_side::own_memory(std::size_t length)
{
    // Until the process ends.
    static const ucx_layout::memory& all =
        *new ucx_layout::memory(made(ucx_layout::memory::allocate(length), "shared memory"));
    return all.bytes();
}

side_memory mapped_side::allocate(const layout_case& of, std::span<std::byte> all)
{
    for (twin_window* window : {&_source, &_target, &_packed_source, &_packed_target}) {
        window->key.reset();
        window->own.reset();
    }
    const side_memory parts          = side::allocate(of, all);
    const ucx_layout::layout strided = public_layout(of);
    const ucx_layout::layout packed =
        made(ucx_layout::layout::create_contig(1, {.length = of.length, .layout = nullptr}), "contiguous layout");
    make(_source, strided, parts.source);
    make(_target, strided, parts.target);
    make(_packed_source, packed, parts.packed_source);
    make(_packed_target, packed, parts.packed_target);
    return parts;
}

void mapped_side::prepare(const layout_case& of, const side_memory& memory)
{
    _pass.prepare(of, memory);
    _plan = test::must(pack_plan::compile(layout_of(*of.type)));
    for (twin_window* window : {&_source, &_target, &_packed_target}) {
        trade_keys(*window);
    }
}

void mapped_side::make(twin_window& window, const ucx_layout::layout& of, std::span<std::byte> memory)
{
    window.own = std::make_unique<ucx_layout::window>(
        made(ucx_layout::window::map(_with.context(), of, memory.data()), "window"));
    window.memory = memory.data();
}

void mapped_side::trade_keys(twin_window& window)
{
    void* packed       = nullptr;
    std::size_t length = 0;
    test::check_ok(ucp_rkey_pack(_with.context(), window.own->memh(), &packed, &length), "ucp_rkey_pack");
    const auto* const bytes = static_cast<const std::byte*>(packed);
    std::vector<std::byte> message(sizeof(window.address));
    const auto address = reinterpret_cast<std::uint64_t>(window.own->address());
    std::memcpy(message.data(), &address, sizeof(address));
    message.insert(message.end(), bytes, bytes + length);
    ucp_rkey_buffer_release(packed);

    const std::vector<std::byte> remote = _with.trade(message);
    std::memcpy(&window.address, remote.data(), sizeof(window.address));
    ucp_rkey_h key = nullptr;
    test::check_ok(ucp_ep_rkey_unpack(_with.peer(), remote.data() + sizeof(window.address), &key),
                   "ucp_ep_rkey_unpack");
    window.key.reset(key);
}

void mapped_side::move(alone how, bool to_strided)
{
    const twin_window& target = to_strided ? _target : _packed_target;
    switch (how) {
    case alone::put:
        put(_source, target);
        break;
    case alone::get:
        get(_source, target);
        break;
    case alone::copy:
        copy(to_strided);
        break;
    }
}

void mapped_side::put(const twin_window& from, const twin_window& to)
{
    const ucp_request_param_t defaults{};
    _with.wait_for(
        ucp_put_nbx(_with.peer(), from.own->address(), from.own->length(), to.address, to.key.get(), &defaults));
    _with.wait_for(ucp_ep_flush_nbx(_with.peer(), &defaults));
}

void mapped_side::get(const twin_window& from, const twin_window& to)
{
    const ucp_request_param_t defaults{};
    _with.wait_for(
        ucp_get_nbx(_with.peer(), to.own->address(), to.own->length(), from.address, from.key.get(), &defaults));
}

void mapped_side::copy(bool to_strided)
{
    std::byte* const source[] = {_source.memory};
    if (to_strided) {
        std::byte* const target[] = {_target.memory};
        pack_plan::copy(*_plan, target, 0, *_plan, source, 0, _plan->packed_length());
    } else {
        _plan->gather(source, 0, _plan->packed_length(), _packed_target.memory);
    }
}

} // namespace ucxl::bench
