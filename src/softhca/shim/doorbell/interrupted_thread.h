// A thread as a signal handler finds it: the instruction it stopped at, its registers, and where it continues. This and
// store_instruction know the processors.
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
    // `context`: the third argument of a signal handler.
    explicit interrupted_thread(void* context) : _context(context) {}

    // Whether the fault was a write.
    bool was_writing() const;

    // The store that it stopped at. Nothing for any other or unknown instruction.
    std::optional<store_instruction> store() const;

    // The first 8 bytes that it stores.
    std::optional<std::uint64_t> value(const store_instruction& store) const;

    // Continues after the store, as if it had been executed.
    void skip(const store_instruction& store);

    // Skips the following instructions as long as they only copy into this range, so that a WQE copied to a page traps
    // once. Their stores are dropped, their loads are not.
    void skip_copy_into(std::uintptr_t first, std::size_t length);

    // Stops the thread again with SIGTRAP after one instruction. False when the processor cannot do that.
    bool begin_step();
    // Called in the handler of that SIGTRAP.
    void end_step();

private:
    void* _context;
};

} // namespace ucxl::softhca
