// An element of a scatter or gather list, as a program gives it.
#pragma once

#include <cstdint>

namespace ucxl::softhca::test
{

struct receive_segment {
    std::uint32_t key    = 0;
    std::uint64_t at     = 0;
    std::uint32_t length = 0;
};

} // namespace ucxl::softhca::test
