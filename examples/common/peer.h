/* The common part of every UCX program: a context, a worker, and an endpoint to one other program.
 *
 *     struct peer peer = peer_open("localhost");      the other program: peer_open(NULL)
 *     peer_wait(&peer, ucp_tag_send_nbx(peer.ep, ...));
 *     peer_close(&peer);
 *
 * The programs meet at TCP port 18515, or at the port in the environment variable PEER_PORT. Any failure ends the
 * program. Include this file first.
 */
#ifndef PEER_H_
#define PEER_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

struct peer {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_request_param_t defaults; /* for calls of UCP */
    int socket;
};

static inline void peer_check(ucs_status_t status, const char* step)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", step, ucs_status_string(status));
        exit(1);
    }
}

static inline void peer_wait(struct peer* peer, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        peer_check(UCS_PTR_STATUS(request), "UCP operation");
        return;
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(peer->worker);
    }
    ucp_request_free(request);
    peer_check(status, "UCP operation");
}

/* Connects to the host as soon as somebody listens there; without a host, accepts the first connection. */
static inline int peer_connect_socket(const char* host)
{
    const char* port = getenv("PEER_PORT");
    struct addrinfo hints;
    struct addrinfo* found;
    int one = 1, peer_socket = -1, tries, listener;

    memset(&hints, 0, sizeof(hints));
    hints.ai_family   = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags    = host ? 0 : AI_PASSIVE;
    if (getaddrinfo(host, port ? port : "18515", &hints, &found) != 0) {
        peer_check(UCS_ERR_INVALID_ADDR, host);
    }
    for (tries = 0; host != NULL && tries < 100; ++tries, usleep(100000)) {
        peer_socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(peer_socket, found->ai_addr, found->ai_addrlen) == 0) {
            freeaddrinfo(found);
            return peer_socket;
        }
        close(peer_socket);
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (host != NULL || bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, 1) != 0 ||
        (peer_socket = accept(listener, NULL, NULL)) < 0) {
        perror("socket");
        exit(1);
    }
    freeaddrinfo(found);
    close(listener);
    return peer_socket;
}

static inline struct peer peer_open(const char* host)
{
    ucp_params_t context_params;
    ucp_worker_params_t worker_params;
    ucp_ep_params_t ep_params;
    struct peer peer;
    char remote[4096];
    ucp_address_t* own;
    size_t own_length, remote_length;

    memset(&peer, 0, sizeof(peer));
    peer.socket               = peer_connect_socket(host);
    context_params.field_mask = UCP_PARAM_FIELD_FEATURES;
    context_params.features   = UCP_FEATURE_TAG;
    worker_params.field_mask  = 0;
    ep_params.field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    peer_check(ucp_init(&context_params, NULL, &peer.context), "ucp_init");
    peer_check(ucp_worker_create(peer.context, &worker_params, &peer.worker), "ucp_worker_create");
    peer_check(ucp_worker_get_address(peer.worker, &own, &own_length), "ucp_worker_get_address");
    if (send(peer.socket, &own_length, sizeof(own_length), 0) != sizeof(own_length) ||
        send(peer.socket, own, own_length, 0) != (ssize_t)own_length ||
        recv(peer.socket, &remote_length, sizeof(remote_length), MSG_WAITALL) != sizeof(remote_length) ||
        remote_length > sizeof(remote) ||
        recv(peer.socket, remote, remote_length, MSG_WAITALL) != (ssize_t)remote_length) {
        peer_check(UCS_ERR_IO_ERROR, "address exchange");
    }
    ucp_worker_release_address(peer.worker, own);
    ep_params.address = (ucp_address_t*)remote;
    peer_check(ucp_ep_create(peer.worker, &ep_params, &peer.ep), "ucp_ep_create");
    return peer;
}

/* Closing an endpoint needs answers from the peer, so each side keeps answering until both have closed. */
static inline void peer_close(struct peer* peer)
{
    char byte = 1;

    peer_wait(peer, ucp_ep_close_nbx(peer->ep, &peer->defaults));
    send(peer->socket, &byte, 1, MSG_NOSIGNAL);
    while (recv(peer->socket, &byte, 1, MSG_DONTWAIT) < 0) {
        ucp_worker_progress(peer->worker);
    }
    close(peer->socket);
    ucp_worker_destroy(peer->worker);
    ucp_cleanup(peer->context);
}

#endif
