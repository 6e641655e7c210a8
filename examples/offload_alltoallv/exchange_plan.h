// What every process knows of an exchange without asking: who sends how much to whom, and the bytes. Each function
// gives the same answer in all processes. So hosts check what arrived against the sender's bytes without any message.
//
// Example: exchange_plan plan{.hosts = 4, .max_bytes = 65536, .seed = 1};
//          plan.length_bytes({.round = 0, .sender = 1, .receiver = 3});
#pragma once

#include <cstddef>
#include <cstdint>

namespace examples
{

// What one host sends to one other host, or to itself, in one round.
struct message_of_plan {
    unsigned round, sender, receiver;
};

// Where a host has the bytes of one message.
enum class memory_form : std::uint8_t {
    plain,   // contiguous
    rows,    // pieces of the rows of a matrix
    records, // halves of records, in two arrays
};

struct exchange_plan {
    // Lengths are multiples of it. All forms have pieces of this length, or of half of it.
    static constexpr std::size_t unit_bytes = 64;

    unsigned hosts;
    std::size_t max_bytes; // of one message
    std::uint64_t seed;

    // Uneven, and sometimes 0.
    std::size_t length_bytes(message_of_plan message) const;
    memory_form form_of_sender(message_of_plan message) const;
    memory_form form_of_receiver(message_of_plan message) const;
    // The 8 bytes at this position, which is a multiple of 8.
    std::uint64_t word_at(message_of_plan message, std::size_t position) const;
    // Either the DPU process of the receiver gets, or that of the sender puts.
    bool is_pulled(message_of_plan message) const
    {
        return (message.round + message.sender + message.receiver) % 2 == 0;
    }

private:
    std::uint64_t random(message_of_plan message, std::uint64_t purpose) const;
};

} // namespace examples
