#include "domain_card.h"

#include "abi/log.h"

namespace ucxl::mlx5
{

result<card_memory*> domain_card::get()
{
    return _device.part(&open_device::card, [this](open_device& device) {
        auto made = card_memory::create(device.keys, _device.windows());
        if (made) {
            device.memory->set_card(**made);
        }
        return made;
    });
}

result<memic_allocation> domain_card::allocate(std::uint64_t length)
{
    card_memory* const card = UCXL_TRY(get());
    const auto allocated    = UCXL_TRY(card->allocate(length));
    _device.show();
    return allocated;
}

bool domain_card::free(const std::byte* address)
{
    card_memory* const card = _device.existing_card();
    if (card == nullptr || !card->find(address, 1)) {
        return false;
    }
    if (const auto released = card->release(address); !released) {
        ucs_warn("%s: %s", _device.name(), released.error().message.c_str());
    }
    _device.show();
    return true;
}

std::optional<memic_allocation> domain_card::find(const void* address, std::uint64_t length) const
{
    const card_memory* const card = _device.existing_card();
    return card == nullptr ? std::nullopt : card->find(address, length);
}

bool domain_card::copy(std::byte* address, std::uint64_t length, std::byte* other, copy_direction direction)
{
    card_memory* const card = _device.existing_card();
    if (card == nullptr) {
        return false;
    }
    return direction == copy_direction::from_card ? card->read(address, length, other)
                                                  : card->write(address, length, other);
}

} // namespace ucxl::mlx5
