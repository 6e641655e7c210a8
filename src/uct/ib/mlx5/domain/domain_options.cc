#include "domain_options.h"

#include "uct/abi/log.h"
#include "uct/ib/mlx5/layout/options.h"

#include <vector>

namespace ucxl::mlx5
{

same_host_choice same_host()
{
    static const auto choice = static_cast<same_host_choice>(read_key_options().same_host);
    return choice;
}

void stock_keys(domain& domain)
{
    constexpr std::uint32_t room_of_windows = 64; // region_options::max_entries
    const std::lock_guard guard(domain.lock);
    std::vector<key_pool::key> made;
    for (unsigned i = 0; i < read_key_options().spare; ++i) {
        auto key = domain.roots.create(room_of_windows);
        if (!key) {
            ucs_debug("%u of %u spare keys: %s", i, read_key_options().spare, key.error().message.c_str());
            break;
        }
        made.push_back(std::move(*key));
    }
    for (key_pool::key& key : made) {
        domain.roots.give_back(std::move(key));
    }
}

} // namespace ucxl::mlx5
