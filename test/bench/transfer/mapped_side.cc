#include "mapped_side.h"

#include "bench/common/tree_layout.h"
#include "support/must.h"

#include "ucs/layout/wire.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

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
        window->other = {};
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
    window.other = _with.remote(_with.trade(_with.describe(window.own->address(), window.own->memh())));
}

std::unique_ptr<ucx_layout::window> list_window(const ucp_pair& with, const block_order& list, std::byte* memory)
{
    std::vector<ucp_dt_iov_t> blocks(list.offsets.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = {.buffer = memory + list.offsets[i], .length = list.length};
    }
    const ucx_layout::layout of = made(ucx_layout::layout::from_iov(blocks, memory), "layout of a list");
    return std::make_unique<ucx_layout::window>(
        made(ucx_layout::window::map(with.context(), of, memory), "window over a list"));
}

void mapped_side::send_list(const block_order& list)
{
    const auto from = list_window(_with, list, _source.memory);
    _with.send(from->address(), from->length());
}

void mapped_side::receive_list(const block_order& list)
{
    const auto to = list_window(_with, list, _target.memory);
    _with.receive(to->address(), to->length());
}

// The second process has the memory, all of it written; a word of each page is what the first one reads.
void mapped_side::make_new(std::size_t length, bool is_first)
{
    constexpr std::size_t page = 4096, word = 8;
    _new = {};
    if (is_first) {
        _new.target.resize(length / page * word);
        _new.key = _with.trade(std::vector<std::byte>(1)); // this process has nothing to tell
        return;
    }
    _new.held = std::make_unique<ucx_layout::memory>(made(ucx_layout::memory::allocate(length), "new memory"));
    std::ranges::fill(_new.held->bytes(), std::byte{1});
    const auto words =
        made(ucx_layout::layout::create_strided(word, {{.count = length / page, .stride = page}}), "layout of words");
    _new.words = std::make_unique<ucx_layout::window>(
        made(ucx_layout::window::map(_with.context(), words, _new.held->bytes().data()), "window over new memory"));
    _with.trade(_with.describe(_new.words->address(), _new.words->memh()));
}

double mapped_side::use_new()
{
    const ucp_request_param_t defaults{};
    const auto begin = std::chrono::steady_clock::now();
    if (_new.unpacked.key == nullptr) {
        _new.unpacked = _with.remote(_new.key);
    }
    _with.wait_for(ucp_get_nbx(_with.peer(), _new.target.data(), _new.target.size(), _new.unpacked.address,
                               _new.unpacked.key.get(), &defaults));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (std::ranges::any_of(_new.target, [](std::byte each) { return each != std::byte{1}; })) {
        throw std::runtime_error("new memory does not hold what was written");
    }
    return seconds;
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
    _with.wait_for(ucp_put_nbx(_with.peer(), from.own->address(), from.own->length(), to.other.address,
                               to.other.key.get(), &defaults));
    _with.wait_for(ucp_ep_flush_nbx(_with.peer(), &defaults));
}

void mapped_side::get(const twin_window& from, const twin_window& to)
{
    const ucp_request_param_t defaults{};
    _with.wait_for(ucp_get_nbx(_with.peer(), to.own->address(), to.own->length(), from.other.address,
                               from.other.key.get(), &defaults));
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
