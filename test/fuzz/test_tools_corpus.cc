// The targets that read what users and peers give to the tools.
#include "replay.h"

extern "C" int fuzz_layout_json(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_perf_settings(const std::uint8_t* data, std::size_t size);

namespace ucxl::test
{
namespace
{

constexpr replayed_target targets[] = {
    {"layout_json", fuzz_layout_json, 2000},
    {"perf_settings", fuzz_perf_settings, 2000},
};

UCXL_REPLAY(targets);

} // namespace
} // namespace ucxl::test
