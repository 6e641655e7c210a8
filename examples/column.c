/* Sends a column of one process's matrix into a column of another's: no packing, stock UCP calls, a layout and a
 * window.
 *
 * cc column.c -o column $(pkg-config --cflags --libs ucx-layout)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp_layout.h>
#include <unistd.h>

#define N 1024
static double matrix[N][N];

static void check(ucs_status_t status, const char* step)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", step, ucs_status_string(status));
        exit(1);
    }
}

static void wait_for(ucp_worker_h worker, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        check(UCS_PTR_STATUS(request), "operation");
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    check(ucp_request_check_status(request), "operation");
    ucp_request_free(request);
}

/* Exchanges worker addresses through a socket. Any other way to send a peer a few bytes works as well. */
static ucp_ep_h connect_to_peer(ucp_worker_h worker, int socket)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    char remote[4096];
    ucp_address_t* address;
    ssize_t received;
    size_t length;
    ucp_ep_h ep;

    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    /* With MSG_TRUNC, a longer address than there is room for tells its length. */
    received = send(socket, address, length, 0) < 0 ? -1 : recv(socket, remote, sizeof(remote), MSG_TRUNC);
    if (received <= 0 || received > (ssize_t)sizeof(remote)) {
        check(UCS_ERR_IO_ERROR, "address exchange");
    }
    ucp_worker_release_address(worker, address);
    params.address = (ucp_address_t*)remote;
    check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
    return ep;
}

/* Closing an endpoint needs answers from the peer, so each side keeps answering until both have closed. */
static void wait_for_peer(ucp_worker_h worker, int socket)
{
    char closed = 1;

    send(socket, &closed, sizeof(closed), MSG_NOSIGNAL);
    while (recv(socket, &closed, sizeof(closed), MSG_DONTWAIT) < 0) {
        ucp_worker_progress(worker);
    }
}

static int run(int is_sender, int socket)
{
    ucp_params_t context_params        = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params  = {.field_mask = 0};
    ucp_request_param_t request_params = {.op_attr_mask = 0};
    int wrong                          = 0;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_layout_window_h window;
    ucp_layout_h column;
    void* shown;
    ucp_ep_h ep;

    check(ucp_init(&context_params, NULL, &context), "ucp_init");
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    ep = connect_to_peer(worker, socket);

    /* A column: N numbers, one row apart. The window shows column 3 of the sender and column 5 of the receiver. */
    check(ucp_layout_strided(sizeof(double), N, sizeof(matrix[0]), &column), "ucp_layout_strided");
    check(ucp_layout_map_base(context, column, &matrix[0][is_sender ? 3 : 5], &window, &shown), "ucp_layout_map_base");

    if (is_sender) {
        for (int i = 0; i < N; ++i) {
            for (int j = 0; j < N; ++j) {
                matrix[i][j] = 1.0 + i * N + j;
            }
        }
        wait_for(worker, ucp_tag_send_nbx(ep, shown, N * sizeof(double), 1, &request_params));
    } else {
        wait_for(worker, ucp_tag_recv_nbx(worker, shown, N * sizeof(double), 1, (ucp_tag_t)-1, &request_params));
        for (int i = 0; i < N; ++i) {
            wrong += matrix[i][5] != 1.0 + i * N + 3 || matrix[i][4] != 0 || matrix[i][6] != 0;
        }
        printf("column: %d of %d rows as expected\n", N - wrong, N);
    }

    wait_for(worker, ucp_ep_close_nbx(ep, &request_params));
    wait_for_peer(worker, socket);
    check(ucp_layout_unmap(window), "ucp_layout_unmap");
    ucp_layout_destroy(column);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    return wrong != 0;
}

int main(int argc, char** argv)
{
    int sockets[2], status;
    char receiver_socket[16];
    pid_t receiver;

    if (argc == 2) {
        return run(0, atoi(argv[1]));
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0 || (receiver = fork()) < 0) {
        perror("column");
        return 1;
    }
    close(sockets[receiver == 0 ? 1 : 0]); /* each keeps one end, so that it sees the other one go */
    if (receiver == 0) {
        /* The receiver starts as a fresh program. UCX starts a thread before main, and a lock that this thread holds at
         * the fork stays locked in the child, where ucp_init could wait for it for ever. */
        snprintf(receiver_socket, sizeof(receiver_socket), "%d", sockets[0]);
        execl("/proc/self/exe", argv[0], receiver_socket, NULL);
        _exit(127);
    }
    return run(1, sockets[1]) || waitpid(receiver, &status, 0) < 0 || status != 0;
}
