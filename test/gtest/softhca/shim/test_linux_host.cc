#include "softhca/shim/host/event_record.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/host/linux_host.h"
#include "softhca/shim/system/fault_signals.h"
#include "softhca/shim/system/process_identity.h"

#include "prm/eq.h"
#include "support/forked_process.h"
#include "support/must.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <semaphore>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ucxl::softhca
{
namespace
{

constexpr std::size_t page = 4096;

// Attaches a process to the fabric as device_process.h does.
struct user {
    explicit user(const fabric_memory& memory)
        : host(memory.records(), memory.lock(), own_identity(), "", [](void*) {}, nullptr)
    {
        install_fault_handlers([](int, siginfo_t&, void*) { return false; });
        device = ucxl::test::must(fabric::attach(memory.bytes(), host, own_identity()));
        host.set_self(device->self());
    }

    linux_host host;
    std::unique_ptr<fabric> device;
};

fabric_memory make_memory(const fabric_options& options = {})
{
    return ucxl::test::must(fabric_memory::create(options));
}

// A limit of this process is that low as long as this exists.
class lowered_limit
{
public:
    lowered_limit(__rlimit_resource which, rlim_t value) : _which(which)
    {
        ::getrlimit(_which, &_before);
        const rlimit low{.rlim_cur = value, .rlim_max = _before.rlim_max};
        EXPECT_EQ(::setrlimit(_which, &low), 0);
    }
    ~lowered_limit() { ::setrlimit(_which, &_before); }
    lowered_limit(const lowered_limit&)            = delete;
    lowered_limit& operator=(const lowered_limit&) = delete;

private:
    __rlimit_resource _which;
    rlimit _before{};
};

TEST(process_identity, a_process_is_its_id_and_its_start)
{
    const process_identity self = own_identity();
    EXPECT_EQ(self.process, ::getpid());
    EXPECT_GT(self.start_time, 0U);
    EXPECT_TRUE(is_running(self));
    EXPECT_FALSE(is_running({.process = self.process, .start_time = self.start_time + 1}));
    EXPECT_FALSE(is_running({.process = 0x3fffffff, .start_time = self.start_time}));
}

TEST(process_identity, one_that_was_not_waited_for_does_not_run)
{
    process_identity child;
    ucxl::test::forked_process ended([](ucxl::test::forked_process&) {});
    child.process = ended.id();
    for (int tries = 0;
         tries < 1000 && ::waitid(P_PID, static_cast<id_t>(child.process), nullptr, WEXITED | WNOWAIT) != 0; ++tries) {
    }
    EXPECT_FALSE(is_running(child));
}

TEST(process_identity, a_process_runs_until_it_is_known_to_have_ended)
{
    const process_identity self = own_identity();
    const lowered_limit no_descriptor(RLIMIT_NOFILE, 0); // for the files of /proc
    EXPECT_TRUE(is_running(self));
    EXPECT_FALSE(is_running({.process = 0x3fffffff, .start_time = self.start_time}));
}

TEST(fabric_memory, another_process_opens_it_by_its_place)
{
    const fabric_memory mine = make_memory({.devices = 2});
    const int process        = ::getpid();
    ucxl::test::forked_process other([&mine, process](ucxl::test::forked_process&) {
        const auto theirs = fabric_memory::open(process, mine.file());
        ASSERT_TRUE(theirs.has_value()) << theirs.error();
        EXPECT_NE(&theirs->records(), &mine.records());
        EXPECT_EQ(theirs->records().functions, 2U);
        theirs->records().counts.doorbells                = 77;
        theirs->records().memic[1].bytes[memic_bytes - 1] = std::byte{5};
    });
    EXPECT_EQ(other.join(), 0);
    EXPECT_EQ(mine.records().counts.doorbells, 77U);
    EXPECT_EQ(mine.records().memic[1].bytes[memic_bytes - 1], std::byte{5});
}

TEST(fabric_memory, what_is_no_fabric_is_refused)
{
    const int file = ::memfd_create("other", 0);
    EXPECT_FALSE(fabric_memory::open(::getpid(), file).has_value());
    EXPECT_FALSE(fabric_memory::open(::getpid(), 4000).has_value());
    EXPECT_FALSE(fabric_memory::open(0x3fffffff, 3).has_value());
    ::close(file);
    EXPECT_FALSE(fabric_memory::create({.devices = 99}).has_value());
}

// As libmlx5 computes it: command 8, the index around it, in pages.
TEST(fabric_memory, device_memory_is_where_libmlx5_looks_for_it)
{
    const fabric_memory memory = make_memory({.devices = 3});
    for (unsigned device = 0; device < 3; ++device) {
        for (const std::size_t index_of_page : {std::size_t{0}, memic_bytes / page - 1}) {
            const std::uint64_t index  = fabric_memory::memic_page_index(device, index_of_page);
            const std::uint64_t offset = ((8 << 8) | (index & 0xff) | (index >> 8) << 16) * page;
            memory.records().memic[device].bytes[index_of_page * page] =
                static_cast<std::byte>(10 * device + index_of_page);
            void* const mapped =
                ::mmap(nullptr, page, PROT_READ, MAP_SHARED, memory.file(), static_cast<off_t>(offset));
            ASSERT_NE(mapped, MAP_FAILED);
            EXPECT_EQ(*static_cast<std::byte*>(mapped), static_cast<std::byte>(10 * device + index_of_page));
            ::munmap(mapped, page);
        }
    }
}

TEST(linux_host, pieces_of_all_spaces_move_in_order)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    std::array<char, 16> own{"abcdefghijklmno"};
    std::array<char, 16> engine{};
    const client_id self                 = here.host.self();
    memory.records().memic[0].bytes[100] = std::byte{'X'};
    const std::array from                = {
        piece{.space   = space::process,
                             .client  = self,
                             .address = reinterpret_cast<std::uint64_t>(own.data()),
                             .length  = 5},
        piece{.space = space::memic, .client = 0, .address = 100, .length = 1},
        piece{.space   = space::process,
                             .client  = self,
                             .address = reinterpret_cast<std::uint64_t>(own.data() + 10),
                             .length  = 2},
    };
    const std::array to = {
        piece{.space   = space::engine,
              .client  = 0,
              .address = reinterpret_cast<std::uint64_t>(engine.data()),
              .length  = 7},
        piece{.space = space::memic, .client = 0, .address = 200, .length = 1},
    };
    EXPECT_EQ(here.host.move(to, from), move_status::ok);
    EXPECT_STREQ(engine.data(), "abcdeXk");
    EXPECT_EQ(memory.records().memic[0].bytes[200], std::byte{'l'});
    const std::array outside = {
        piece{.space = space::memic, .client = 0, .address = memic_bytes * max_devices - 4, .length = 8}};
    EXPECT_EQ(here.host.move(std::span(outside), std::span(from).first(1)), move_status::fault_to);
    const std::array wild = {piece{.space = space::process, .client = self, .address = 64, .length = 8}};
    EXPECT_EQ(here.host.move(std::span(to).first(1), std::span(wild)), move_status::fault_from);
}

TEST(linux_host, a_dead_process_is_not_alive_and_its_memory_gone)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    client_id& other_id = ucxl::test::shared<client_id>();
    ucxl::test::forked_process other([&memory, &other_id](ucxl::test::forked_process& self) {
        user there(memory);
        other_id = there.host.self();
        self.ready();
        self.wait();
    });
    EXPECT_TRUE(here.host.alive(other_id));
    EXPECT_TRUE(here.host.alive(here.host.self()));
    EXPECT_FALSE(here.host.alive(0));
    EXPECT_FALSE(here.host.alive(200));
    EXPECT_FALSE(here.host.alive(9999));
    other.kill();
    std::uint64_t value   = 0;
    const std::array from = {
        piece{.space = space::engine, .client = 0, .address = reinterpret_cast<std::uint64_t>(&value), .length = 8}};
    const std::array to = {piece{
        .space = space::process, .client = other_id, .address = reinterpret_cast<std::uint64_t>(&value), .length = 8}};
    EXPECT_EQ(here.host.move(to, from), move_status::gone_to);
    EXPECT_FALSE(here.host.alive(other_id)); // at once, because its memory was gone
}

TEST(linux_host, an_id_that_came_around_again_is_another_process)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    ucxl::test::forked_process other([](ucxl::test::forked_process& self) {
        self.ready();
        self.wait();
    });
    client_record& record = memory.records().clients[100];
    record.process        = other.id();
    record.start_time     = 1; // long before
    record.generation     = 1;
    record.owner.life     = life::live;
    EXPECT_FALSE(here.host.alive(100));
    record.owner.life = life::free;
}

TEST(linux_host, events_reach_the_channel_of_another_process)
{
    const fabric_memory memory = make_memory();
    struct channel_place {
        client_id client;
        int reader;
        int writer;
    };
    auto& place = ucxl::test::shared<channel_place>();
    ucxl::test::forked_process other([&](ucxl::test::forked_process& self) {
        user there(memory);
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        place = {.client = there.host.self(), .reader = ends[0], .writer = ends[1]};
        self.ready();
        pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
        EXPECT_EQ(::poll(&wait, 1, 5000), 1);
        std::uint64_t value = 0;
        EXPECT_EQ(::read(ends[0], &value, sizeof(value)), 8);
        EXPECT_EQ(value, 0x1234U);
    });
    user here(memory);
    event_route route{
        .channel = place.writer, .kind = static_cast<std::uint32_t>(event_format::completion), .value = 0x1234};
    here.host.notify(place.client, route, 0);
    EXPECT_EQ(route.sent, 1U);
    EXPECT_EQ(other.join(), 0);
    here.host.notify(place.client, route, 0); // ended: nothing happens
    EXPECT_EQ(route.sent, 1U);
    event_route nobody{};
    here.host.notify(here.host.self(), nobody, 0);
    EXPECT_EQ(nobody.sent, 0U);
}

class channel
{
public:
    channel() { EXPECT_EQ(::pipe2(_ends, O_NONBLOCK), 0); }
    ~channel()
    {
        ::close(_ends[0]);
        ::close(_ends[1]);
    }

    event_route route() const
    {
        return {.channel = _ends[1], .kind = static_cast<std::uint32_t>(event_format::completion), .value = 1};
    }

    std::uint64_t unread()
    {
        std::uint64_t count = 0;
        std::uint64_t value = 0;
        while (::read(_ends[0], &value, sizeof(value)) == sizeof(value)) {
            EXPECT_EQ(value, 1u);
            ++count;
        }
        return count;
    }

private:
    int _ends[2];
};

TEST(linux_host, a_channel_that_nobody_reads_takes_more_events_than_a_pipe_usually_holds)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    channel unread;
    event_route route = unread.route();
    for (int i = 0; i < 50'000; ++i) {
        here.host.notify(here.host.self(), route, 0);
    }
    EXPECT_EQ(route.sent, 50'000U);
    EXPECT_EQ(unread.unread(), 50'000U);
    EXPECT_EQ(memory.records().counts.lost_events, 0U);
}

TEST(linux_host, an_event_that_the_system_has_no_room_for_is_lost_and_counted_as_that)
{
    const fabric_memory memory = make_memory();
    ucxl::test::forked_process other([&](ucxl::test::forked_process&) {
        ucxl::test::give_up_privileges();
        user here(memory);
        channel full;
        event_route route   = full.route();
        std::uint32_t tried = 0;
        for (; tried < (1U << 24) && memory.records().counts.lost_events < 10; ++tried) {
            here.host.notify(here.host.self(), route, 0);
        }
        EXPECT_EQ(memory.records().counts.lost_events, 10U);
        EXPECT_EQ(route.sent, tried - 10);
        EXPECT_EQ(full.unread(), tried - 10);
    });
    EXPECT_EQ(other.join(), 0);
}

// As make_event_channel() keeps it.
int kept_writer(int pipe_end)
{
    return ::open(("/proc/self/fd/" + std::to_string(pipe_end)).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

TEST(linux_host, events_of_this_process_need_no_free_descriptor)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    channel mine;
    event_route route    = mine.route();
    route.channel        = kept_writer(route.channel);
    const int counter    = ::eventfd(0, EFD_NONBLOCK);
    const auto kind_of   = [](event_format format) { return static_cast<std::uint32_t>(format); };
    event_route counting = {.channel = counter, .kind = kind_of(event_format::devx_count)};
    ASSERT_TRUE(subscribe(counting.kind, 0));
    {
        const lowered_limit no_descriptor(RLIMIT_NOFILE, 0);
        here.host.notify(here.host.self(), route, 0);
        here.host.notify(here.host.self(), counting, 0);
    }
    EXPECT_EQ(route.sent, 1U);
    EXPECT_EQ(mine.unread(), 1U);
    EXPECT_EQ(counting.sent, 1U);
    EXPECT_EQ(memory.records().counts.lost_events, 0U);
    ::close(counter);
    ::close(route.channel);
}

TEST(linux_host, an_event_for_another_process_is_lost_without_a_free_descriptor_and_counted_as_that)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    channel theirs;
    event_route route = theirs.route();
    ucxl::test::forked_process other([&](ucxl::test::forked_process&) {
        user there(memory);
        const lowered_limit no_descriptor(RLIMIT_NOFILE, 0);
        there.host.notify(here.host.self(), route, 0);
        EXPECT_EQ(route.sent, 0U);
    });
    EXPECT_EQ(other.join(), 0);
    EXPECT_EQ(memory.records().counts.lost_events, 1U);
}

std::atomic<const linux_host*> interrupted_host = nullptr;
std::atomic<bool> seen_held                     = false;

// A handler that rings a doorbell would wait for the lock under the thread that it interrupted.
TEST(linux_host, a_thread_counts_as_holder_from_before_it_has_the_lock)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    struct sigaction look   = {};
    struct sigaction before = {};
    look.sa_handler         = [](int) {
        if (interrupted_host.load()->held_here()) {
            seen_held = true;
        }
    };
    ::sigaction(SIGUSR1, &look, &before);
    interrupted_host = &here.host;
    (void)memory.lock().lock();
    std::jthread locks([&here] {
        (void)here.host.lock();
        here.host.unlock();
    });
    for (int tries = 0; tries < 100 && !seen_held; ++tries) {
        ::pthread_kill(locks.native_handle(), SIGUSR1);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(seen_held);
    memory.lock().unlock();
    locks.join();
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(linux_host, a_file_in_place_of_a_channel_is_left_alone)
{
    const fabric_memory memory = make_memory();
    user here(memory);
    const int file = ::memfd_create("no channel", 0);
    event_route wrong{.channel = file, .kind = static_cast<std::uint32_t>(event_format::completion), .value = 1};
    here.host.notify(here.host.self(), wrong, 0);
    EXPECT_EQ(wrong.sent, 0U);
    EXPECT_EQ(::lseek(file, 0, SEEK_END), 0);
    ::close(file);
}

struct call_counter {
    std::atomic<int> count = 0;
    std::counting_semaphore<> calls{0};
};

void count_call(void* argument)
{
    auto* const called = static_cast<call_counter*>(argument);
    ++called->count;
    called->calls.release();
}

TEST(wake_timer, calls_at_the_earliest_time_once_and_not_after_its_end)
{
    using namespace std::chrono_literals;
    call_counter counter;
    wake_timer timer(count_call, &counter);
    const std::uint64_t start = monotonic_ns();
    timer.wake_at(start + 5'000'000'000);
    timer.wake_at(start + 2'000'000);
    timer.wake_at(start + 3'000'000'000);
    ASSERT_TRUE(counter.calls.try_acquire_for(4s));
    EXPECT_GE(monotonic_ns() - start, 2'000'000U);
    EXPECT_EQ(counter.count.load(), 1);
    timer.wake_at(0);
    ASSERT_TRUE(counter.calls.try_acquire_for(4s));
    EXPECT_EQ(counter.count.load(), 2);
    timer.wake_at(monotonic_ns() + 1'000'000);
    timer.stop();
    const int last = counter.count.load();
    if (last == 3) {
        counter.calls.acquire();
    }
    EXPECT_FALSE(counter.calls.try_acquire_for(5ms)); // nothing announces that nothing comes: its time has to pass
    EXPECT_EQ(counter.count.load(), last);
}

TEST(wake_timer, makes_its_thread_at_a_later_request_when_it_could_not)
{
    ucxl::test::forked_process other([](ucxl::test::forked_process&) {
        (void)::setuid(65534); // the limit is not for the user root
        ucxl::test::give_up_privileges();
        call_counter counter;
        wake_timer timer(count_call, &counter);
        {
            const lowered_limit no_thread(RLIMIT_NPROC, 0);
            timer.wake_at(0);
        }
        EXPECT_EQ(counter.count.load(), 0);
        timer.wake_at(monotonic_ns() + 60'000'000'000);
        EXPECT_TRUE(counter.calls.try_acquire_for(std::chrono::seconds(4)));
    });
    EXPECT_EQ(other.join(), 0);
}

} // namespace
} // namespace ucxl::softhca
