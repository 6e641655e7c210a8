#include "xgvmi_setup.h"

#include "tools/common/failure.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/ranges.h>

namespace ucxl::perf
{

namespace
{

// Nothing but the device reaches memory of the host.
const std::pair<std::string, std::string> transports{"UCX_TLS", "rc_x,lay_copy"};

variables for_dpu()
{
    variables chosen{{"UCX_ZCOPY_THRESH", "0"}};
    if (std::getenv(transports.first.c_str()) == nullptr) {
        chosen.push_back(transports);
        // UCX copies shorter gets by the CPU, out of the completion.
        chosen.emplace_back("UCX_RC_MLX5_TX_INLINE_RESP", "0");
    }
    return chosen;
}

void require_device(const std::string& name)
{
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
        found.push_back(device.path().filename());
    }
    std::ranges::sort(found);
    if (std::ranges::find(found, name) == found.end()) {
        tools::give_up(
            "--devices: there is no network device {} here (there is: {}); a DPU process needs another function "
            "of the host's device, which softhca-run --functions 2 has",
            name, found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")));
    }
}

} // namespace

variables owner_variables(const options& options)
{
    require_device(options.host_device);
    return {transports, {"UCX_NET_DEVICES", options.host_device + ":1"}};
}

variables dpu_variables(const options& options)
{
    require_device(options.dpu_device);
    variables chosen = for_dpu();
    chosen.emplace_back("UCX_NET_DEVICES", options.dpu_device + ":1");
    return chosen;
}

void set_defaults(const variables& chosen)
{
    for (const auto& [name, value] : chosen) {
        setenv(name.c_str(), value.c_str(), 0);
    }
}

void set_dpu_defaults()
{
    set_defaults(for_dpu());
}

} // namespace ucxl::perf
