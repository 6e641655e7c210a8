#include "device_fabric.h"

#include "support/check.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

// The devices live as long as this command. It is this program and no shell, because only this program can preload a
// device that was built with a sanitizer.
std::vector<std::string> holder_arguments(const std::vector<std::string>& options)
{
    std::vector<std::string> all = {"--stats", "-"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", std::filesystem::read_symlink("/proc/self/exe"), "--hold-devices"});
    return all;
}

} // namespace

bool has_software_device()
{
    return std::getenv("UCXL_SOFTWARE_DEVICE") != nullptr;
}

int hold_devices()
{
    std::printf("%s %s ready\n", std::getenv("LD_PRELOAD"), std::getenv("SOFTHCA_FABRIC"));
    std::fflush(stdout);
    sleep(1000); // whoever started it ends it
    return 1;
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
