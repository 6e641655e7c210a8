#include "iov_side.h"

#include "mapped_side.h"
#include "support/check.h"

namespace ucxl::bench
{

namespace
{

// The blocks of a layout over one memory, in packed order.
std::vector<ucp_dt_iov_t> blocks_of(const ucx_layout::layout& strided, std::span<std::byte> memory)
{
    struct list {
        std::vector<ucp_dt_iov_t> blocks;
        std::byte* base;
    } made{.blocks = {}, .base = memory.data()};
    const auto add = [](void* arg, std::uint32_t, std::ptrdiff_t offset, std::size_t length) -> ucs_status_t {
        auto& into = *static_cast<list*>(arg);
        try {
            into.blocks.push_back({.buffer = into.base + offset, .length = length});
        } catch (const std::bad_alloc&) {
            return UCS_ERR_NO_MEMORY;
        }
        return UCS_OK;
    };
    test::check_ok(ucp_layout_walk(strided.get(), 0, strided.packed_length(), add, &made), "ucp_layout_walk");
    return std::move(made.blocks);
}

std::vector<ucp_dt_iov_t> blocks_of(const block_order& list, std::byte* memory)
{
    std::vector<ucp_dt_iov_t> made(list.offsets.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = {.buffer = memory + list.offsets[i], .length = list.length};
    }
    return made;
}

} // namespace

void iov_side::send_list(const block_order& list)
{
    const auto blocks = blocks_of(list, _memory.source.data());
    _with.send(blocks.data(), blocks.size(), UCP_DATATYPE_IOV);
}

void iov_side::receive_list(const block_order& list)
{
    auto blocks = blocks_of(list, _memory.target.data());
    _with.receive(blocks.data(), blocks.size(), UCP_DATATYPE_IOV);
}

void iov_side::prepare(const layout_case& moved, const side_memory& memory)
{
    const ucx_layout::layout strided = public_layout(moved);
    ucp_side::prepare(moved, memory);
    _source = blocks_of(strided, memory.source);
    _target = blocks_of(strided, memory.target);
}

} // namespace ucxl::bench
