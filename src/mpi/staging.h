// Memory for packed bytes, kept for the next call: fresh memory costs more than the copies into it.
#pragma once

#include <cstddef>
#include <memory>

namespace ucxl::mpi
{

class staging
{
public:
    struct give_back {
        std::size_t capacity = 0;
        void operator()(std::byte* memory) const noexcept;
    };
    using buffer = std::unique_ptr<std::byte[], give_back>;

    // Null if there is no memory.
    static buffer acquire(std::size_t length) noexcept;
    // Frees what is kept.
    static void release() noexcept;
};

} // namespace ucxl::mpi
