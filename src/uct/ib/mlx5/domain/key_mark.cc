#include "key_mark.h"

#include "sys/hash.h"
#include "sys/process.h"

namespace ucxl::mlx5
{

std::uint32_t this_host()
{
    static const auto number =
        static_cast<std::uint32_t>(mix(process_identity::own().host) % (std::uint64_t{max_host} + 1));
    return number;
}

} // namespace ucxl::mlx5
