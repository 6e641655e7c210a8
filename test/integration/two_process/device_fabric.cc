#include "device_fabric.h"

#include "support/check.h"

#include <csignal>
#include <cstdlib>
#include <sstream>

namespace ucxl::two_process
{

namespace
{

std::vector<std::string> holder_arguments(const std::vector<std::string>& options)
{
    std::vector<std::string> all = {"--stats", "-"};
    all.insert(all.end(), options.begin(), options.end());
    // The devices live as long as this command.
    for (const char* each : {"--", "sh", "-c", "echo $LD_PRELOAD $SOFTHCA_FABRIC ready; exec sleep 1000"}) {
        all.emplace_back(each);
    }
    return all;
}

} // namespace

bool has_software_device()
{
    return std::getenv("UCXL_SOFTWARE_DEVICE") != nullptr;
}

device_fabric::device_fabric(const std::vector<std::string>& options)
    : _holder(SOFTHCA_RUN, holder_arguments(options), {.variables = {{"LD_PRELOAD", ""}}})
{
    test::check(_holder.wait_for_output("ready\n"), "softhca-run did not start");
    std::istringstream(_holder.out()) >> _library >> _fabric;
}

void device_fabric::add_to(test::environment& variables) const
{
    variables.emplace_back("LD_PRELOAD", _library);
    variables.emplace_back("SOFTHCA_FABRIC", _fabric);
}

nlohmann::json device_fabric::end()
{
    _holder.kill(SIGTERM);
    const auto ended = _holder.wait();
    const auto start = ended.out.find('{');
    test::check(start != std::string::npos, "softhca-run wrote no counts: {}", ended.output());
    return nlohmann::json::parse(ended.out.substr(start));
}

} // namespace ucxl::two_process
