#include "layout_memory.h"

#include "sys/pages.h"

#include <algorithm>
#include <format>

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

bool takes_huge_pages(const layout& layout, std::uint64_t length, huge_pages_option huge_pages)
{
    constexpr std::uint64_t max_sparse = 16; // see layout_memory.h
    // No overflow: there are at most 2^48 bytes, and a block has at least one.
    const std::uint64_t touched = layout.blocks().count * page_length() + layout.packed_length();
    return huge_pages == huge_pages_option::always ||
           (huge_pages == huge_pages_option::possible && touched >= length / max_sparse);
}

} // namespace

result<std::shared_ptr<const layout_memory>> layout_memory::allocate(const layout& layout, huge_pages_option huge_pages)
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
    const auto pages = takes_huge_pages(layout, total, huge_pages) ? huge_pages : huge_pages_option::never;
    memory->_region  = UCXL_TRY(region::allocate(total, {.huge_pages = pages}));
    UCXL_TRY(region_table::instance().add(memory->_region));

    std::uint64_t begin = 0;
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        memory->_bases[source] = memory->_region->start() + begin + ranges[source].padding - ranges[source].low;
        begin += ranges[source].length;
    }
    return memory;
}

} // namespace ucxl
