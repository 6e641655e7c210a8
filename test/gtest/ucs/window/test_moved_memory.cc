// Private memory that moves into a file at the same addresses, and memory that is shared by its address alone.
#include "map_failure.h"
#include "support/alloc_failure.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/unmap_events.h"
#include "sys/mapped_ranges.h"
#include "sys/memory_file.h"
#include "sys/pages.h"
#include "ucs/window/moved_memory.h"
#include "ucs/window/region.h"
#include "ucs/window/shown_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <format>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr std::uint64_t length = 256 << 10;

// Private pages of the test, filled with ones.
class private_pages
{
public:
    explicit private_pages(std::uint64_t bytes = length, int protection = PROT_READ | PROT_WRITE)
        : _memory(must(owned_mapping::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        std::memset(start(), 1, bytes);
        EXPECT_EQ(0, mprotect(start(), bytes, protection));
    }
    std::byte* start() const { return _memory.start(); }

private:
    owned_mapping _memory;
};

result<region_ptr> moved(std::byte* start, std::uint64_t bytes = length)
{
    return region::move(start, bytes, huge_pages_option::possible);
}

std::byte byte_in_file(const region& of, std::uint64_t at)
{
    std::byte seen{};
    EXPECT_EQ(1, pread(of.fd(), &seen, 1, static_cast<off_t>(of.file_offset() + at)));
    return seen;
}

// As most of a large static array may be.
TEST(moved_memory, has_no_pages_where_it_was_never_touched)
{
    const std::uint64_t page  = page_length();
    const std::uint64_t bytes = 2000 * page; // more than is asked for at once
    const owned_mapping memory =
        must(owned_mapping::map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory.start(), bytes, MADV_NOHUGEPAGE); // else a touch makes more pages than one
    for (const std::uint64_t touched : {std::uint64_t{0}, std::uint64_t{511}, std::uint64_t{512}, bytes / page - 1}) {
        memory.start()[touched * page + 7] = std::byte{5};
    }
    const region_ptr made = must(region::move(memory.start(), bytes, huge_pages_option::never));
    struct stat status{};
    ASSERT_EQ(0, fstat(made->fd(), &status));
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_blocks) * 512, 4 * page);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        const std::uint64_t number = i / page;
        const bool is_set          = i % page == 7 && (number == 0 || number == 511 || number == 512 || number == 1999);
        ASSERT_EQ(memory.start()[i], is_set ? std::byte{5} : std::byte{0}) << i;
    }
}

TEST(moved_memory, holds_what_it_held_at_the_same_addresses)
{
    const private_pages pages;
    const auto made = must(moved(pages.start() + 100, 5000));
    EXPECT_EQ(made->start(), pages.start());
    EXPECT_EQ(made->length(), round_to_pages(5100));
    EXPECT_EQ(made->origin(), region_origin::moved);
    EXPECT_EQ(pages.start()[5000], std::byte{1});
    pages.start()[5000] = std::byte{2};
    EXPECT_EQ(byte_in_file(*made, 5000), std::byte{2});
    const std::byte sent{3};
    ASSERT_EQ(1, pwrite(made->fd(), &sent, 1, static_cast<off_t>(made->file_offset())));
    EXPECT_EQ(pages.start()[0], sent) << "what a peer writes";
    EXPECT_NE(0, ftruncate(made->fd(), 0));
}

TEST(moved_memory, is_private_again_after_it_was_withdrawn)
{
    const private_pages pages;
    auto made        = must(moved(pages.start()));
    pages.start()[7] = std::byte{2};
    made->withdraw();
    EXPECT_EQ(pages.start()[7], std::byte{2});
    pages.start()[7] = std::byte{3};
    EXPECT_EQ(byte_in_file(*made, 7), std::byte{2});
    munmap(pages.start() + length / 2, page_length());
    made.reset();
    EXPECT_FALSE(is_readable(pages.start() + length / 2, 1)) << "nothing is mapped there a second time";
}

// As in a program that closes all descriptors, also those that it did not open.
TEST(moved_memory, shows_no_other_file_that_has_the_descriptor_of_its_own)
{
    const private_pages memory;
    auto made        = must(moved(memory.start()));
    const int number = made->fd();
    const auto zeros = must(make_memory_file("other", made->file_offset() + length, 0));
    ASSERT_EQ(dup3(zeros.get(), number, O_CLOEXEC), number);
    made.reset();
    EXPECT_EQ(memory.start()[0], std::byte{1});
    EXPECT_EQ(close(number), 0) << "it stays open";
}

TEST(moved_memory, can_be_a_block_of_the_heap_or_a_static_array)
{
    static std::byte array[3 * 65536];
    array[0] = std::byte{5};
    {
        const auto made = must(moved(array, sizeof(array)));
        EXPECT_EQ(array[0], std::byte{5});
        array[1] = std::byte{6};
        EXPECT_EQ(byte_in_file(*made, static_cast<std::uint64_t>(&array[1] - made->start())), std::byte{6});
    }
    EXPECT_EQ(array[1], std::byte{6});
    auto* const block = static_cast<std::byte*>(std::malloc(1 << 20));
    std::memset(block, 4, 1 << 20);
    {
        const auto made = must(moved(block, 1 << 20));
        EXPECT_EQ(block[(1 << 20) - 1], std::byte{4});
    }
    std::free(block);
}

TEST(moved_memory, is_forgotten_by_ucx_at_its_old_place)
{
    const private_pages pages;
    const unmap_events events(pages.start(), length);
    const auto made = must(moved(pages.start()));
    EXPECT_GE(events.count(), 1u);
}

std::string reason(const result<region_ptr>& refused)
{
    EXPECT_FALSE(refused.has_value());
    return refused ? std::string() : refused.error().message;
}

TEST(moved_memory, is_refused_where_it_cannot_be_right)
{
    const auto says = [](std::byte* start, std::uint64_t bytes, const char* text) {
        EXPECT_NE(reason(moved(start, bytes)).find(text), std::string::npos)
            << text << ", not " << reason(moved(start, bytes));
    };
    const private_pages locked, holed, read_only(length, PROT_READ),
        runnable(length, PROT_READ | PROT_WRITE | PROT_EXEC), not_inherited, erased;
    // Not by the C library: a sanitizer locks nothing.
    ASSERT_EQ(0, syscall(SYS_mlock, locked.start() + page_length(), page_length()));
    says(locked.start(), length, "locked");
    ASSERT_EQ(0, munmap(holed.start() + page_length(), page_length()));
    says(holed.start(), length, "nothing is mapped");
    EXPECT_EQ(holed.start()[0], std::byte{1}) << "nothing was changed";
    says(read_only.start(), length, "r--p");
    says(runnable.start(), length, "rwxp");
    ASSERT_EQ(0, madvise(not_inherited.start(), length, MADV_DONTFORK));
    says(not_inherited.start(), length, "MADV_DONTFORK");
    ASSERT_EQ(0, madvise(erased.start(), length, MADV_WIPEONFORK));
    says(erased.start(), length, "MADV_WIPEONFORK");
    says(static_cast<std::byte*>(__builtin_frame_address(0)), 1, "stack");
    std::thread([&] { says(static_cast<std::byte*>(__builtin_frame_address(0)), 1, "stack"); }).join();
    const auto shared = must(region::allocate(length, {}));
    says(shared->start(), length, "shared already");
    says(reinterpret_cast<std::byte*>(16), length, "nothing is mapped");
    says(reinterpret_cast<std::byte*>(UINTPTR_MAX - 100), length, "no memory");
}

// What the child writes stays with it, and what it has written, too.
TEST(moved_memory, belongs_to_each_process_after_a_fork)
{
    const private_pages pages;
    const auto made = must(moved(pages.start()));
    ASSERT_TRUE(region_table::instance().add(made).has_value());
    EXPECT_TRUE(holds_in_child([&] {
        const bool is_same = pages.start()[9] == std::byte{1};
        pages.start()[9]   = std::byte{8};
        return is_same && region_table::instance().find(pages.start(), 1) == nullptr;
    }));
    EXPECT_EQ(pages.start()[9], std::byte{1});
    EXPECT_EQ(region_table::instance().find(pages.start(), 1), made);
    pages.start()[9] = std::byte{2};
    EXPECT_EQ(byte_in_file(*made, 9), std::byte{2}) << "the parent still shares";
}

bool is_private(const std::byte* start, std::uint64_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    return std::ranges::none_of(mapped_ranges_of(0, {first, first + bytes}, false), &mapped_range::is_shared);
}

// The last page of a heap block that was moved holds what is allocated next.
TEST(moved_memory, belongs_to_each_process_if_its_region_is_on_its_pages)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer gives no place of the heap twice";
#endif
    auto* const own  = static_cast<std::byte*>(std::malloc(sizeof(region)));
    auto* const next = static_cast<std::byte*>(std::malloc(sizeof(region)));
    std::memset(own, 1, sizeof(region));
    std::byte* const start = std::min(own, next);
    const auto bytes       = static_cast<std::uint64_t>(std::max(own, next) - start) + sizeof(region);
    std::free(next);
    auto made = must(moved(start, bytes));
    ASSERT_TRUE(made->holds(made.get(), sizeof(region)));
    ASSERT_TRUE(region_table::instance().add(made).has_value());
    const auto child_writes = [&] {
        EXPECT_TRUE(holds_in_child([&] {
            const bool is_same = *own == std::byte{1};
            *own               = std::byte{8};
            return is_same && is_private(own, 1) && region_table::instance().find(own, 1) == nullptr;
        }));
        return *own != std::byte{1};
    };
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(child_writes()) << "child " << i;
        EXPECT_EQ(region_table::instance().find(own, 1), made) << "child " << i;
    }
    region_table::instance().remove(*made);
    EXPECT_TRUE(is_private(own, 1));
    EXPECT_FALSE(child_writes()) << "after the end of the region";
    made.reset();
    std::free(own);
}

// As in a program that closes all descriptors, also those that it did not open.
TEST(moved_memory, is_private_without_the_descriptor_of_its_file)
{
    const private_pages pages;
    auto made = must(moved(pages.start()));
    ASSERT_TRUE(region_table::instance().add(made).has_value());
    pages.start()[length - 1] = std::byte{2};
    ASSERT_EQ(0, close(made->fd()));
    const auto is_as_written = [&] {
        return is_private(pages.start(), length) && pages.start()[0] == std::byte{1} &&
               pages.start()[length - 1] == std::byte{2};
    };
    EXPECT_TRUE(holds_in_child([&] {
        const bool is_right = is_as_written();
        pages.start()[0]    = std::byte{8};
        return is_right;
    }));
    EXPECT_FALSE(is_private(pages.start(), length));
    EXPECT_EQ(pages.start()[0], std::byte{1});
    const unmap_events events(pages.start(), length);
    made.reset();
    EXPECT_TRUE(is_as_written());
    EXPECT_GE(events.count(), 1u) << "UCX forgets what it knows of it";
}

TEST(moved_memory, is_left_alone_if_there_is_no_room_for_the_copy)
{
    EXPECT_TRUE(holds_in_child([] {
        const private_pages pages;
        give_up_privileges();
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        setrlimit(RLIMIT_NOFILE, &none);
        const auto refused = moved(pages.start());
        return !refused.has_value() && pages.start()[length - 1] == std::byte{1};
    }));
}

// Calls `is_right` with no descriptor left, with one, with two and so on, until it says that nothing was refused.
template <typename Function>
bool is_right_with_few_descriptors(Function is_right)
{
    const int first_free = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(first_free);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int left = 0; left < 10; ++left) {
        limit.rlim_cur = static_cast<rlim_t>(first_free + left);
        setrlimit(RLIMIT_NOFILE, &limit);
        bool is_refused = false;
        if (!is_right(is_refused)) {
            return false;
        }
        if (!is_refused) {
            return left > 0;
        }
    }
    return false;
}

bool is_all(const std::byte* start, std::byte wanted)
{
    return std::all_of(start, start + length, [&](std::byte each) { return each == wanted; });
}

TEST(moved_memory, is_left_alone_with_few_descriptors)
{
    EXPECT_TRUE(holds_in_child([] {
        const private_pages pages;
        return is_right_with_few_descriptors([&](bool& is_refused) {
            const auto made = moved(pages.start());
            is_refused      = !made;
            return is_all(pages.start(), std::byte{1}) && (made || made.error().code == errc::no_memory);
        });
    }));
}

TEST(moved_memory, is_left_alone_at_every_failure)
{
    const private_pages pages;
    const auto is_right = [&] {
        try {
            const auto made = moved(pages.start());
            return is_all(pages.start(), std::byte{1}) && (made || made.error().code == errc::no_memory);
        } catch (const std::bad_alloc&) {
            return is_all(pages.start(), std::byte{1});
        }
    };
    EXPECT_GT(fail_every_allocation(is_right), 0);
    bool has_failed = true;
    for (std::int64_t calls = 0; has_failed; ++calls) {
        ASSERT_LT(calls, 20);
        fail_map_after(calls);
        const auto made = moved(pages.start());
        fail_map_after(-1);
        has_failed = !made.has_value();
        EXPECT_TRUE(is_all(pages.start(), std::byte{1})) << calls;
    }
}

// A file of POSIX shared memory, mapped whole.
class posix_memory
{
public:
    posix_memory() : name(std::format("/ucx_layout_test_{}", getpid()))
    {
        fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        EXPECT_EQ(0, ftruncate(fd, static_cast<off_t>(length)));
        start = static_cast<std::byte*>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        EXPECT_NE(static_cast<void*>(start), MAP_FAILED);
    }
    ~posix_memory()
    {
        munmap(start, length);
        close(fd);
        shm_unlink(name.c_str());
    }
    posix_memory(const posix_memory&)            = delete;
    posix_memory& operator=(const posix_memory&) = delete;

    const std::string name;
    int fd           = -1;
    std::byte* start = nullptr;
};

TEST(shown_file, is_found_by_its_name_or_by_a_descriptor)
{
    posix_memory named;
    const auto is_found = [&](std::uint64_t into) {
        const auto made = must(region::share(named.start + into, length - into));
        struct stat status{};
        EXPECT_EQ(0, fstat(made->fd(), &status));
        return made->inode() == status.st_ino && made->file_offset() == into;
    };
    const int held = std::exchange(named.fd, -1);
    EXPECT_TRUE(is_found(page_length())) << "by a descriptor, or by the name";
    close(held);
    EXPECT_TRUE(is_found(0)) << "by the name";
    const int again = shm_open(named.name.c_str(), O_RDWR | O_CLOEXEC, 0);
    shm_unlink(named.name.c_str());
    EXPECT_TRUE(is_found(page_length())) << "by a descriptor only";
    close(again);
}

TEST(shown_file, is_not_another_one_of_the_same_name)
{
    const posix_memory named;
    shm_unlink(named.name.c_str());
    const int other = shm_open(named.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const auto made = must(region::share(named.start, length));
    struct stat status{};
    ASSERT_EQ(0, fstat(other, &status));
    EXPECT_NE(made->inode(), status.st_ino);
    close(other);
}

TEST(shown_file, leaves_nothing_behind_when_memory_is_short)
{
    const posix_memory named;
    const auto num_open = [] {
        const std::filesystem::directory_iterator files("/proc/self/fd");
        return std::distance(begin(files), end(files));
    };
    const auto before = num_open();
    EXPECT_GT(fail_every_allocation([&] {
                  try {
                      const auto made = region::share(named.start, length);
                      return made || made.error().code == errc::invalid_param;
                  } catch (const std::bad_alloc&) {
                      return true;
                  }
              }),
              0);
    EXPECT_EQ(num_open(), before);
}

TEST(shown_file, is_not_called_wrong_where_only_descriptors_are_short)
{
    for (const bool is_passed : {false, true}) {
        EXPECT_TRUE(holds_in_child([&] {
            const posix_memory named;
            return is_right_with_few_descriptors([&](bool& is_refused) {
                const auto made =
                    is_passed ? region::share(named.start, length, named.fd, 0) : region::share(named.start, length);
                is_refused = !made;
                return made || made.error().code == errc::no_memory;
            });
        })) << (is_passed ? "its descriptor" : "its address only");
    }
}

TEST(shown_file, is_none_of_private_memory_or_of_a_file_on_a_disk)
{
    const private_pages pages;
    EXPECT_NE(reason(region::share(pages.start(), length)).find("UCP_LAYOUT_MEMORY_FLAG_MOVE"), std::string::npos);
    std::string path = testing::TempDir() + "ucx_layout_XXXXXX";
    const owned_fd disk(mkstemp(path.data()));
    struct stat status{};
    struct statfs system{};
    ASSERT_EQ(0, fstat(disk.get(), &status));
    ASSERT_EQ(0, fstatfs(disk.get(), &system));
    ASSERT_EQ(0, ftruncate(disk.get(), static_cast<off_t>(length)));
    const auto memory = must(owned_mapping::map(length, PROT_READ | PROT_WRITE, MAP_SHARED, disk.get(), 0));
    EXPECT_EQ(region::share(memory.start(), length).has_value(), is_in_memory(status, system));
    unlink(path.c_str());
    EXPECT_NE(reason(region::share(reinterpret_cast<std::byte*>(page_length()), length)).find("nothing is mapped"),
              std::string::npos);
}

// Nothing is touched, so no such page has to be free.
TEST(region, of_a_hugetlbfs_is_in_whole_pages_of_it)
{
    const owned_fd file(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    struct stat status{};
    if (!file || fstat(file.get(), &status) != 0) {
        GTEST_SKIP() << "the kernel has no hugetlbfs";
    }
    const auto page = static_cast<std::uint64_t>(status.st_blksize);
    ASSERT_EQ(0, ftruncate(file.get(), static_cast<off_t>(4 * page)));
    void* const mapped = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    auto* const start = static_cast<std::byte*>(mapped);
    for (const std::uint64_t wrong : {page_length(), page + page_length()}) {
        EXPECT_NE(reason(region::share(start, wrong, file.get(), 0)).find("page boundaries"), std::string::npos);
        EXPECT_NE(reason(region::share(start + wrong, page, file.get(), wrong)).find("page boundaries"),
                  std::string::npos);
    }
    EXPECT_TRUE(region::share(start + page, 2 * page, file.get(), page).has_value());
    const auto found = must(region::share(start + page, 2 * page));
    EXPECT_EQ(found->file_offset(), page);
    EXPECT_NE(0, ftruncate(file.get(), 0)) << "it was sealed";
    munmap(mapped, 4 * page);
}

TEST(region, is_aligned_as_asked)
{
    for (const std::uint64_t alignment : {std::uint64_t{1}, std::uint64_t{1} << 16, std::uint64_t{1} << 30}) {
        const auto made = must(region::allocate(100, {.huge_pages = huge_pages_option::never, .alignment = alignment}));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made->start()) % alignment, 0u) << alignment;
        EXPECT_EQ(made->length(), page_length());
    }
}

TEST(region, is_taken_from_a_node_that_exists)
{
    if (access("/sys/devices/system/node/node0", F_OK) != 0) {
        GTEST_SKIP() << "the kernel knows no NUMA nodes";
    }
    const auto made = region::allocate(100, {.numa_node = 0});
    if (!made && made.error().message.contains("not implemented")) {
        GTEST_SKIP() << made.error().message;
    }
    EXPECT_TRUE(made.has_value()) << made.error().message;
    const auto refused = region::allocate(100, {.numa_node = 1023});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::invalid_param);
    EXPECT_NE(refused.error().message.find("numa_node 1023"), std::string::npos);
}

} // namespace
