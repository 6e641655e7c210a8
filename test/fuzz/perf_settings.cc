// Any bytes as the set-up that a client of ucx_layout_perftest sends to a server (src/tools/perf/settings.h): refused
// with a message, or settings within their limits that come back from their own bytes, and that every later question of
// a server answers or refuses.
#include "fuzz_target.h"

#include "tools/common/failure.h"
#include "tools/common/value_of.h"
#include "tools/perf/settings.h"

#include <optional>
#include <string_view>

using namespace ucxl;
using fuzz::require;

namespace
{

// A few bytes can describe more blocks than can be walked; that is the user's affair.
constexpr std::size_t max_walked = std::size_t{1} << 14;

std::optional<perf::agreed_run> decoded(std::span<const std::byte> bytes)
{
    try {
        return perf::decode(bytes);
    } catch (const tools::failure& error) {
        require(!std::string_view(error.what()).empty(), "an error says why");
        return std::nullopt;
    }
}

} // namespace

UCXL_FUZZ_TARGET(perf_settings)
{
    const auto run = decoded(std::as_bytes(std::span(data, size)));
    if (!run) {
        return 0;
    }
    const perf::settings& settings = run->test_settings;
    require(settings.chosen.size() <= perf::methods.size(), "no more methods than there are");
    require(settings.outstanding >= 1 && settings.outstanding <= perf::max_outstanding, "outstanding in its limits");
    require(settings.message_size >= 1 && settings.message_size <= UCP_LAYOUT_MAX_LENGTH, "size within its limits");
    const auto bytes = perf::encode(settings, run->layouts);
    const auto back  = decoded(bytes);
    require(back && perf::encode(back->test_settings, back->layouts) == bytes, "settings come back from their bytes");
    require(back->layouts.send.get() == run->layouts.send.get() &&
                back->layouts.receive.get() == run->layouts.receive.get(),
            "layouts come back from their bytes");
    for (const perf::method_kind method : settings.chosen) {
        (void)perf::refusal(method, settings, run->layouts);
    }
    if (tools::attributes(run->layouts.receive).num_blocks <= max_walked) {
        try {
            perf::require_fitting(settings, run->layouts);
        } catch (const tools::failure& error) {
            require(!std::string_view(error.what()).empty(), "an error says why");
        }
    }
    return 0;
}
