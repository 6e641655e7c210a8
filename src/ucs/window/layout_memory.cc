#include "layout_memory.h"

#include "arena.h"
#include "sys/memory_file.h"

#include <algorithm>
#include <format>

#include <fcntl.h>
#include <sys/mman.h>

namespace ucxl
{

namespace
{

struct source_range {
    std::int64_t low;      // lowest offset from the base address in this source
    std::uint64_t padding; // bytes before `low`, so that the first described byte is at a page boundary
    std::uint64_t length;  // bytes, including padding, in whole pages
};

source_range range_of(const layout_bounds& bounds)
{
    const std::int64_t low  = std::min(bounds.lb, bounds.true_lb);
    const std::int64_t high = std::max(bounds.ub, bounds.true_ub);
    const auto lead         = static_cast<std::uint64_t>(bounds.true_lb - low);
    const auto padding      = round_to_pages(lead) - lead;
    return {low, padding, round_to_pages(padding + static_cast<std::uint64_t>(high - low))};
}

} // namespace

result<std::shared_ptr<const layout_memory>> layout_memory::allocate(const layout& layout)
{
    std::vector<source_range> ranges(layout.num_sources());
    std::uint64_t total = 0;
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        ranges[source] = range_of(layout.bounds(source));
        total += ranges[source].length; // each length is below 2^48, and there are at most 2^16 of them: checked below
        if (total > limits::max_length) {
            return fail(
                errc::exceeds_limit,
                std::format("the memory of all sources together exceeds the limit of {} bytes", limits::max_length));
        }
    }

    std::shared_ptr<layout_memory> memory(new layout_memory);
    memory->_bases.resize(layout.num_sources());
    const std::uint64_t length = std::max<std::uint64_t>(total, page_length());
    memory->_file    = UCXL_TRY(make_memory_file("ucx_layout", length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    memory->_mapping = UCXL_TRY(owned_mapping::map(length, PROT_READ | PROT_WRITE, MAP_SHARED, memory->_file.get(), 0));

    std::uint64_t begin = 0;
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        memory->_bases[source] = memory->_mapping.start() + begin + ranges[source].padding - ranges[source].low;
        begin += ranges[source].length;
    }
    return memory;
}

} // namespace ucxl
