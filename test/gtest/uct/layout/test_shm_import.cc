// Remote keys of lay_shm at a peer: which windows are mapped, for how long, and what is refused.
#include "abi/ucx.h"
#include "lay_shm_fixture.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/random.h"
#include "support/wait_until.h"
#include "ucs/layout/build.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/shm/lay_shm.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

TEST_F(lay_shm, windows_are_mapped_once_and_kept_for_the_next_key)
{
    shared_window target(*words_with_gaps());
    const auto key = export_window(target.address());
    EXPECT_EQ(key, export_window(target.address() + 100)) << "one record for all keys of a window";
    const imported_window* first;
    {
        const imported one(key), other(key);
        first = one.get();
        EXPECT_EQ(one.get(), other.get());
        EXPECT_EQ(count_imports().windows, 1u);
        EXPECT_EQ(count_imports().idle, 0u);
        EXPECT_EQ(count_imports().mapped_bytes, target.memory().length());
    }
    EXPECT_EQ(count_imports().idle, 1u);
    const imported again(key);
    EXPECT_EQ(again.get(), first);
}

// A number that is likely to be in a record of another window could be taken for that of a window that ended.
TEST_F(lay_shm, numbers_of_windows_begin_elsewhere_in_each_process)
{
    const shared_window own(*words_with_gaps());
    static_cast<void>(export_window(own.address()));
    auto& generations = shared<std::array<std::uint64_t, 2>>();
    for (auto& generation : generations) {
        EXPECT_TRUE(holds_in_child([&] {
            const shared_window target(*words_with_gaps());
            generation = export_window(target.address()).generation;
            return generation > UINT32_MAX;
        }));
    }
    EXPECT_NE(generations[0], generations[1]);
}

// As in a program that closes all descriptors, also those that it did not open.
TEST_F(lay_shm, further_windows_of_a_peer_are_mapped_after_its_descriptors_were_closed)
{
    auto& keys = shared<std::array<shm_key, 2>>();
    const forked_process owner([&](forked_process& self) {
        const shared_window first(*words_with_gaps()), second(*words_with_gaps());
        keys = {export_window(first.address()), export_window(second.address())};
        self.ready();
        self.wait();
    });
    const auto others = open_descriptors();
    const imported first(keys[0]);
    ASSERT_TRUE(first);
    close_all_but(others);
    EXPECT_TRUE(imported(keys[1]));
    EXPECT_TRUE(is_owner_alive(*first.get()));
    EXPECT_FALSE(is_owner_gone(*first.get()));
}

TEST_F(lay_shm, keys_do_not_outlive_their_window)
{
    auto target    = std::make_unique<shared_window>(*words_with_gaps());
    const auto key = export_window(target->address());
    const imported before(key);
    ASSERT_TRUE(before);
    target.reset();
    EXPECT_FALSE(imported(key)) << "while it is still mapped";
    const shared_window next(*words_with_gaps());
    EXPECT_FALSE(imported(key)) << "with another one in the place of its record";
    EXPECT_TRUE(imported(export_window(next.address())));
}

// Even while its memory is still mapped here.
TEST_F(lay_shm, windows_that_their_owner_released_are_neither_written_nor_read)
{
    logs().allow("lay_shm"); // a limited number per second
    auto target       = std::make_unique<shared_window>(*words_with_gaps());
    const auto remote = target->remote();
    const imported key(export_window(target->address()));
    target.reset();
    std::vector<std::byte> got(100, std::byte{7});
    const auto iov = iov_of(got.data(), got.size());
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, remote, key.rkey()));
    EXPECT_EQ(got, std::vector<std::byte>(100, std::byte{7}));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey(), nullptr));
    const auto before = count_failures().silent[std::to_underlying(failure_kind::remote_atomic)];
    EXPECT_EQ(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, remote, key.rkey()))
        << "UCP would end the process";
    EXPECT_EQ(before + 1, count_failures().silent[std::to_underlying(failure_kind::remote_atomic)]);
}

TEST_F(lay_shm, idle_windows_are_limited_and_go_when_they_are_gone)
{
    std::vector<std::unique_ptr<shared_window>> targets;
    for (int i = 0; i < 100; ++i) {
        targets.push_back(std::make_unique<shared_window>(*words_with_gaps()));
        ASSERT_TRUE(imported(export_window(targets.back()->address())));
    }
    EXPECT_EQ(count_imports().idle, 64u);
    targets.clear();
    const shared_window last(*words_with_gaps());
    ASSERT_TRUE(imported(export_window(last.address())));
    EXPECT_EQ(count_imports().idle, 1u);
}

// Windows over regions of this process, as the owner has them.
class windows_over_regions : public lay_shm
{
protected:
    static region_ptr new_region(std::uint64_t length)
    {
        auto made = must(region::allocate(length, {.huge_pages = huge_pages_option::never}));
        EXPECT_TRUE(region_table::instance().add(made).has_value());
        return made;
    }
    static window* window_over(std::vector<std::byte*> bases, std::uint64_t length)
    {
        std::vector<iov_part> parts;
        for (std::uint32_t source = 0; source < bases.size(); ++source) {
            parts.push_back({.source = source, .offset = 0, .item = {.length = length}});
        }
        const auto plan = must(pack_plan::compile(must(make_iov(parts))));
        return must(window_registry::instance().create({plan, std::move(bases)}));
    }
    // Fills the region and returns what a peer gets through a key of the window.
    std::vector<std::byte> got(const imported& key, const window& target, std::uint64_t length)
    {
        std::vector<std::byte> bytes(length);
        const auto iov = iov_of(bytes.data(), bytes.size());
        EXPECT_EQ(UCS_OK, get_status(ep, iov, reinterpret_cast<std::uintptr_t>(target.address()), key.rkey()));
        return bytes;
    }
};

TEST_F(windows_over_regions, share_one_mapping_of_each_region)
{
    const auto first = new_region(1 << 20), second = new_region(1 << 18);
    window* const one  = window_over({first->start()}, 5000);
    window* const two  = window_over({first->start() + 4096, second->start()}, 100);
    window* const same = window_over({second->start() + 100000}, 7);
    std::memset(first->start() + 4096, 1, 100);
    std::memset(second->start(), 2, 100);
    {
        const imported key_of_one(export_window(one->address())), key_of_two(export_window(two->address())),
            key_of_same(export_window(same->address()));
        ASSERT_TRUE(key_of_one && key_of_two && key_of_same);
        EXPECT_EQ(count_imports().windows, 3u);
        EXPECT_EQ(count_imports().regions, 2u);
        EXPECT_EQ(count_imports().mapped_bytes, first->length() + second->length());
        std::vector<std::byte> expected(100, std::byte{1});
        expected.resize(200, std::byte{2});
        EXPECT_EQ(got(key_of_two, *two, 200), expected);
    }
    for (window* const each : {one, two, same}) {
        window_registry::instance().destroy(each);
    }
    drop_idle_imports();
    EXPECT_EQ(count_imports().mapped_bytes, 0u);
}

TEST_F(windows_over_regions, are_followed_when_their_owner_binds_them_anew)
{
    const auto first = new_region(1 << 20), second = new_region(1 << 18);
    std::memset(first->start(), 1, 100);
    std::memset(first->start() + 5000, 2, 100);
    std::memset(second->start(), 3, 100);
    window* const target = window_over({first->start()}, 100);
    {
        const imported key(export_window(target->address()));
        ASSERT_TRUE(key);
        const auto shown_after_rebind = [&](std::byte* base) {
            const auto plan = target->binding().plan;
            EXPECT_TRUE(window_registry::instance().rebind(*target, {plan, {base}}).has_value());
            update_exported_window(target->address());
            return got(key, *target, 100);
        };
        EXPECT_EQ(got(key, *target, 100), std::vector<std::byte>(100, std::byte{1}));
        EXPECT_EQ(shown_after_rebind(first->start() + 5000), std::vector<std::byte>(100, std::byte{2}));
        EXPECT_EQ(shown_after_rebind(second->start()), std::vector<std::byte>(100, std::byte{3}));
        EXPECT_EQ(count_imports().mapped_bytes, second->length()) << "nobody needs the first one any more";
        EXPECT_EQ(shown_after_rebind(first->start()), std::vector<std::byte>(100, std::byte{1}));
        const std::uint64_t value = 5;
        EXPECT_EQ(UCS_OK, uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, value,
                                               reinterpret_cast<std::uintptr_t>(target->address()), key.rkey()));
        EXPECT_EQ(first->start()[0], std::byte{6});
    }
    window_registry::instance().destroy(target);
}

TEST_F(windows_over_regions, are_followed_as_soon_as_there_are_descriptors)
{
    logs().allow("are of a remote window whose memory cannot be mapped at the moment");
    const auto first = new_region(1 << 20), second = new_region(1 << 18);
    std::memset(second->start(), 3, 100);
    window* const target = window_over({first->start()}, 100);
    {
        const imported key(export_window(target->address()));
        ASSERT_TRUE(key);
        const auto plan = target->binding().plan;
        ASSERT_TRUE(window_registry::instance().rebind(*target, {plan, {second->start()}}).has_value());
        update_exported_window(target->address());
        rlimit before{};
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit none{3, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        std::vector<std::byte> bytes(100);
        const auto iov = iov_of(bytes.data(), bytes.size());
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  get_status(ep, iov, reinterpret_cast<std::uintptr_t>(target->address()), key.rkey()));
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT_EQ(got(key, *target, 100), std::vector<std::byte>(100, std::byte{3}));
    }
    window_registry::instance().destroy(target);
}

TEST_F(windows_over_regions, lose_their_keys_when_bound_to_other_memory)
{
    logs().allow("lay_shm");
    const auto first = new_region(1 << 20);
    std::vector<std::byte> elsewhere(100);
    window* const target = window_over({first->start()}, 100);
    {
        const imported key(export_window(target->address()));
        ASSERT_TRUE(key);
        const auto plan = target->binding().plan;
        ASSERT_TRUE(window_registry::instance().rebind(*target, {plan, {elsewhere.data()}}).has_value());
        update_exported_window(target->address());
        EXPECT_EQ(export_window(target->address()).access, shm_access::none);
        std::vector<std::byte> bytes(100);
        const auto iov = iov_of(bytes.data(), bytes.size());
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  get_status(ep, iov, reinterpret_cast<std::uintptr_t>(target->address()), key.rkey()));
    }
    window_registry::instance().destroy(target);
}

TEST_F(windows_over_regions, get_no_keys_once_a_region_is_withdrawn)
{
    const auto first     = new_region(1 << 20);
    window* const target = window_over({first->start()}, 100);
    EXPECT_EQ(export_window(target->address()).access, shm_access::mapping);
    first->withdraw();
    EXPECT_EQ(export_window(target->address()).access, shm_access::none);
    window_registry::instance().destroy(target);
}

// A file of a new tmpfs, which has the first inode of all files there. Nothing if the user may not have one.
owned_fd first_file_of_new_file_system()
{
    const owned_fd made(static_cast<int>(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
    if (!made || syscall(SYS_fsconfig, made.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
        return {};
    }
    const owned_fd folder(static_cast<int>(syscall(SYS_fsmount, made.get(), FSMOUNT_CLOEXEC, 0)));
    return owned_fd(openat(folder.get(), "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

// The descriptors are the same, too: those of the first file are closed.
TEST_F(windows_over_regions, in_files_with_the_same_inode_are_told_apart)
{
    constexpr std::uint64_t length = 1 << 16;
    std::vector<std::unique_ptr<imported>> keys; // so that the first file stays mapped
    for (const auto value : {std::byte{1}, std::byte{2}}) {
        const owned_fd file = first_file_of_new_file_system();
        if (!file) {
            GTEST_SKIP() << "only root may have a file system";
        }
        ASSERT_EQ(0, ftruncate(file.get(), length));
        const auto shown = must(owned_mapping::map(length, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
        std::memset(shown.start(), std::to_integer<int>(value), length);
        const auto memory = must(region::share(shown.start(), length, file.get(), 0));
        ASSERT_TRUE(region_table::instance().add(memory).has_value());
        window* const target = window_over({shown.start()}, length);
        keys.push_back(std::make_unique<imported>(export_window(target->address())));
        ASSERT_TRUE(*keys.back());
        EXPECT_EQ(got(*keys.back(), *target, length), std::vector<std::byte>(length, value));
        window_registry::instance().destroy(target);
    }
}

// Memory in a file that its owner, or anybody else, may cut off.
class windows_over_unsealed_memory : public windows_over_regions
{
protected:
    static constexpr std::uint64_t length = 1 << 20;

    void SetUp() override
    {
        windows_over_regions::SetUp();
        fd    = memfd_create("unsealed", MFD_CLOEXEC); // without MFD_ALLOW_SEALING: as a file of shm_open()
        start = static_cast<std::byte*>(
            ftruncate(fd, length) == 0 ? mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED);
        ASSERT_NE(static_cast<void*>(start), MAP_FAILED);
        std::memset(start, 1, length);
        memory = must(region::share(start, length, fd, 0));
        ASSERT_TRUE(region_table::instance().add(memory).has_value());
        target = window_over({start}, length);
        remote = reinterpret_cast<std::uintptr_t>(target->address());
    }
    void TearDown() override
    {
        window_registry::instance().destroy(target);
        memory.reset();
        munmap(start, length);
        close(fd);
        windows_over_regions::TearDown();
    }

    int fd           = -1;
    std::byte* start = nullptr;
    region_ptr memory;
    window* target       = nullptr;
    std::uint64_t remote = 0;
};

TEST_F(windows_over_unsealed_memory, are_mapped_as_all_others)
{
    const imported key(export_window(target->address()));
    ASSERT_TRUE(key);
    EXPECT_EQ(got(key, *target, length), std::vector<std::byte>(length, std::byte{1}));
}

TEST_F(windows_over_unsealed_memory, fail_at_the_initiator_when_they_are_cut_off)
{
    logs().allow("lay_shm");
    const imported key(export_window(target->address()));
    ASSERT_TRUE(key);
    std::vector<std::byte> bytes(length, std::byte{7});
    const auto iov = iov_of(bytes.data(), bytes.size());
    ASSERT_EQ(0, ftruncate(fd, length / 2));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, remote, key.rkey()));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey(), nullptr));
    const auto word = iov_of(bytes.data(), 8);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, word, remote, key.rkey())) << "also in what is left of the file";
    EXPECT_EQ(start[0], std::byte{1}) << "nothing was written";
    std::uint64_t fetched = 9;
    uct_completion_t completion{.func = [](uct_completion_t*) {}, .count = 1, .status = UCS_OK};
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &fetched, remote, key.rkey(), &completion));
    EXPECT_EQ(completion.status, UCS_ERR_INVALID_ADDR);
}

// Its owner made the file as long as before and has another window there.
TEST_F(windows_over_unsealed_memory, are_mapped_anew_after_a_cut)
{
    logs().allow("lay_shm");
    const imported key(export_window(target->address()));
    ASSERT_TRUE(key);
    std::vector<std::byte> bytes(length);
    const auto iov = iov_of(bytes.data(), bytes.size());
    ASSERT_EQ(0, ftruncate(fd, 0));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, remote, key.rkey()));
    ASSERT_EQ(0, ftruncate(fd, length));
    std::memset(start, 2, length);
    window* const next = window_over({start}, length);
    {
        const imported key_of_next(export_window(next->address()));
        ASSERT_TRUE(key_of_next);
        EXPECT_EQ(got(key_of_next, *next, length), std::vector<std::byte>(length, std::byte{2}));
    }
    window_registry::instance().destroy(next);
}

TEST_F(windows_over_unsealed_memory, fail_atomics_that_meet_the_cut)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does atomic operations under a lock that the handler of the fault needs";
#endif
    logs().allow("lay_shm");
    const imported key(export_window(target->address()));
    ASSERT_TRUE(key);
    ASSERT_EQ(0, ftruncate(fd, 0));
    std::uint64_t fetched = 9;
    uct_completion_t completion{.func = [](uct_completion_t*) {}, .count = 1, .status = UCS_OK};
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &fetched, remote, key.rkey(), &completion));
    EXPECT_EQ(completion.status, UCS_ERR_INVALID_ADDR);
}

// A thread that blocks the signal is ended by it.
TEST_F(windows_over_unsealed_memory, that_are_bound_anew_are_guarded_in_the_thread_that_follows)
{
    logs().allow("lay_shm");
    const auto first    = new_region(length);
    window* const other = window_over({first->start()}, length);
    {
        const imported key_of_target(export_window(target->address())), key(export_window(other->address()));
        ASSERT_TRUE(key_of_target && key);
        const auto plan = other->binding().plan;
        ASSERT_TRUE(window_registry::instance().rebind(*other, {plan, {start}}).has_value());
        update_exported_window(other->address());
        ASSERT_EQ(0, ftruncate(fd, 0));
        sigset_t bus_error;
        sigemptyset(&bus_error);
        sigaddset(&bus_error, SIGBUS);
        ASSERT_EQ(0, pthread_sigmask(SIG_BLOCK, &bus_error, nullptr));
        std::vector<std::byte> bytes(length);
        const auto iov = iov_of(bytes.data(), bytes.size());
        EXPECT_EQ(UCS_ERR_INVALID_ADDR,
                  get_status(ep, iov, reinterpret_cast<std::uintptr_t>(other->address()), key.rkey()));
        pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr);
    }
    window_registry::instance().destroy(other);
}

TEST_F(windows_over_unsealed_memory, are_not_mapped_if_the_file_is_shorter_already)
{
    const auto key = export_window(target->address());
    ASSERT_EQ(0, ftruncate(fd, length / 2));
    EXPECT_FALSE(imported(key));
}

// Behind an older window that lives.
TEST_F(windows_over_regions, are_unmapped_soon_after_their_owner_released_them)
{
    const auto kept   = new_region(1 << 20);
    auto freed        = new_region(1 << 18);
    window *const one = window_over({kept->start()}, 100), *const two = window_over({freed->start()}, 100);
    {
        const imported key_of_one(export_window(one->address()));
    }
    {
        const imported key_of_two(export_window(two->address()));
    }
    EXPECT_EQ(count_imports().idle, 2u);
    window_registry::instance().destroy(two);
    freed.reset();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (count_imports().mapped_bytes > kept->length() && std::chrono::steady_clock::now() < deadline) {
        const imported again(export_window(one->address())); // as each message does
    }
    EXPECT_EQ(count_imports().mapped_bytes, kept->length());
    window_registry::instance().destroy(one);
}

// Changes each field of a good key; no result maps anything.
// Whatever else runs on this processor.
TEST_F(lay_shm, an_owner_that_is_killed_while_it_binds_a_window_anew_does_not_stall_its_peers)
{
    struct what_is_told {
        shm_key key;
        std::atomic<bool> is_odd;
    };
    auto& told = shared<what_is_told>();
    forked_process owner([&](forked_process& self) {
        const shared_window target(*words_with_gaps());
        told.key = export_window(target.address());
        self.ready();
        self.wait();
        const std::uint64_t odd = 1; // what update_exported_window() writes first
        const auto at           = told.key.record_offset + offsetof(shm_record_header, binding);
        EXPECT_EQ(pwrite(told.key.records_fd, &odd, sizeof(odd), static_cast<off_t>(at)), 8);
        told.is_odd = true;
        self.wait();
    });
    const imported key(told.key);
    ASSERT_TRUE(key);
    owner.go_on();
    ASSERT_TRUE(wait_until([&] { return told.is_odd.load(); }));
    owner.kill();
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    {
        const forked_process busy([](forked_process& self) {
            self.ready();
            while (true) {
                getppid();
            }
        });
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_FALSE(is_usable_now(*key.get()));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST_F(lay_shm, keys_with_any_other_content_are_refused)
{
    const shared_window target(*words_with_gaps());
    const auto key = export_window(target.address());
    ASSERT_TRUE(imported(key));
    drop_idle_imports();
    // Unpacking compares the other fields (see below), except `address`, which only the owner uses.
    const std::size_t fields[] = {offsetof(shm_key, magic),         offsetof(shm_key, owner.start_time),
                                  offsetof(shm_key, length),        offsetof(shm_key, generation),
                                  offsetof(shm_key, records_inode), offsetof(shm_key, record_offset),
                                  offsetof(shm_key, record_length), offsetof(shm_key, records_fd)};
    test::random from(run_seed());
    for (const std::size_t field : fields) {
        for (int turn = 0; turn < 100; ++turn) {
            auto wrong = key;
            auto* byte = reinterpret_cast<unsigned char*>(&wrong) + field + from.below(4);
            *byte      = static_cast<unsigned char>(*byte ^ (1 + from.below(255)));
            EXPECT_FALSE(imported(wrong)) << "field at " << field << " seed " << run_seed();
        }
    }
    auto wrong      = key;
    wrong.owner.pid = 0x7fffffff;
    EXPECT_FALSE(imported(wrong));
    wrong        = key;
    wrong.access = shm_access::none;
    EXPECT_FALSE(imported(wrong));
    EXPECT_EQ(count_imports().windows, 0u);
}

// A key that names existing files, but not of a kind that a key may name.
TEST_F(lay_shm, files_that_are_no_shared_memory_of_ours_are_refused)
{
    const auto open_as = [](int fd) {
        struct stat status{};
        EXPECT_EQ(0, fstat(fd, &status));
        return peer_file::open(getpid(), fd, status.st_ino, O_RDWR);
    };
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    EXPECT_FALSE(open_as(ends[0]).has_value()) << "a pipe, which would wait";
    EXPECT_FALSE(open_as(open("/dev/zero", O_RDWR | O_CLOEXEC)).has_value());
    EXPECT_FALSE(open_as(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)).has_value());
    close(ends[0]);
    close(ends[1]);
    const int plain = memfd_create("plain", MFD_CLOEXEC);
    ASSERT_EQ(0, ftruncate(plain, 4096));
    const auto unsealed = open_as(plain);
    ASSERT_TRUE(unsealed.has_value());
    struct stat status{};
    ASSERT_EQ(0, fstat(plain, &status));
    EXPECT_TRUE(peer_file::open(getpid(), plain, status.st_ino, O_RDWR, status.st_dev).has_value());
    EXPECT_FALSE(peer_file::open(getpid(), plain, status.st_ino, O_RDWR, status.st_dev + 1).has_value())
        << "a file of another file system";
    EXPECT_FALSE(map_peer_memory(*unsealed, 0, 4096).has_value()) << "it could become shorter";
    const int sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(0, ftruncate(sealed, 4096));
    ASSERT_EQ(0, fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK));
    const auto right = open_as(sealed);
    ASSERT_TRUE(right.has_value());
    EXPECT_FALSE(map_peer_memory(*right, 0, 4097).has_value());
    EXPECT_FALSE(map_peer_memory(*right, 4096, 1).has_value());
    EXPECT_TRUE(map_peer_memory(*right, 0, 4096).has_value());
    close(sealed);
    close(plain);
}

class lay_shm_domain : public lay_shm
{
protected:
    ucs_status_t unpack(const shm_key& key)
    {
        uct_rkey_bundle_t bundle;
        const auto status = uct_rkey_unpack(&lay_shm_component.super, &key, &bundle);
        if (status == UCS_OK) {
            uct_rkey_release(&lay_shm_component.super, &bundle);
        }
        return status;
    }

    shm_key pack(uct_mem_h memh, void* address)
    {
        shm_key key{};
        EXPECT_EQ(UCS_OK, md->ops->mkey_pack(md, memh, address, 1, nullptr, &key));
        return key;
    }
};

TEST_F(lay_shm_domain, memory_of_the_application_gives_keys_that_are_unreachable)
{
    std::vector<std::byte> memory(1000);
    auto& registry = window_registry::instance();
    window* view =
        must(registry.create({must(pack_plan::compile(must(make_contig(1, {.length = 1000})))), {memory.data()}}));
    uct_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, uct_md_mem_reg(md, view->address(), 1000, 0, &memh));
    const auto key = pack(memh, view->address());
    EXPECT_EQ(key.access, shm_access::none);
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(key));
    std::byte* const stale = view->address();
    registry.destroy(view);
    EXPECT_EQ(pack(memh, stale).access, shm_access::none);
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(md, memh));
}

TEST_F(lay_shm_domain, keys_of_others_are_unreachable)
{
    const shared_window target(*words_with_gaps());
    auto key = export_window(target.address());
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(key)) << "of this process";
    ++key.owner.pid;
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(key)) << "of a process that is not there, or another one";
    key.owner.pid = 1;
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(key));
    shm_key noise;
    test::random from(run_seed());
    for (int turn = 0; turn < 1000; ++turn) {
        auto* bytes = reinterpret_cast<unsigned char*>(&noise);
        for (std::size_t i = 0; i < sizeof(noise); ++i) {
            bytes[i] = static_cast<unsigned char>(from.next());
        }
        noise.magic = from.one_in(2) ? shm_key::form : noise.magic;
        EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(noise));
    }
}

TEST_F(lay_shm_domain, allocates_windows_and_host_memory)
{
    uct_md_attr_t attr;
    ASSERT_EQ(UCS_OK, uct_md_query(md, &attr));
    EXPECT_EQ(attr.rkey_packed_size, sizeof(shm_key));
    for (const auto type : {UCS_MEMORY_TYPE_RDMA, UCS_MEMORY_TYPE_HOST}) {
        uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
        uct_mem_alloc_params_t params;
        params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS | UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE;
        params.mds        = {&md, 1};
        params.mem_type   = type;
        uct_allocated_memory_t memory;
        ASSERT_EQ(UCS_OK, uct_mem_alloc(10000, &method, 1, &params, &memory));
        std::memset(memory.address, 7, 10000);
        EXPECT_EQ(window_registry::instance().in_arena(memory.address), type == UCS_MEMORY_TYPE_RDMA);
        EXPECT_EQ(pack(memory.memh, memory.address).access,
                  type == UCS_MEMORY_TYPE_RDMA ? shm_access::mapping : shm_access::none);
        EXPECT_EQ(UCS_OK, uct_mem_free(&memory));
        // UCP asks this way for host memory for staging buffers; this domain provides none.
        params.field_mask |= UCT_MEM_ALLOC_PARAM_FIELD_FLAGS;
        params.flags          = UCT_MD_MEM_FLAG_HIDE_ERRORS;
        const auto status     = uct_mem_alloc(1, &method, 1, &params, &memory);
        const bool is_refused = type == UCS_MEMORY_TYPE_HOST && ucxl::abi::attached()->hides_alloc_errors;
        EXPECT_EQ(status, is_refused ? UCS_ERR_UNSUPPORTED : UCS_OK);
        if (status == UCS_OK) {
            EXPECT_EQ(UCS_OK, uct_mem_free(&memory));
        }
    }
}

TEST_F(lay_shm_domain, reaches_other_processes_of_its_user_and_not_itself)
{
    process_identity address;
    ASSERT_EQ(UCS_OK, uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t*>(&address)));
    const auto reaches = [&] {
        return uct_iface_is_reachable(iface, nullptr, reinterpret_cast<const uct_iface_addr_t*>(&address)) != 0;
    };
    EXPECT_FALSE(reaches());
    ++address.pid;
    EXPECT_TRUE(reaches());
    ++address.user;
    EXPECT_FALSE(reaches());
    EXPECT_FALSE(uct_iface_is_reachable(iface, nullptr, nullptr));
}

} // namespace
