// The target that needs the library as a whole, in a program of its own.
#include "replay.h"

extern "C" int fuzz_nixl_messages(const std::uint8_t* data, std::size_t size);

namespace ucxl::test
{
namespace
{

constexpr replayed_target targets[] = {{"nixl_messages", fuzz_nixl_messages, 500}};

UCXL_REPLAY(targets);

} // namespace
} // namespace ucxl::test
