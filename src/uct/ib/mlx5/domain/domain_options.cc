#include "domain_options.h"

#include "abi/log.h"

#include <vector>

namespace ucxl::mlx5
{

same_host_option same_host()
{
    static const auto choice = static_cast<same_host_option>(read_key_options().same_host);
    return choice;
}

void stock_keys(domain& domain)
{
    const std::lock_guard guard(domain.lock);
    const unsigned wanted = read_key_options().spare;
    std::vector<key_pool::key> made;
    for (unsigned i = 0; i < wanted; ++i) {
        auto key = domain.roots.create(window_key_octowords);
        if (!key) {
            ucs_debug("%u of %u spare keys: %s", i, wanted, key.error().message.c_str());
            break;
        }
        made.push_back(std::move(*key));
    }
    for (key_pool::key& key : made) {
        domain.roots.add(std::move(key));
    }
}

} // namespace ucxl::mlx5
