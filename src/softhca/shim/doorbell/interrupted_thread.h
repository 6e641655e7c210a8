// A thread as a signal handler has it: the instruction it was stopped at, its registers, and how it goes on. The one
// place that knows the processors.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "store_instruction.h"

namespace ucxl::softhca
{

class interrupted_thread
{
public:
    // `context` is a signal handler's third argument.
    explicit interrupted_thread(void* context) : _context(context) {}

    // Whether the fault was at a write.
    bool was_writing() const;

    // The store it was stopped at; nothing for any other instruction, or one that is not known.
    std::optional<store_instruction> store() const;

    // The first 8 bytes it stores.
    std::optional<std::uint64_t> value(const store_instruction& store) const;

    // Goes on behind the store, as if it had been executed.
    void skip(const store_instruction& store);

    // Where the next instructions only go on with copying into this range, goes on behind them: a WQE that is copied to
    // a page traps once then. What they store is lost, what they load is not.
    void skip_copy_into(std::uintptr_t first, std::size_t length);

    // Stops again, with SIGTRAP, after one instruction. False where the processor cannot do that.
    bool begin_step();
    // In that SIGTRAP's handler.
    void end_step();

private:
    void* _context;
};

} // namespace ucxl::softhca
