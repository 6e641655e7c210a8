#include "transports.h"

#include "settings.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <sys/statvfs.h>
#include <unistd.h>

namespace ucxl::mpi
{

namespace
{

// Whether UCX_TLS lets UCX use a transport over shared memory. UCX warns of options of others.
bool is_used(std::string_view transport)
{
    const char* const set = std::getenv("UCX_TLS");
    if (set == nullptr) {
        return true;
    }
    const bool is_negated  = set[0] == '^';
    const std::string list = std::string(is_negated ? set + 1 : set) + ",";
    bool is_named          = false;
    for (std::size_t start = 0, end = 0; (end = list.find(',', start)) != list.npos; start = end + 1) {
        const std::string word = list.substr(start, end - start);
        is_named = is_named || word == transport || word == "all" || word == "sm" || word == "shm" || word == "mm";
    }
    return is_named != is_negated;
}

// UCX makes so many pieces when it starts (UCX_POSIX_RX_BUFS_GROW), and does not start if there is no memory for them.
// There has to be room for as many processes as this host has processors.
bool has_room(std::size_t fragment)
{
    constexpr std::size_t pieces = 512;
    struct statvfs space{};
    const long processes = sysconf(_SC_NPROCESSORS_ONLN);
    return processes > 0 && statvfs("/dev/shm", &space) == 0 &&
           space.f_bavail / 2 > pieces * fragment * static_cast<std::size_t>(processes) / space.f_frsize;
}

} // namespace

void complete_transports()
{
    const char* const set = std::getenv("UCX_TLS");
    if (set == nullptr || set[0] == '^' || std::strstr(set, "lay_copy") != nullptr || std::strstr(set, "all") == set) {
        return;
    }
    const std::string completed = std::string(set) + ",lay_copy";
    setenv("UCX_TLS", completed.c_str(), 1);
    log_info("UCX_TLS=%s, to which lay_copy was added", completed.c_str());
}

void lengthen_fragments()
{
    const std::size_t length = settings::get().fragment;
    if (length == 0 || (!is_used("posix") && !is_used("sysv"))) {
        return;
    }
    if (!has_room(length)) {
        log_info("UCX keeps the length of its pieces: /dev/shm has no room for pieces of %zu bytes", length);
        return;
    }
    for (const auto& [transport, option] : {std::pair("posix", "UCX_POSIX_SEG_SIZE"), {"sysv", "UCX_SYSV_SEG_SIZE"}}) {
        if (is_used(transport)) {
            setenv(option, std::to_string(length).c_str(), 0);
        }
    }
}

} // namespace ucxl::mpi
