// Messages between a process of a round and the one that directs it, over a socket that keeps their bounds. The
// director passes on what one process has to tell another one, so that nothing hangs when a process is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ucxl::soak
{

enum class word : std::uint32_t {
    address, // of the worker of context `number`; passed on to all
    key,     // of a window: operation, address, packed key; passed on to who starts the operation
    cannot,  // take part in an operation, for which there is no memory; passed on to the other one
    ready,   // for the operations of the step
    go,      // all are ready
    done,    // with the operations that this process starts or receives
    look,    // all are done: look at the bytes
    looked,  // first: operations that were right; bytes: what is wrong, as text
    stuck,   // first: a bit for each rank with whom an operation never ends; bytes: which ones, as text
    probe,   // send to everybody by UCX alone, and listen
    probed,  // first: a bit for each rank that was heard
    dead     // rank: who
};

struct note {
    word what;
    std::uint32_t rank   = 0; // of whom it is, or to whom it goes
    std::uint32_t step   = 0;
    std::uint32_t number = 0; // of the operation in the step
    std::uint64_t first  = 0;
    std::vector<std::byte> bytes{};
};

class link
{
public:
    explicit link(int descriptor) : _descriptor(descriptor) {}

    int descriptor() const { return _descriptor; }
    // False if the other end is gone.
    bool tell(const note& told) const;
    // None if there is none now. Throws std::runtime_error if the other end is gone.
    std::optional<note> next() const;

private:
    int _descriptor;
};

} // namespace ucxl::soak
