#include "transports.h"

#include "settings.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <sys/statvfs.h>
#include <ucp/api/ucp.h>
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

std::atomic<bool> has_longer_pieces{false};

// Of UCX's second format, which UCX writes if UCX_ADDRESS_VERSION asks for it: the first four bits of an address are 1.
bool tells_length_of_pieces(const ucp_address_t* address)
{
    std::uint8_t header = 0;
    std::memcpy(&header, address, sizeof(header));
    return (header & 0xf) >= 1;
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
    // A process writes into memory of its peer, and has to know how long the pieces there are. Every process tells it,
    // also one that keeps UCX's length.
    const char* const version = std::getenv("UCX_ADDRESS_VERSION");
    if (version != nullptr && std::strcmp(version, "v2") != 0) {
        log_info("UCX keeps the length of its pieces: UCX_ADDRESS_VERSION=%s does not tell peers of it", version);
        return;
    }
    setenv("UCX_ADDRESS_VERSION", "v2", 1);
    const std::size_t length = settings::get().fragment;
    if (length == 0) {
        return;
    }
    if (!has_room(length)) {
        log_info("UCX keeps the length of its pieces: /dev/shm has no room for pieces of %zu bytes", length);
        return;
    }
    for (const auto& [transport, option] : {std::pair("posix", "UCX_POSIX_SEG_SIZE"), {"sysv", "UCX_SYSV_SEG_SIZE"}}) {
        if (is_used(transport)) {
            setenv(option, std::to_string(length).c_str(), 0);
            has_longer_pieces.store(true, std::memory_order_release);
        }
    }
}

} // namespace ucxl::mpi

// A peer without this library does not tell how long its pieces are. UCX takes them to be as long as its own, and would
// write beyond their ends.
extern "C" [[gnu::visibility("default")]] ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                                                     ucp_ep_h* endpoint)
{
    using namespace ucxl::mpi;
    using function         = decltype(&ucp_ep_create);
    static const auto next = reinterpret_cast<function>(dlsym(RTLD_NEXT, "ucp_ep_create"));
    if (next == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (has_longer_pieces.load(std::memory_order_acquire) && (params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) &&
        !tells_length_of_pieces(params->address)) {
        log_error("a process of this job runs without this library, but all need it; with UCX_LAYOUT_MPI_FRAGMENT=0 in "
                  "this one they can exchange what has no derived datatype");
        return UCS_ERR_UNSUPPORTED;
    }
    return next(worker, params, endpoint);
}
