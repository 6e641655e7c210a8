#include "ucp_pair.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace ucxl::bench
{

using test::check_ok;

ucp_pair::ucp_pair(int socket, std::uint64_t features, bool yields)
    : _socket(socket), _yields(yields), _context(test::open_context({.features = features})),
      _worker(test::open_worker(_context)), _peer(test::connect(_worker, trade(test::address_of(_worker))))
{
}

namespace
{

ucp_request_param_t with_type(ucp_datatype_t type)
{
    ucp_request_param_t made{};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    made.datatype     = type;
    return made;
}

} // namespace

void ucp_pair::send(const void* from, std::size_t count, ucp_datatype_t type)
{
    const ucp_request_param_t params = with_type(type);
    wait_for(ucp_tag_send_nbx(_peer, from, count, 1, &params));
}

void ucp_pair::receive(void* to, std::size_t count, ucp_datatype_t type)
{
    const ucp_request_param_t params = with_type(type);
    wait_for(ucp_tag_recv_nbx(_worker, to, count, 1, ~ucp_tag_t{0}, &params));
}

void ucp_pair::wait_for(ucs_status_ptr_t request)
{
    check_ok(test::finish(request, [this] { progress(); }), "operation");
}

void ucp_pair::progress()
{
    if (ucp_worker_progress(_worker) == 0 && _yields) {
        sched_yield();
    }
}

std::vector<std::byte> ucp_pair::trade(std::span<const std::byte> own) const
{
    std::vector<std::byte> remote(8192);
    const bool sent    = ::send(_socket, own.data(), own.size(), 0) == static_cast<ssize_t>(own.size());
    const auto arrived = sent ? recv(_socket, remote.data(), remote.size(), 0) : 0;
    test::check(arrived > 0, "the socket to the other process");
    remote.resize(static_cast<std::size_t>(arrived));
    return remote;
}

std::vector<std::byte> ucp_pair::describe(const void* address, ucp_mem_h memh) const
{
    const auto place = std::as_bytes(std::span(&address, 1));
    std::vector<std::byte> made(place.begin(), place.end());
    const std::vector<std::byte> key = test::pack_key(_context, memh);
    made.insert(made.end(), key.begin(), key.end());
    return made;
}

remote_memory ucp_pair::remote(std::span<const std::byte> described) const
{
    remote_memory made;
    test::check(described.size() > sizeof(made.address), "a key of {} bytes", described.size());
    std::memcpy(&made.address, described.data(), sizeof(made.address));
    made.key = test::unpack_key(_peer, described.subspan(sizeof(made.address)));
    return made;
}

int run_pair(int argc, char** argv, int num_arguments, const std::function<void(int socket, bool is_first)>& body)
{
    const bool is_first = argc == num_arguments + 1;
    const pid_t starter = getppid();
    int sockets[2]      = {is_first ? -1 : std::atoi(argv[num_arguments + 1]), -1};
    if (is_first) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) {
            std::perror("socketpair");
            return 1;
        }
        const std::string other = std::to_string(sockets[1]);
        std::vector<char*> words(argv, argv + argc);
        words.insert(words.end(), {const_cast<char*>(other.c_str()), nullptr});
        if (fork() == 0) {
            // It would poll for ever for what the first one no longer sends.
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            close(sockets[0]);
            execv("/proc/self/exe", words.data());
            _exit(127);
        }
        close(sockets[1]);
    }
    try {
        body(sockets[0], is_first);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        if (!is_first && getppid() == starter) {
            kill(starter, SIGTERM); // it would wait for ever
        }
        std::_Exit(1);
    }
    std::fflush(nullptr); // UCX's log, too
    std::quick_exit(0);
}

} // namespace ucxl::bench
