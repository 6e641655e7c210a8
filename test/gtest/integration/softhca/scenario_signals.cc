// Programs with signal handlers and masks of their own, and programs that store to doorbell pages themselves.
#include "scenario.h"

#include "support/verbs_endpoint.h"

#include <infiniband/mlx5dv.h>

#include <arpa/inet.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <format>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::die;
using ucxl::test::endpoint;
using ucxl::test::seconds_now;

namespace
{

void install_own_handler()
{
    struct sigaction mine = {};
    mine.sa_sigaction     = [](int, siginfo_t* fault, void*) {
        ::_exit(fault->si_addr == reinterpret_cast<void*>(64) ? 42 : 43);
    };
    mine.sa_flags = SA_SIGINFO;
    if (::sigaction(SIGSEGV, &mine, nullptr) != 0) {
        die("sigaction");
    }
}

// What a handler does, which interrupts the thread anywhere. It does not wait for a lock of libibverbs that the thread
// has, because its queue pair is another one, of a context of its own.
struct posting_handler {
    static constexpr std::size_t length = 64, target = 2048;

    explicit posting_handler(ibv_context* of_the_thread) : interrupted(of_the_thread), own(4096)
    {
        own.connect(own.own());
        std::memset(own.buffer(), 0x5a, length);
    }

    void run()
    {
        const int before = errno;
        ibv_port_attr port{};
        const int refused = ibv_query_port(interrupted, 1, &port);
        failed += refused != 0 && refused != EDEADLK; // which says that the thread is in another call
        poll();
        if (posted == completed) { // the doorbell of another one would do for this one, too
            failed += !own.try_post(IBV_WR_RDMA_WRITE, 0, target, length, 1);
            ++posted;
        }
        errno = before;
    }
    void poll()
    {
        ibv_wc found{};
        while (ibv_poll_cq(own.queue(), 1, &found) == 1) {
            failed += found.status != IBV_WC_SUCCESS;
            ++completed;
        }
    }

    ibv_context* interrupted;
    endpoint own;
    unsigned posted = 0, completed = 0, failed = 0;
};

posting_handler* in_handler = nullptr;

class alarms
{
public:
    explicit alarms(suseconds_t every_us) { set(every_us); }
    ~alarms() { set(0); }
    alarms(const alarms&)            = delete;
    alarms& operator=(const alarms&) = delete;

private:
    static void set(suseconds_t every_us)
    {
        const itimerval times{.it_interval = {.tv_sec = 0, .tv_usec = every_us},
                              .it_value    = {.tv_sec = 0, .tv_usec = every_us}};
        ::setitimer(ITIMER_REAL, &times, nullptr);
    }
};

void expect_all_done(posting_handler& handler)
{
    for (const double until = seconds_now() + 10; handler.completed != handler.posted && seconds_now() < until;) {
        handler.poll();
    }
    if (handler.posted == 0 || handler.completed != handler.posted || handler.failed != 0) {
        die(std::format("the handler has posted {}, {} of them completed, and {} calls or requests failed",
                        handler.posted, handler.completed, handler.failed));
    }
    const std::byte* const bytes = handler.own.buffer();
    if (std::memcmp(bytes, bytes + posting_handler::target, posting_handler::length) != 0) {
        die("what the handler has written did not arrive");
    }
}

} // namespace

mlx5dv_qp parts_of(ibv_qp* queue_pair)
{
    mlx5dv_obj object{};
    mlx5dv_qp parts{};
    object.qp.in  = queue_pair;
    object.qp.out = &parts;
    if (mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) != 0) {
        die("mlx5dv_init_obj");
    }
    return parts;
}

int own_fault_handler(int late)
{
    if (late == 0) {
        install_own_handler();
    }
    endpoint here(4096);
    here.connect(here.own());
    if (late != 0) {
        install_own_handler();
    }
    // The handler must not see a trapping doorbell, nor a copy from unmapped memory.
    (void)parts_of(here.queue_pair());
    here.write(0, 2048, 64, 1);
    here.finish_one();
    static volatile std::uintptr_t wild                    = 64;
    *reinterpret_cast<volatile int*>(std::uintptr_t{wild}) = 1;
    return 1;
}

int blocked_signals_and_direct_doorbells(int)
{
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    endpoint here(4096);
    here.connect(here.own());
    const mlx5dv_qp direct = parts_of(here.queue_pair());
    // A NOP, posted as a program posts it that knows the card: WQE, doorbell record, doorbell.
    std::jthread([&] {
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        auto* const control = static_cast<mlx5_wqe_ctrl_seg*>(direct.sq.buf);
        std::memset(control, 0, 64);
        control->opmod_idx_opcode = 0;
        control->qpn_ds           = htonl(here.queue_pair()->qp_num << 8 | 1);
        control->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        direct.dbrec[MLX5_SND_DBR] = htonl(1);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        std::uint64_t first = 0;
        std::memcpy(&first, control, sizeof(first));
        *static_cast<volatile std::uint64_t*>(direct.bf.reg) = first;
    }).join();
    mlx5dv_obj object{};
    mlx5dv_cq entries{};
    object.cq.in  = here.queue();
    object.cq.out = &entries;
    if (mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ) != 0) {
        die("mlx5dv_init_obj of the CQ");
    }
    const auto* const entry = static_cast<const volatile mlx5_cqe64*>(entries.buf);
    const double until      = seconds_now() + 10;
    while (entry->op_own != MLX5_CQE_REQ << 4) {
        if (seconds_now() > until) {
            die("the NOP did not complete");
        }
    }
    return 0;
}

int handler_that_posts(int)
{
    constexpr std::size_t length = 1 << 15;
    endpoint here(2 * length, 64);
    here.connect(here.own());
    posting_handler handler(here.context());
    in_handler            = &handler;
    struct sigaction mine = {};
    mine.sa_handler       = [](int) { in_handler->run(); };
    mine.sa_flags         = SA_RESTART;
    ::sigaction(SIGALRM, &mine, nullptr);
    {
        const alarms often(200);
        const double until = seconds_now() + 1;
        for (int round = 0; seconds_now() < until; ++round) {
            std::memset(here.buffer(), round, length);
            here.write(0, length, length, 1);
            here.finish_one();
            if (std::memcmp(here.buffer(), here.buffer() + length, length) != 0) {
                die(std::format("other bytes arrived in round {}", round));
            }
        }
    }
    expect_all_done(handler);
    return 0;
}

// libibverbs is loaded with RTLD_LOCAL, and called past every wrapper.
int local_libraries(int)
{
    void* const verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (verbs == nullptr) {
        die(dlerror());
    }
    const auto list            = reinterpret_cast<decltype(&ibv_get_device_list)>(dlsym(verbs, "ibv_get_device_list"));
    const auto open            = reinterpret_cast<decltype(&ibv_open_device)>(dlsym(verbs, "ibv_open_device"));
    const auto name            = reinterpret_cast<decltype(&ibv_get_device_name)>(dlsym(verbs, "ibv_get_device_name"));
    ibv_device** const devices = list(nullptr);
    if (devices == nullptr || devices[0] == nullptr || std::strcmp(name(devices[0]), "mlx5_0") != 0 ||
        open(devices[0]) == nullptr) {
        die("the device is not there");
    }
    return 0;
}

} // namespace ucxl::softhca::test
