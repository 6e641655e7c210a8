/* Memory of one process used by another one through its own function of the device, with stock UCP calls only.
 *
 * owner   has memory and exports it (ucp_memh_pack with EXPORT)
 * agent   on another function, imports it: no process has it mapped besides the owner
 * peer    has memory of its own
 *
 * The agent puts the owner's bytes to the peer and gets the peer's bytes into the owner's memory; then the peer puts
 * through a key that the agent packed from the imported memory. Every byte is compared by the process that has it.
 *
 * usage: exported_memory OWNER_DEVICE AGENT_DEVICE PEER_DEVICE     such as mlx5_0:1 mlx5_1:1 mlx5_0:1
 */
#include "stock_ucp.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OFFSET = 512, LENGTH = 3 << 20, OWNER = 0, AGENT = 1, PEER = 2, ROLES = 3 };

static const uint64_t features      = UCP_FEATURE_RMA | UCP_FEATURE_EXPORTED_MEMH;
static const char* role_name[ROLES] = {"owner", "agent", "peer"};
static int role;
static int channel[ROLES][ROLES]; /* channel[a][b]: the end that a has towards b */

static void send_to(int other, const void* data, size_t length)
{
    uint64_t size = length;

    require(write(channel[role][other], &size, sizeof(size)) == sizeof(size), "send");
    require(write(channel[role][other], data, length) == (ssize_t)length, "send");
}

static void* receive_from(int other, size_t* length)
{
    uint64_t size;
    char* data;
    ssize_t got;

    require(read(channel[role][other], &size, sizeof(size)) == sizeof(size), "receive");
    data = malloc(size + 1);
    for (uint64_t at = 0; at < size; at += (uint64_t)got) {
        got = read(channel[role][other], data + at, size - at);
        require(got > 0, "receive");
    }
    if (length != NULL) {
        *length = size;
    }
    return data;
}

static void tell(int other)
{
    send_to(other, "", 1);
}

static void await(int other)
{
    free(receive_from(other, NULL));
}

static unsigned char pattern(char which, size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) * 7 + (size_t)which);
}

static void fill(unsigned char* memory, char which)
{
    for (size_t i = 0; i < LENGTH; ++i) {
        memory[i] = pattern(which, i);
    }
}

static void compare(const unsigned char* memory, char which, const char* what)
{
    for (size_t i = 0; i < LENGTH; ++i) {
        require(memory[i] == pattern(which, i), what);
    }
    printf("%s: %s\n", who, what);
    fflush(stdout);
}

/* Until `other` has sent something. */
static void progress_until(int other)
{
    char byte;

    while (recv(channel[role][other], &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
        ucp_worker_progress(worker);
    }
    await(other);
}

/* Both sides connect to each other's worker, and make progress until both are connected. */
static ucp_ep_h connect_to(int other)
{
    ucp_address_t* address;
    size_t length;
    ucp_ep_h endpoint;

    done(ucp_worker_get_address(worker, &address, &length), "address");
    send_to(other, address, length);
    ucp_worker_release_address(worker, address);
    endpoint = connect_to_worker(receive_from(other, NULL));
    tell(other);
    progress_until(other);
    return endpoint;
}

static void run_owner(const char* device)
{
    ucp_memh_pack_params_t pack = {.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS, .flags = UCP_MEMH_PACK_FLAG_EXPORT};
    ucp_memh_buffer_release_params_t release = {0};
    unsigned char* memory                    = (unsigned char*)aligned_alloc(4096, LENGTH + 4096) + OFFSET;
    void* buffer;
    size_t length;
    ucp_mem_h memh;

    start_ucp(features, device);
    fill(memory, 'a');
    memh = map(memory, LENGTH);
    done(ucp_memh_pack(memh, &pack, &buffer, &length), "export");
    send_to(AGENT, buffer, length);
    send_to(AGENT, &memory, sizeof(memory));
    ucp_memh_buffer_release(buffer, &release);
    /* From here on it makes no progress: what happens to its memory is done by the device. */
    await(AGENT);
    compare(memory, 'b', "memory written by the agent's get");
    tell(AGENT);
    await(AGENT);
    compare(memory, 'c', "memory written by the peer's put");
    tell(AGENT);
    await(AGENT);
    done(ucp_mem_unmap(context, memh), "unmap");
}

static void run_agent(const char* device)
{
    ucp_mem_map_params_t import = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER};
    ucp_request_param_t with    = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH};
    unsigned char* theirs; /* an address of the owner */
    uint64_t remote;
    void* packed;
    size_t length;
    ucp_rkey_h rkey;
    ucp_ep_h peer;

    start_ucp(features, device);
    import.exported_memh_buffer = receive_from(OWNER, NULL);
    theirs                      = *(unsigned char**)receive_from(OWNER, NULL);
    done(ucp_mem_map(context, &import, &with.memh), "import");
    peer   = connect_to(PEER);
    remote = *(uint64_t*)receive_from(PEER, NULL);
    done(ucp_ep_rkey_unpack(peer, receive_from(PEER, NULL), &rkey), "key of the peer");

    wait_for(ucp_put_nbx(peer, theirs, LENGTH, remote, rkey, &with), "put");
    wait_for(ucp_ep_flush_nbx(peer, &none), "flush");
    tell(PEER);
    progress_until(PEER);
    wait_for(ucp_get_nbx(peer, theirs, LENGTH, remote, rkey, &with), "get");
    wait_for(ucp_ep_flush_nbx(peer, &none), "flush");
    tell(OWNER);
    await(OWNER);

    done(ucp_rkey_pack(context, with.memh, &packed, &length), "key of imported memory");
    send_to(PEER, packed, length);
    send_to(PEER, &theirs, sizeof(theirs));
    ucp_rkey_buffer_release(packed);
    progress_until(PEER);
    tell(OWNER);
    await(OWNER);

    ucp_rkey_destroy(rkey);
    done(ucp_mem_unmap(context, with.memh), "unmap");
    tell(OWNER);
    tell(PEER);
}

static void run_peer(const char* device)
{
    unsigned char* memory = (unsigned char*)aligned_alloc(4096, LENGTH);
    uint64_t theirs;
    void *packed, *key;
    size_t length;
    ucp_rkey_h rkey;
    ucp_mem_h memh;
    ucp_ep_h agent;

    start_ucp(features, device);
    memset(memory, 0, LENGTH);
    memh  = map(memory, LENGTH);
    agent = connect_to(AGENT);
    send_to(AGENT, &memory, sizeof(memory));
    done(ucp_rkey_pack(context, memh, &packed, &length), "key");
    send_to(AGENT, packed, length);
    ucp_rkey_buffer_release(packed);

    progress_until(AGENT);
    compare(memory, 'a', "memory written by the agent's put");
    fill(memory, 'b');
    tell(AGENT);

    key    = receive_from(AGENT, NULL);
    theirs = *(uint64_t*)receive_from(AGENT, NULL);
    fill(memory, 'c');
    done(ucp_ep_rkey_unpack(agent, key, &rkey), "key of the agent");
    wait_for(ucp_put_nbx(agent, memory, LENGTH, theirs, rkey, &none), "put");
    wait_for(ucp_ep_flush_nbx(agent, &none), "flush");
    tell(AGENT);
    await(AGENT);
    ucp_rkey_destroy(rkey);
    done(ucp_mem_unmap(context, memh), "unmap");
}

int main(int argc, char** argv)
{
    static void (*const run[ROLES])(const char*) = {run_owner, run_agent, run_peer};
    pid_t processes[ROLES];
    int failed = 0;

    if (argc != 1 + ROLES) {
        fprintf(stderr, "usage: exported_memory OWNER_DEVICE AGENT_DEVICE PEER_DEVICE\n");
        return 2;
    }
    for (int a = 0; a < ROLES; ++a) {
        for (int b = a + 1; b < ROLES; ++b) {
            int ends[2];

            require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "sockets");
            channel[a][b] = ends[0];
            channel[b][a] = ends[1];
        }
    }
    for (int i = 0; i < ROLES; ++i) {
        processes[i] = fork();
        if (processes[i] == 0) {
            role = i;
            who  = role_name[i];
            alarm(60);
            run[i](argv[1 + i]);
            return 0;
        }
    }
    for (int i = 0; i < ROLES; ++i) {
        int status;

        require(wait(&status) > 0, "wait");
        if (status != 0 && failed++ == 0) {
            for (int j = 0; j < ROLES; ++j) { /* they would wait for the one that failed */
                kill(processes[j], SIGTERM);
            }
        }
    }
    printf("exported memory: %s\n", failed == 0 ? "all bytes right" : "failed");
    return failed != 0;
}
