// The C++ form of column.c: the layout comes straight from an mdspan-like view, and the handles release themselves.
//
// c++ -std=c++23 column.cc -o column $(pkg-config --cflags --libs ucx-layout)
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp_layout.hpp>
#include <unistd.h>
#include <vector>

static constexpr std::size_t n = 1024;

// Like std::mdspan<double, std::extents<std::size_t, n>, std::layout_stride>, for compilers that lack it.
struct column_view {
    double* first;
    static constexpr std::size_t rank() { return 1; }
    double* data_handle() const { return first; }
    std::size_t extent(std::size_t) const { return n; }
    std::size_t stride(std::size_t) const { return n; } // elements
};

static void check(ucs_status_t status, const char* step)
{
    if (status != UCS_OK) {
        std::fprintf(stderr, "%s: %s\n", step, ucs_status_string(status));
        std::exit(1);
    }
}

static void wait_for(ucp_worker_h worker, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return check(UCS_PTR_STATUS(request), "operation");
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    check(ucp_request_check_status(request), "operation");
    ucp_request_free(request);
}

static ucp_ep_h connect_to_peer(ucp_worker_h worker, int socket)
{
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    std::array<char, 4096> remote{};
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    // With MSG_TRUNC, a longer address than there is room for tells its length.
    const ssize_t received =
        send(socket, address, length, 0) < 0 ? -1 : recv(socket, remote.data(), remote.size(), MSG_TRUNC);
    const bool is_whole = received > 0 && received <= static_cast<ssize_t>(remote.size());
    check(is_whole ? UCS_OK : UCS_ERR_IO_ERROR, "address exchange");
    ucp_worker_release_address(worker, address);

    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = reinterpret_cast<ucp_address_t*>(remote.data());
    ucp_ep_h endpoint = nullptr;
    check(ucp_ep_create(worker, &params, &endpoint), "ucp_ep_create");
    return endpoint;
}

// Closing an endpoint needs answers from the peer, so each side keeps answering until both have closed.
static void wait_for_peer(ucp_worker_h worker, int socket)
{
    char closed = 1;
    send(socket, &closed, sizeof(closed), MSG_NOSIGNAL);
    while (recv(socket, &closed, sizeof(closed), MSG_DONTWAIT) < 0) {
        ucp_worker_progress(worker);
    }
}

// Column 3 of the sender goes into column 5 of the receiver.
static int exchange_column(ucp_context_h context, ucp_worker_h worker, ucp_ep_h peer, bool is_sender)
{
    const ucp_request_param_t defaults{};
    std::vector<double> matrix(n * n);
    const column_view column{&matrix[is_sender ? 3 : 5]};
    const auto window = ucx_layout::window::map(context, column);
    check(window ? UCS_OK : window.error(), "window of a column");

    std::size_t wrong = 0;
    if (is_sender) {
        std::iota(matrix.begin(), matrix.end(), 1.0);
        wait_for(worker, ucp_tag_send_nbx(peer, window->address(), window->length(), 1, &defaults));
    } else {
        wait_for(worker, ucp_tag_recv_nbx(worker, window->address(), window->length(), 1, ~ucp_tag_t{0}, &defaults));
        for (std::size_t i = 0; i < n; ++i) {
            const double* const row = &matrix[i * n];
            wrong += row[5] != 1.0 + static_cast<double>(i * n + 3) || row[4] != 0 || row[6] != 0;
        }
        std::printf("column: %zu of %zu rows as expected\n", n - wrong, n);
    }
    wait_for(worker, ucp_ep_close_nbx(peer, &defaults));
    return wrong != 0;
}

static int run(bool is_sender, int socket)
{
    ucp_params_t context_params{};
    context_params.field_mask = UCP_PARAM_FIELD_FEATURES;
    context_params.features   = UCP_FEATURE_TAG;
    ucp_context_h context     = nullptr;
    ucp_worker_h worker       = nullptr;
    const ucp_worker_params_t worker_params{};
    check(ucp_init(&context_params, nullptr, &context), "ucp_init");
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    const int result = exchange_column(context, worker, connect_to_peer(worker, socket), is_sender);
    wait_for_peer(worker, socket);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    return result;
}

int main(int argc, char** argv)
{
    if (argc == 2) {
        return run(false, std::atoi(argv[1]));
    }
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets.data()) != 0) {
        std::perror("socketpair");
        return 1;
    }
    const std::string receiver_socket = std::to_string(sockets[0]);
    const pid_t receiver              = fork();
    close(sockets[receiver == 0 ? 1 : 0]); // each keeps one end, so that it sees the other one go
    if (receiver == 0) {
        // The receiver starts as a fresh program. UCX starts a thread before main, and a lock that this thread holds at
        // the fork stays locked in the child, where ucp_init could wait for it for ever.
        execl("/proc/self/exe", argv[0], receiver_socket.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    return run(true, sockets[1]) != 0 || waitpid(receiver, &status, 0) < 0 || status != 0;
}
