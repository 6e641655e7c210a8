/* Lists of UCX 1.22 and newer (ucp_dt_make_sgl) whose elements are windows: one put of several elements, each from a
 * window or plain memory here, to a window or plain memory of another process. A put has to move the right bytes, or to
 * end with a status; what it must not do is to say OK and leave other bytes.
 *
 * Half of the puts have counts and strides, which UCX's header describes as a pattern that each local element repeats.
 * Puts from plain memory to plain memory are UCX's own; they are printed, and are never wrong here.
 *
 * usage: sgl_puts [--private]     memory of the target that only it has, instead of a region of shared memory
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <ucp_layout.h>
#include <unistd.h>

#ifndef ucp_dt_make_sgl

int main(void)
{
    printf("skipped: the UCX that this was compiled with has no such lists\n");
    return 77;
}

#else

enum { ELEMENTS = 3, BLOCK = 8, BLOCKS = 4000, STRIDE = 24, LENGTH = BLOCK * BLOCKS, SPAN = STRIDE * BLOCKS };
enum { NOTHING, PUT_IS_OVER, IS_COMPARED, END };
enum { RIGHT, UNTOUCHED, WRONG };

static const char* const found_words[] = {"right bytes", "nothing was written", "WRONG BYTES"};

struct board {
    int state;
    int remote_is_window, found;
    char address[4096];
    size_t address_length;
    char keys[2][ELEMENTS][2048]; /* of memory, of windows */
    uint64_t addresses[2][ELEMENTS];
};

static volatile struct board* board;
static ucp_context_h context;
static ucp_worker_h worker;

static void require(int holds, const char* what)
{
    if (!holds) {
        fprintf(stderr, "sgl_puts: %s\n", what);
        _exit(1);
    }
}

static void done(ucs_status_t status, const char* what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "sgl_puts: %s: %s\n", what, ucs_status_string(status));
        _exit(1);
    }
}

static void wait_for(int state)
{
    const time_t end = time(NULL) + 60;

    while (__atomic_load_n(&board->state, __ATOMIC_ACQUIRE) != state) {
        ucp_worker_progress(worker);
        require(time(NULL) < end, "the other process does not answer");
    }
}

static void tell(int state)
{
    __atomic_store_n(&board->state, state, __ATOMIC_RELEASE);
}

static void start(void)
{
    ucp_params_t params        = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
    ucp_worker_params_t single = {.field_mask = 0};

    done(ucp_init(&params, NULL, &context), "ucp_init");
    done(ucp_worker_create(context, &single, &worker), "ucp_worker_create");
}

/* A window of every third block of the memory. */
static void* window_over(void* memory, ucp_mem_h* memh)
{
    ucp_layout_window_attr_t attr = {.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH};
    ucp_layout_h layout;
    ucp_layout_window_h window;
    void* address;

    done(ucp_layout_strided(BLOCK, BLOCKS, STRIDE, &layout), "ucp_layout_strided");
    done(ucp_layout_map_base(context, layout, memory, &window, &address), "ucp_layout_map_base");
    done(ucp_layout_window_query(window, &attr), "ucp_layout_window_query");
    *memh = attr.memh;
    return address;
}

static ucp_mem_h registered(void* memory)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address    = memory,
                                   .length     = SPAN};
    ucp_mem_h memh;

    done(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
    return memh;
}

static unsigned char byte_of(int element, size_t place)
{
    return (unsigned char)(1 + (place * 7 + element * 31 + place / 251) % 250);
}

static unsigned char* new_memory(int is_private)
{
    ucp_layout_memory_params_t params = {.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH, .length = SPAN};
    ucp_layout_memory_attr_t attr     = {.field_mask = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS};
    ucp_layout_memory_h memory;

    if (is_private) {
        return malloc(SPAN);
    }
    done(ucp_layout_memory_create(&params, &memory), "ucp_layout_memory_create");
    done(ucp_layout_memory_query(memory, &attr), "ucp_layout_memory_query");
    return attr.address;
}

/* What the target has after a put: packed bytes from the start of the memory, or one block in each stride. */
static int compare(unsigned char* const* memory, int is_window)
{
    int is_right = 1, is_untouched = 1;

    for (int element = 0; element < ELEMENTS; ++element) {
        for (size_t i = 0; i < SPAN; ++i) {
            const size_t packed = is_window ? i / STRIDE * BLOCK + i % STRIDE : i;
            const int is_moved  = is_window ? i % STRIDE < BLOCK : i < LENGTH;

            is_right     = is_right && memory[element][i] == (is_moved ? byte_of(element, packed) : 0);
            is_untouched = is_untouched && memory[element][i] == 0;
        }
    }
    return is_right ? RIGHT : is_untouched ? UNTOUCHED : WRONG;
}

static void pack(int kind, int element, const void* address, ucp_mem_h memh)
{
    void* key;
    size_t length;

    done(ucp_rkey_pack(context, memh, &key, &length), "ucp_rkey_pack");
    require(length <= sizeof(board->keys[0][0]), "the key is too long");
    memcpy((void*)board->keys[kind][element], key, length);
    board->addresses[kind][element] = (uintptr_t)address;
    ucp_rkey_buffer_release(key);
}

static void be_target(int is_private)
{
    unsigned char* memory[ELEMENTS];
    ucp_address_t* address;
    size_t length;

    start();
    for (int element = 0; element < ELEMENTS; ++element) {
        ucp_mem_h memh;
        void* window;

        memory[element] = new_memory(is_private);
        memset(memory[element], 0, SPAN);
        pack(0, element, memory[element], registered(memory[element]));
        window = window_over(memory[element], &memh);
        pack(1, element, window, memh);
    }
    done(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    require(length <= sizeof(board->address), "the address is too long");
    memcpy((void*)board->address, address, length);
    tell(IS_COMPARED);
    for (;;) {
        int state;

        while ((state = __atomic_load_n(&board->state, __ATOMIC_ACQUIRE)) == IS_COMPARED || state == NOTHING) {
            ucp_worker_progress(worker);
        }
        if (state == END) {
            _exit(0);
        }
        board->found = compare(memory, board->remote_is_window);
        for (int element = 0; element < ELEMENTS; ++element) {
            memset(memory[element], 0, SPAN);
        }
        tell(IS_COMPARED);
    }
}

static ucs_status_t end_of(ucs_status_ptr_t call)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(call)) {
        return UCS_PTR_STATUS(call);
    }
    do {
        ucp_worker_progress(worker);
        status = ucp_request_check_status(call);
    } while (status == UCS_INPROGRESS);
    ucp_request_free(call);
    return status;
}

struct list {
    void* buffers[ELEMENTS];
    size_t lengths[ELEMENTS], counts[ELEMENTS], strides[ELEMENTS];
    ucp_mem_h memhs[ELEMENTS];
    uint64_t addresses[ELEMENTS];
    ucp_rkey_h keys[ELEMENTS];
};

static ucs_status_t put(ucp_ep_h endpoint, struct list* list, int has_memhs, int has_counts)
{
    const ucp_dt_local_sgl_t local = {
        .field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS |
                      (has_memhs ? UCP_DT_LOCAL_SGL_FIELD_MEMHS : 0) |
                      (has_counts ? UCP_DT_LOCAL_SGL_FIELD_COUNTS | UCP_DT_LOCAL_SGL_FIELD_STRIDES : 0),
        .buffers = list->buffers,
        .lengths = list->lengths,
        .memhs   = list->memhs,
        .counts  = list->counts,
        .strides = list->strides};
    const ucp_dt_remote_sgl_t remote = {.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
                                                      UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS,
                                        .remote_addrs = list->addresses,
                                        .lengths      = list->lengths,
                                        .rkeys        = list->keys};
    const ucp_request_param_t param  = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
                                                       UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_COUNT,
                                       .datatype        = ucp_dt_make_sgl(),
                                       .remote_datatype = ucp_dt_make_sgl(),
                                       .remote          = &remote,
                                       .remote_count    = ELEMENTS};
    const ucp_request_param_t none   = {.op_attr_mask = 0};
    ucs_status_t status, flushed;

    status  = end_of(ucp_put_nbx(endpoint, &local, ELEMENTS, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &param));
    flushed = end_of(ucp_ep_flush_nbx(endpoint, &none));
    return status != UCS_OK ? status : flushed;
}

static int num_right, num_refused, num_wrong;

static void try(ucp_ep_h endpoint, int is_window, int remote_is_window, int has_memhs, int has_counts)
{
    static unsigned char* memory[ELEMENTS];
    struct list list;
    ucs_status_t status;
    ucp_layout_failure_attr_t failures = {.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT};
    uint64_t before;
    int is_refused;

    for (int element = 0; element < ELEMENTS; ++element) {
        if (memory[element] == NULL) {
            memory[element] = malloc(SPAN);
        }
        memset(memory[element], 0xee, SPAN);
        for (size_t i = 0; i < LENGTH; ++i) {
            memory[element][is_window || has_counts ? i / BLOCK * STRIDE + i % BLOCK : i] = byte_of(element, i);
        }
        list.memhs[element] = NULL;
        list.buffers[element] =
            is_window ? window_over(memory[element], &list.memhs[element]) : (void*)memory[element];
        if (!is_window) {
            list.memhs[element] = registered(memory[element]);
        }
        list.lengths[element]   = has_counts ? BLOCK : LENGTH;
        list.counts[element]    = BLOCKS;
        list.strides[element]   = is_window ? BLOCK : STRIDE;
        list.addresses[element] = board->addresses[remote_is_window][element];
        done(ucp_ep_rkey_unpack(endpoint, (const void*)board->keys[remote_is_window][element], &list.keys[element]),
             "ucp_ep_rkey_unpack");
    }
    done(ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &failures), "ucp_layout_failure_query");
    before                  = failures.silent;
    status                  = put(endpoint, &list, has_memhs, has_counts);
    board->remote_is_window = remote_is_window;
    tell(PUT_IS_OVER);
    wait_for(IS_COMPARED);
    done(ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &failures), "ucp_layout_failure_query");
    is_refused = status != UCS_OK || failures.silent != before;
    printf("%s to %s%s%s: %s%s, %s\n", is_window ? "windows" : "memory", remote_is_window ? "windows" : "memory",
           has_memhs ? ", with handles" : "", has_counts ? ", counts and strides" : "", ucs_status_string(status),
           failures.silent != before ? " (counted as failed)" : "", found_words[board->found]);
    fflush(stdout);
    num_refused += is_refused;
    num_right += !is_refused && board->found == RIGHT;
    num_wrong += !is_refused && board->found != RIGHT && (is_window || remote_is_window);
}

int main(int argc, char** argv)
{
    const int is_private  = argc > 1 && strcmp(argv[1], "--private") == 0;
    ucp_ep_params_t named = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_ep_h endpoint;
    pid_t target;
    int status;

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(board != MAP_FAILED, "no memory");
    target = fork();
    if (target == 0) {
        be_target(is_private);
    }
    start();
    wait_for(IS_COMPARED);
    named.address = (const ucp_address_t*)board->address;
    done(ucp_ep_create(worker, &named, &endpoint), "ucp_ep_create");
    for (int kind = 0; kind < 16; ++kind) {
        try(endpoint, kind & 1, kind >> 1 & 1, kind >> 2 & 1, kind >> 3 & 1);
    }
    tell(END);
    require(waitpid(target, &status, 0) == target && status == 0, "the target failed");
    printf("16 lists: %d right, %d refused, %d said OK and left wrong bytes\n", num_right, num_refused, num_wrong);
    return num_wrong != 0;
}

#endif
