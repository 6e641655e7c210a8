// Makes a layout of parts in sequence, as make_iov() does, for callers who have them in another form: lists may have
// millions of parts, which nobody has to copy first.
//
// Example: iov_list parts; UCXL_TRY(parts.reserve(count)); UCXL_TRY(parts.add(0, 4096, {.length = 512})); ...;
//          return parts.finish();
#pragma once

#include "assembly.h"

namespace ucxl
{

class iov_list
{
public:
    // Of so many parts. Throws std::bad_alloc, as the functions below do.
    result<void> reserve(std::size_t count);
    // The next part. An error names its number; the list is of no use then.
    [[gnu::always_inline]] result<void> add(std::uint32_t source, std::int64_t offset, const element& item)
    {
        const bool is_bytes = item.nested == nullptr && item.length != 0 && item.length <= limits::max_length;
        if (!is_bytes || source >= limits::max_sources || offset < -limits::max_offset || offset > limits::max_offset) {
            return add_any(source, offset, item);
        }
        _items.push_back({source, _parts.use_bytes(item.length, source, offset), offset, 0});
        ++_num_added;
        return {};
    }
    // Once.
    result<layout_ptr> finish();

private:
    result<void> add_any(std::uint32_t source, std::int64_t offset, const element& item);
    result<nest_item> place(std::uint32_t source, std::int64_t offset, const element& item);

    assembly _parts;
    std::vector<nest_item> _items;
    std::size_t _num_added = 0;
};

} // namespace ucxl
