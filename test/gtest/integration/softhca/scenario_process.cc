// Processes that fork, execute programs, exit and close descriptors.
#include "scenario.h"

#include "support/verbs_endpoint.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::die;
using ucxl::test::endpoint;

namespace
{

void work(endpoint& here)
{
    std::memset(here.buffer(), 0x5a, 64);
    std::memset(here.buffer() + 2048, 0, 64);
    here.write(0, 2048, 64, 7);
    here.finish_one();
    if (std::memcmp(here.buffer(), here.buffer() + 2048, 64) != 0) {
        die("the bytes did not arrive");
    }
}

void expect_status(pid_t child, int expected, const char* who)
{
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
        die(std::string(who) + " ended with " + std::to_string(status));
    }
}

} // namespace

int fork_child_inherits_nothing(int)
{
    endpoint here(4096);
    here.connect(here.own());
    work(here);
    const pid_t child = ::fork();
    if (child == 0) {
        // As a careless program: the parent's objects do nothing in the child, crash nothing, and stay unchanged.
        here.try_post(IBV_WR_RDMA_WRITE, 0, 2048, 64, 1);
        if (here.completion(0.01)) {
            die("the child's request was executed");
        }
        if (ibv_reg_mr(here.queue_pair()->pd, here.buffer(), 64, IBV_ACCESS_LOCAL_WRITE) != nullptr) {
            die("the child used its parent's protection domain");
        }
        std::exit(0); // with destructors of libraries
    }
    for (int i = 0; i < 200; ++i) {
        work(here);
    }
    expect_status(child, 0, "the child");
    work(here);
    return 0;
}

// Objects that a child makes through an inherited context are its own and end with it.
int fork_child_makes_its_own(int)
{
    endpoint here(4096);
    here.connect(here.own());
    const auto take_all = [&] {
        ibv_alloc_dm_attr all{};
        all.length = 1U << 18;
        return ibv_alloc_dm(here.context(), &all);
    };
    for (int i = 0; i < 3; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ibv_port_attr port{};
            ibv_pd* const pd = ibv_alloc_pd(here.context());
            if (ibv_query_port(here.context(), 1, &port) != 0 || port.state != IBV_PORT_ACTIVE || pd == nullptr ||
                ibv_reg_mr(pd, here.buffer(), 64, IBV_ACCESS_LOCAL_WRITE) == nullptr || take_all() == nullptr ||
                take_all() != nullptr) {
                die("the child's own");
            }
            ::_exit(0);
        }
        work(here);
        expect_status(child, 0, "the child");
    }
    ibv_dm* const memory = take_all();
    if (memory == nullptr || ibv_free_dm(memory) != 0) {
        die("what the children made is still there");
    }
    work(here);
    return 0;
}

namespace
{

// Without the wrappers, which may notice that the number is taken anew.
void expect_reusable(int number)
{
    const int file = ::memfd_create("other", 0);
    if ((file != number && ::syscall(SYS_dup3, file, number, 0) != number) || ::write(number, "text", 4) != 4) {
        die("a file with the number of a descriptor that was closed");
    }
}

} // namespace

// A descriptor number that the child closed may be reused by any file.
int fork_child_closes_descriptors(int)
{
    endpoint here(4096);
    here.connect(here.own());
    const int number              = here.context()->cmd_fd;
    void (*const close_it[])(int) = {
        [](int fd) { ::close(fd); },
        [](int fd) { ::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0); },
        [](int fd) { ::closefrom(fd); },
        [](int fd) { ::dup2(STDERR_FILENO, fd); },
    };
    for (const auto close_in_child : close_it) {
        const pid_t child = ::fork();
        if (child == 0) {
            close_in_child(number);
            expect_reusable(number);
            ::_exit(0);
        }
        expect_status(child, 0, "the child");
    }
    work(here);
    return 0;
}

// The device files of a process that could not execute another program are closed as any file.
int closes_descriptors_after_a_failed_exec(int)
{
    auto* const here = new endpoint(4096); // not closed: the device is gone
    const int number = here->context()->cmd_fd;
    if (::execl("/no/such/program", "program", nullptr) != -1 || errno != ENOENT) {
        die("execl");
    }
    ::close(number);
    expect_reusable(number);
    endpoint again(4096);
    again.connect(again.own());
    work(again);
    return 0;
}

int fork_child_opens_anew(int)
{
    endpoint here(4096);
    here.connect(here.own());
    for (int depth = 0; depth < 3; ++depth) {
        const pid_t child = ::fork();
        if (child == 0) {
            endpoint own(4096);
            own.connect(own.own());
            work(own);
            const pid_t grandchild = ::fork();
            if (grandchild == 0) {
                endpoint theirs(4096);
                theirs.connect(theirs.own());
                work(theirs);
                std::exit(0);
            }
            expect_status(grandchild, 0, "the grandchild");
            work(own);
            std::exit(0);
        }
        work(here);
        expect_status(child, 0, "the child");
        work(here);
    }
    return 0;
}

// On the parent's memory and descriptor numbers, as programs that start others do.
[[gnu::noinline]] static pid_t run_in_vforked_child()
{
    const pid_t child = ::vfork(); // NOLINT(bugprone-unsafe-functions): it is what this is about
    if (child == 0) {
        for (int fd = 3; fd < 100; ++fd) {
            ::close(fd);
        }
        ::execl("/bin/true", "true", nullptr);
        ::_exit(1);
    }
    return child;
}

int vfork_and_spawn(int)
{
    endpoint here(4096);
    here.connect(here.own());
    const pid_t forked = ::fork();
    if (forked == 0) {
        expect_status(run_in_vforked_child(), 0, "the program of the child");
        if (ibv_alloc_pd(here.context()) == nullptr) {
            die("the program closed descriptors of the child");
        }
        ::_exit(0);
    }
    expect_status(forked, 0, "the child");
    for (int i = 0; i < 20; ++i) {
        expect_status(run_in_vforked_child(), 0, "the program");
        work(here);
        pid_t child                   = 0;
        const char* const arguments[] = {"true", nullptr};
        if (::posix_spawn(&child, "/bin/true", nullptr, nullptr, const_cast<char* const*>(arguments), environ) != 0) {
            die("posix_spawn");
        }
        expect_status(child, 0, "the spawned program");
        if (std::system("true") != 0) {
            die("system");
        }
        work(here);
    }
    return 0;
}

int execute_another_program(int)
{
    auto* const here = new endpoint(4096); // not closed
    here->connect(here->own());
    work(*here);
    ::execl("/proc/self/exe", "softhca_scenarios", "loopback", nullptr);
    die("execl");
}

int exit_with_busy_threads(int)
{
    static std::atomic<int> running = 0;
    for (int i = 0; i < 3; ++i) {
        std::thread([] {
            auto* const here = new endpoint(4096);
            here->connect(here->own());
            for (int completed = 0;;) {
                here->try_post(IBV_WR_RDMA_WRITE, 0, 2048, 64, 1);
                ibv_wc found;
                const bool is_busy = ibv_poll_cq(here->queue(), 1, &found) == 1 && ++completed == 1000;
                if (is_busy) {
                    ++running;
                    running.notify_one();
                }
            }
        }).detach();
    }
    for (int busy = 0; busy < 3; busy = running.load()) {
        running.wait(busy);
    }
    std::exit(0);
}

// Threads that open and close devices while the process ends.
int exit_with_opening_threads(int)
{
    static std::atomic<int> opened = 0;
    for (int i = 0; i < 3; ++i) {
        std::thread([] {
            ibv_device** const devices = ibv_get_device_list(nullptr);
            for (;;) {
                ibv_context* const context = ibv_open_device(devices[0]);
                if (context == nullptr) {
                    continue; // the device is gone
                }
                (void)ibv_alloc_pd(context);
                ibv_close_device(context);
                ++opened;
                opened.notify_one();
            }
        }).detach();
    }
    for (int seen = 0; seen < 30; seen = opened.load()) {
        opened.wait(seen);
    }
    std::exit(0);
}

int exit_without_closing(int)
{
    auto* const here = new endpoint(4096);
    here->connect(here->own());
    work(*here);
    return 0;
}

int close_all_descriptors(int)
{
    for (int fd = 3; fd < 1024; ++fd) {
        ::close(fd);
    }
    auto* const here = new endpoint(4096);
    here->connect(here->own());
    work(*here);
    for (int fd = 3; fd < 1024; ++fd) {
        ::close(fd);
    }
    const int mine = ::open("/dev/null", O_WRONLY);
    here->try_post(IBV_WR_RDMA_WRITE, 0, 2048, 64, 1);
    ibv_port_attr port{};
    if (mine < 0 || ibv_query_port(here->context(), 1, &port) == 0) {
        die("a closed device answered");
    }
    endpoint again(4096);
    again.connect(again.own());
    work(again);
    return 0;
}

int loopback(int)
{
    endpoint here(4096);
    here.connect(here.own());
    for (int i = 0; i < 100; ++i) {
        work(here);
    }
    return 0;
}

// The timestamps of CQEs, the device's clock and the time of day agree.
int clock_of_completions(int)
{
    endpoint here(4096);
    const auto clock = [&] {
        ibv_values_ex now{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
        if (ibv_query_rt_values_ex(here.context(), &now) != 0 || now.comp_mask != IBV_VALUES_MASK_RAW_CLOCK) {
            die("ibv_query_rt_values_ex");
        }
        return static_cast<std::uint64_t>(now.raw_clock.tv_nsec);
    };
    ibv_device_attr_ex device{};
    mlx5dv_clock_info info{};
    if (ibv_query_device_ex(here.context(), nullptr, &device) != 0 || device.completion_timestamp_mask == 0 ||
        device.hca_core_clock != 1'000'000 || mlx5dv_get_clock_info(here.context(), &info) != 0) {
        die("what the device says of its clock");
    }
    const std::uint64_t before = clock();
    const std::uint64_t after  = clock();
    const auto difference      = static_cast<std::int64_t>(mlx5dv_ts_to_ns(&info, after)) -
                            static_cast<std::int64_t>(std::time(nullptr)) * 1'000'000'000;
    if (after <= before || difference < -2'000'000'000 || difference > 3'000'000'000) {
        die("the clock is " + std::to_string(difference) + " ns from the time of day");
    }
    return 0;
}

namespace
{

void expect_event(endpoint& here)
{
    pollfd wait{.fd = here.channel()->fd, .events = POLLIN, .revents = 0};
    ibv_cq* which = nullptr;
    void* what    = nullptr;
    if (::poll(&wait, 1, 5000) != 1 || ibv_get_cq_event(here.channel(), &which, &what) != 0 || which != here.queue()) {
        die("the event of the completion queue did not come");
    }
    ibv_ack_cq_events(which, 1);
}

} // namespace

// A thread that is cancelled ends at its next cancellation point, not inside the device.
int cancelled_thread(int)
{
    endpoint here(4096, 16, true);
    here.connect(here.own());
    pthread_t thread{};
    const auto body = [](void* given) -> void* {
        auto& device = *static_cast<endpoint*>(given);
        ::pthread_cancel(::pthread_self());
        ibv_comp_channel* const another = ibv_create_comp_channel(device.context());
        (void)ibv_req_notify_cq(device.queue(), 0);
        device.write(0, 2048, 64, 1);
        if (another != nullptr) {
            ::pthread_testcancel();
        }
        return nullptr;
    };
    if (::pthread_create(&thread, nullptr, body, &here) != 0) {
        die("pthread_create");
    }
    void* ended = nullptr;
    ::pthread_join(thread, &ended);
    if (ended != PTHREAD_CANCELED) {
        die("the thread was not cancelled behind its calls");
    }
    expect_event(here);
    here.finish_one();
    work(here);
    return 0;
}

// /proc/self and the memory of /proc/PID end with the first thread.
int outlives_its_main_thread(int)
{
    std::thread([] {
        const double until = ucxl::test::seconds_now() + 5;
        char state         = 'R';
        while (state != 'Z') {
            std::ifstream("/proc/self/stat").ignore(100, ')').ignore(1).get(state);
            if (ucxl::test::seconds_now() > until) {
                die("the main thread did not end");
            }
        }
        endpoint here(4096, 16, true);
        here.connect(here.own());
        (void)ibv_req_notify_cq(here.queue(), 0);
        here.write(0, 2048, 64, 1);
        expect_event(here);
        here.finish_one();
        (void)parts_of(here.queue_pair());
        work(here);
        ::_exit(0);
    }).detach();
    ::pthread_exit(nullptr);
}

int completion_events(int)
{
    endpoint here(4096, 16, true);
    here.connect(here.own());
    for (int i = 0; i < 200; ++i) {
        if (ibv_req_notify_cq(here.queue(), 0) != 0) {
            die("ibv_req_notify_cq");
        }
        here.write(0, 2048, 64, 1);
        ibv_cq* which = nullptr;
        void* what    = nullptr;
        if (ibv_get_cq_event(here.channel(), &which, &what) != 0 || which != here.queue()) {
            die("ibv_get_cq_event");
        }
        ibv_ack_cq_events(which, 1);
        here.finish_one();
    }
    return 0;
}

} // namespace ucxl::softhca::test
