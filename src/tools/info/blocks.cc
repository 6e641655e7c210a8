#include "blocks.h"

#include "tools/common/failure.h"

#include <new>
#include <utility>

namespace ucxl::info
{

std::vector<block> first_blocks(const ucx_layout::layout& layout, std::size_t wanted)
{
    struct list {
        std::vector<block> blocks;
        std::size_t wanted;
    } found{.blocks = {}, .wanted = wanted};
    const auto add = [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) -> ucs_status_t {
        auto& into = *static_cast<list*>(arg);
        if (into.blocks.size() == into.wanted) {
            return UCS_ERR_CANCELED;
        }
        try {
            into.blocks.push_back({.source = source, .offset = offset, .length = length});
        } catch (const std::bad_alloc&) {
            return UCS_ERR_NO_MEMORY;
        }
        return UCS_OK;
    };
    if (wanted > 0) {
        const ucs_status_t status = ucp_layout_walk(layout.get(), 0, layout.packed_length(), add, &found);
        if (status != UCS_ERR_CANCELED) {
            tools::check(status, "ucp_layout_walk");
        }
    }
    return std::move(found.blocks);
}

} // namespace ucxl::info
