#include "exchange_plan.h"

#include <initializer_list>

namespace examples
{

// The finalizer of splitmix64: all bits of the result depend on all bits of the number.
static std::uint64_t mixed(std::uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}

std::uint64_t exchange_plan::random(message_of_plan message, std::uint64_t purpose) const
{
    std::uint64_t state = mixed(seed + 1);
    for (const std::uint64_t part :
         {std::uint64_t{message.round}, std::uint64_t{message.sender}, std::uint64_t{message.receiver}, purpose}) {
        state = mixed(state + 0x9e3779b97f4a7c15 * (part + 1));
    }
    return state;
}

std::size_t exchange_plan::length_bytes(message_of_plan message) const
{
    constexpr unsigned empty_one_of = 8;
    const std::uint64_t chosen      = random(message, 0);
    if (chosen % empty_one_of == 0) {
        return 0;
    }
    return (1 + (chosen >> 8) % (max_bytes / unit_bytes)) * unit_bytes;
}

memory_form exchange_plan::form_of_sender(message_of_plan message) const
{
    return static_cast<memory_form>(random(message, 1) % 3);
}

memory_form exchange_plan::form_of_receiver(message_of_plan message) const
{
    return static_cast<memory_form>(random(message, 2) % 3);
}

std::uint64_t exchange_plan::word_at(message_of_plan message, std::size_t position) const
{
    return mixed(random(message, 3) + position);
}

} // namespace examples
