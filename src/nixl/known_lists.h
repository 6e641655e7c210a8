// The layouts of the last lists of blocks of an agent. A list that comes again is compared with the one from before,
// which takes a tenth of the time of making its layout again.
//
// Any thread.
#pragma once

#include "block_list.h"

#include <list>
#include <memory>
#include <mutex>

namespace ucxl::nixl
{

using shared_layout = std::shared_ptr<const ucx_layout::layout>;

struct described_list {
    shared_layout layout;
    std::vector<block_list::region_id> regions; // of its sources
    std::size_t num_blocks;
    std::uint64_t first_offset;
};

class known_lists
{
public:
    static constexpr std::size_t min_blocks = 64; // of a list that is kept: others take no time
    static constexpr std::size_t max_lists  = 64;
    static constexpr std::size_t max_blocks = 1U << 19; // of all lists that are kept, 16 MB

    // Of at least one byte.
    ucx_layout::result<described_list> describe(block_list list);
    // Of all lists that are kept.
    std::size_t num_blocks() const;

private:
    struct known {
        block_list blocks;
        shared_layout layout;
    };
    using known_ptr = std::shared_ptr<const known>;

    shared_layout find(const block_list& list);
    void add(known_ptr made);

    mutable std::mutex _lock;
    std::list<known_ptr> _lists; // the last used one first
    std::size_t _num_blocks = 0;
};

} // namespace ucxl::nixl
