#include "domain.h"

namespace ucxl::mlx5
{

namespace
{

// The capabilities that the device reports and that the self-test confirmed.
capabilities narrowed(capabilities said, const self_test_result& found, std::size_t longest_request)
{
    said.limits.max_inline_entries = static_cast<std::uint32_t>(max_inline_entries(key_kind::klm, longest_request));
    said.limits.repeat_blocks      = found.repeat_blocks;
    said.limits.max_nesting        = found.levels;
    said.atomics                   = found.atomics;
    said.umr_sets_atomic_right     = said.umr_sets_atomic_right && found.sets_atomic_right;
    said.nested_by_local_rights    = found.nested_by_local_rights;
    said.pointer_entries           = found.pointer_entries;
    if (!found.pointer_entries) {
        said.limits.max_list_entries   = said.limits.max_inline_entries;
        said.limits.max_repeat_entries = said.limits.max_inline_entries - 1;
    }
    return said;
}

} // namespace

result<domain_parts> domain::open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth)
{
    const auto said  = UCXL_TRY(query_capabilities(pd->context));
    auto queue       = UCXL_TRY(bind_queue::open(pd, port, depth, said.atomics));
    const auto found = UCXL_TRY(test_device(pd, queue, said, chosen_address_method()));
    const auto works = narrowed(said, found, queue.max_request());
    return domain_parts{works, found, std::move(queue)};
}

} // namespace ucxl::mlx5
