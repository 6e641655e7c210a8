// The memory of one domain's card, which is looked for with the first allocation.
//
// Thread safety: everything. Waiting for the device holds the locks of card_memory only.
#pragma once

#include "domain_device.h"

#include <optional>

namespace ucxl::mlx5
{

enum class copy_direction : std::uint8_t { from_card, to_card };

class domain_card
{
public:
    explicit domain_card(domain_device& device) : _device(device) {}

    // Errors: no_device, those of card_memory::create().
    result<card_memory*> get();
    result<memic_allocation> allocate(std::uint64_t length);
    bool free(const std::byte* address); // false: it is not of this card
    std::optional<memic_allocation> find(const void* address, std::uint64_t length) const;
    // Copies between memory of this card and other memory. False: it is not of this card, or the device failed.
    bool copy(std::byte* address, std::uint64_t length, std::byte* other, copy_direction direction);

private:
    domain_device& _device;
};

} // namespace ucxl::mlx5
