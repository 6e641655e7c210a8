/* Atomic operations on the memory of a process that does nothing meanwhile, with stock UCP calls only. After every one
 * the old value, the new value and the bytes around it are compared with what C makes of the same operands, whose
 * bytes all differ: a value in the wrong byte order is found.
 *
 * usage: remote_atomics SIZE...     of the operands: 4, 8 or both
 */
#include "stock_ucp.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMORY = 4096, PLACE = 64, GUARD = 0xe5, MESSAGE = 65536 };

static int peer; /* a socket */

static const struct operation {
    const char* name;
    ucp_atomic_op_t code;
    int may_post; /* exists without a result, too */
} operations[] = {{"add", UCP_ATOMIC_OP_ADD, 1}, {"and", UCP_ATOMIC_OP_AND, 1},   {"or", UCP_ATOMIC_OP_OR, 1},
                  {"xor", UCP_ATOMIC_OP_XOR, 1}, {"swap", UCP_ATOMIC_OP_SWAP, 0}, {"cswap", UCP_ATOMIC_OP_CSWAP, 0}};

/* Old values and operands; of 4 bytes, their lower halves. */
static const uint64_t values[] = {0x0123456789abcdef, 0xfedcba9876543210, 0x80000000ffffff01, 0x00000000000000ff, 0};

static void send_bytes(const void* data, size_t length)
{
    require(send(peer, data, length, 0) == (ssize_t)length, "send");
}

static size_t receive_bytes(void* data)
{
    ssize_t length = recv(peer, data, MESSAGE, 0);

    require(length > 0, "the other process has ended");
    return (size_t)length;
}

static ucp_ep_h start(void)
{
    static char address[MESSAGE];
    ucp_address_t* own;
    size_t length;
    ucp_ep_h endpoint;

    start_ucp(UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64, NULL);
    done(ucp_worker_get_address(worker, &own, &length), "address");
    send_bytes(own, length);
    ucp_worker_release_address(worker, own);
    receive_bytes(address);
    endpoint = connect_to_worker(address);
    send_bytes("", 1);
    while (recv(peer, address, 1, MSG_DONTWAIT) != 1) {
        ucp_worker_progress(worker);
    }
    return endpoint;
}

static void run_target(unsigned char* memory)
{
    ucp_mem_h memh;
    void* key;
    size_t length;
    char byte;

    who = "target";
    start();
    memh = map(memory, MEMORY);
    done(ucp_rkey_pack(context, memh, &key, &length), "key");
    send_bytes(key, length);
    /* No progress from here on: the operations are the device's. */
    require(recv(peer, &byte, 1, 0) == 1, "the origin has failed");
    done(ucp_mem_unmap(context, memh), "unmap");
}

static uint64_t result_of(ucp_atomic_op_t code, uint64_t old, uint64_t operand, uint64_t swap)
{
    switch (code) {
    case UCP_ATOMIC_OP_ADD:
        return old + operand;
    case UCP_ATOMIC_OP_AND:
        return old & operand;
    case UCP_ATOMIC_OP_OR:
        return old | operand;
    case UCP_ATOMIC_OP_XOR:
        return old ^ operand;
    case UCP_ATOMIC_OP_SWAP:
        return operand;
    default:
        return old == operand ? swap : old;
    }
}

static void check(const struct operation* operation, const char* what, size_t size, uint64_t expected, uint64_t found)
{
    if (memcmp(&expected, &found, size) != 0) {
        fprintf(stderr, "%s of %zu bytes: %s is %#llx, not %#llx\n", operation->name, size, what,
                (unsigned long long)found, (unsigned long long)expected);
        exit(1);
    }
}

/* `swap` is for the compare and swap only, whose operand is what it compares with. */
static void try_one(const struct operation* operation, int fetches, size_t size, uint64_t old, uint64_t operand,
                    uint64_t swap, unsigned char* memory, size_t place, ucp_ep_h endpoint, ucp_rkey_h rkey)
{
    uint64_t reply            = swap; /* that is where UCP takes it from */
    uint64_t found            = 0;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = ucp_dt_make_contig(size)};

    if (fetches) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = &reply;
    }
    memset(memory, GUARD, MEMORY);
    memcpy(memory + place, &old, size);
    wait_for(ucp_atomic_op_nbx(endpoint, operation->code, &operand, 1, (uintptr_t)memory + place, rkey, &param),
             operation->name);
    wait_for(ucp_ep_flush_nbx(endpoint, &none), "flush");
    if (fetches) {
        check(operation, "the old value", size, old, reply);
    }
    memcpy(&found, memory + place, size);
    check(operation, "the new value", size, result_of(operation->code, old, operand, swap), found);
    for (size_t i = 0; i < MEMORY; ++i) {
        require((i >= place && i < place + size) || memory[i] == GUARD, "a neighbour has changed");
    }
}

static int run_all(size_t size, unsigned char* memory, ucp_ep_h endpoint, ucp_rkey_h rkey)
{
    const uint64_t mask = size == 4 ? 0xffffffff : ~(uint64_t)0;
    const size_t count  = sizeof(values) / sizeof(values[0]);
    int tried           = 0;

    for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); ++o) {
        for (size_t i = 0; i < count * count; ++i) {
            for (int fetches = operations[o].may_post ? 0 : 1; fetches <= 1; ++fetches) {
                uint64_t old = values[i % count] & mask, operand = values[i / count] & mask;

                /* By turns at both halves of a word. */
                try_one(&operations[o], fetches, size, old, operand, 0x1122334455667788 & mask, memory,
                        PLACE + (i % 2) * size, endpoint, rkey);
                ++tried;
            }
        }
    }
    return tried;
}

static void run_origin(unsigned char* memory, int argc, char** argv)
{
    static char key[MESSAGE];
    ucp_rkey_h rkey;
    ucp_ep_h endpoint;
    int tried = 0;

    who      = "origin";
    endpoint = start();
    receive_bytes(key);
    done(ucp_ep_rkey_unpack(endpoint, key, &rkey), "unpack");
    for (int i = 1; i < argc; ++i) {
        tried += run_all((size_t)atoi(argv[i]), memory, endpoint, rkey);
    }
    ucp_rkey_destroy(rkey);
    send_bytes("", 1);
    printf("remote atomics: %d right\n", tried);
}

int main(int argc, char** argv)
{
    int ends[2];
    int status;
    pid_t target;
    unsigned char* memory;

    who    = "remote_atomics";
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "memory");
    require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "sockets");
    alarm(60);
    target = fork();
    peer   = ends[target == 0];
    close(ends[target != 0]);
    if (target == 0) {
        alarm(60);
        run_target(memory);
        return 0;
    }
    run_origin(memory, argc, argv);
    require(waitpid(target, &status, 0) == target && status == 0, "the target has failed");
    return 0;
}
