// The two processes of `bench transfer` by UCP: strided memory as windows, everything else as stock UCP does it.
//
// usage: bench_transfer_side FIFO; starts the second process itself
#include "sides.h"
#include "tree_layout.h"

#include "ucs/layout/wire.h"

#include <ucp_layout.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace ucxl::bench
{

namespace
{

void expect(ucs_status_t status, const char* what)
{
    if (status != UCS_OK) {
        throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
    }
}

// Neither it nor what it has opened is ever closed: the process ends.
class ucp_side : public side
{
public:
    explicit ucp_side(int socket)
    {
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = UCP_FEATURE_TAG;
        expect(ucp_init(&params, nullptr, &_context), "ucp_init");
        const ucp_worker_params_t defaults{};
        expect(ucp_worker_create(_context, &defaults, &_worker), "ucp_worker_create");
        connect(socket);
    }

    void prepare(const layout_case& of, side_memory& memory) override
    {
        const layout_ptr made = layout_of(*of.type);
        std::vector<std::byte> wire(wire_length(*made));
        if (!pack_wire(*made, wire)) {
            throw std::runtime_error("pack_wire");
        }
        const auto strided = ucx_layout::layout::unpack(wire);
        expect(strided ? UCS_OK : strided.error(), "layout");
        _memory = &memory;
        map(_source, *strided, memory.source);
        map(_target, *strided, memory.target);
    }

    void send_packed() override { send(_memory->packed_source.data(), _memory->packed_source.size()); }
    void receive_packed() override { receive(_memory->packed_target.data(), _memory->packed_target.size()); }
    void send_strided() override { send(_source->address(), _source->length()); }
    void receive_strided() override { receive(_target->address(), _target->length()); }

private:
    void connect(int socket)
    {
        ucp_address_t* address = nullptr;
        std::size_t length     = 0;
        char remote[8192];
        expect(ucp_worker_get_address(_worker, &address, &length), "ucp_worker_get_address");
        const bool exchanged = ::send(socket, address, length, 0) > 0 && recv(socket, remote, sizeof(remote), 0) > 0;
        expect(exchanged ? UCS_OK : UCS_ERR_IO_ERROR, "address exchange");
        ucp_worker_release_address(_worker, address);
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address    = reinterpret_cast<ucp_address_t*>(remote);
        expect(ucp_ep_create(_worker, &params, &_peer), "ucp_ep_create");
    }

    void map(std::optional<ucx_layout::window>& window, const ucx_layout::layout& strided,
             std::vector<std::byte>& memory)
    {
        window.reset();
        auto made = ucx_layout::window::map(_context, strided, memory.data());
        expect(made ? UCS_OK : made.error(), "window");
        window.emplace(std::move(*made));
    }

    void send(const void* from, std::size_t length)
    {
        const ucp_request_param_t defaults{};
        wait_for(ucp_tag_send_nbx(_peer, from, length, 1, &defaults));
    }

    void receive(void* to, std::size_t length)
    {
        const ucp_request_param_t defaults{};
        wait_for(ucp_tag_recv_nbx(_worker, to, length, 1, ~ucp_tag_t{0}, &defaults));
    }

    void wait_for(ucs_status_ptr_t request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            expect(UCS_PTR_STATUS(request), "operation");
            return;
        }
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(_worker);
        }
        const ucs_status_t status = ucp_request_check_status(request);
        ucp_request_free(request);
        expect(status, "operation");
    }

    ucp_context_h _context = nullptr;
    ucp_worker_h _worker   = nullptr;
    ucp_ep_h _peer         = nullptr;
    side_memory* _memory   = nullptr;
    std::optional<ucx_layout::window> _source, _target;
};

void run(const char* fifo, int socket, bool is_first)
{
    ucp_side by(socket);
    side_loop(by, is_first).serve(fifo);
    std::quick_exit(0);
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: bench_transfer_side FIFO; `bench transfer` runs it\n");
        return 2;
    }
    const bool is_first = argc == 2;
    int sockets[2]      = {-1, is_first ? -1 : std::atoi(argv[2])};
    if (is_first) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) {
            std::perror("socketpair");
            return 1;
        }
        if (fork() == 0) {
            execl("/proc/self/exe", argv[0], argv[1], std::to_string(sockets[1]).c_str(), nullptr);
            _exit(127);
        }
    }
    try {
        ucxl::bench::run(argv[1], sockets[is_first ? 0 : 1], is_first);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_transfer_side: %s\n", error.what());
        if (!is_first) {
            kill(getppid(), SIGTERM);
        }
        std::_Exit(1);
    }
    return 0;
}
