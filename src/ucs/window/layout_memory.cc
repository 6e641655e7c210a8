#include "layout_memory.h"

#include "sys/memory_file.h"
#include "sys/pages.h"

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

bool takes_huge_pages(const layout& layout, std::uint64_t length, huge_pages_option huge_pages)
{
    constexpr std::uint64_t max_sparse = 16; // see layout_memory.h
    // No overflow: there are at most 2^48 bytes, and a block has at least one.
    const std::uint64_t touched = layout.blocks().count * page_length() + layout.packed_length();
    return huge_pages == huge_pages_option::always ||
           (huge_pages == huge_pages_option::possible && touched >= length / max_sparse);
}

// A last part that fills most of a huge page gets all of it.
std::uint64_t round_to_huge_pages(std::uint64_t length)
{
    const std::uint64_t huge = huge_page_length();
    const std::uint64_t part = huge == 0 ? 0 : length % huge;
    return part >= huge - huge / 4 ? length - part + huge : length;
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
    const bool are_huge  = takes_huge_pages(layout, total, huge_pages);
    std::uint64_t length = std::max<std::uint64_t>(total, page_length());
    if (are_huge) {
        length = round_to_huge_pages(length);
    }
    memory->_file    = UCXL_TRY(make_memory_file("ucx_layout", length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    memory->_mapping = UCXL_TRY(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, memory->_file.get(), 0));
    if (are_huge) {
        auto filled = fill_with_huge_pages(memory->_mapping.start(), length);
        if (!filled && huge_pages == huge_pages_option::always) {
            return std::unexpected(std::move(filled.error()));
        }
    }

    std::uint64_t begin = 0;
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        memory->_bases[source] = memory->_mapping.start() + begin + ranges[source].padding - ranges[source].low;
        begin += ranges[source].length;
    }
    return memory;
}

} // namespace ucxl
