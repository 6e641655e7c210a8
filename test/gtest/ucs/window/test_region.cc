// Regions: which memory they are, who finds them, and which windows are over them.
#include "ucs/window/region.h"

#include "support/must.h"
#include "sys/pages.h"
#include "ucs/layout/build.h"
#include "window_helpers.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr std::uint64_t length = 64 << 10;

region_ptr allocated(std::uint64_t bytes = length)
{
    return must(region::allocate(bytes, {.huge_pages = huge_pages_option::never}));
}

// A file in memory, mapped as a program would do it.
class own_mapping
{
public:
    explicit own_mapping(std::uint64_t file_length = length, unsigned flags = MFD_ALLOW_SEALING, int share = MAP_SHARED)
        : _fd(memfd_create("own", MFD_CLOEXEC | flags)), _length(file_length)
    {
        EXPECT_EQ(0, ftruncate(_fd, static_cast<off_t>(file_length)));
        _start = static_cast<std::byte*>(mmap(nullptr, file_length, PROT_READ | PROT_WRITE, share, _fd, 0));
        EXPECT_NE(_start, MAP_FAILED);
    }
    ~own_mapping()
    {
        munmap(_start, _length);
        close(_fd);
    }
    own_mapping(const own_mapping&)            = delete;
    own_mapping& operator=(const own_mapping&) = delete;

    int fd() const { return _fd; }
    std::byte* start() const { return _start; }
    result<region_ptr> shared(std::uint64_t offset = 0) const
    {
        return region::share(_start + offset, _length - offset, _fd, offset);
    }

private:
    int _fd;
    std::uint64_t _length;
    std::byte* _start = nullptr;
};

TEST(region, is_zeroed_memory_of_a_file_that_keeps_its_length)
{
    const auto made = allocated(length + 1);
    EXPECT_EQ(made->length(), length + page_length());
    EXPECT_EQ(made->start()[length], std::byte{0});
    struct stat about{};
    ASSERT_EQ(0, fstat(made->fd(), &about));
    EXPECT_EQ(static_cast<std::uint64_t>(about.st_size), made->length());
    EXPECT_EQ(about.st_ino, made->inode());
    EXPECT_NE(0, ftruncate(made->fd(), 0));
}

TEST(region, shows_memory_that_the_program_has_mapped)
{
    const own_mapping own;
    const auto made = must(own.shared(page_length()));
    EXPECT_EQ(made->start(), own.start() + page_length());
    EXPECT_EQ(made->length(), length - page_length());
    EXPECT_EQ(made->file_offset(), page_length());
    EXPECT_NE(0, ftruncate(own.fd(), 0)) << "a peer that maps it could be ended by that";
    own.start()[page_length()] = std::byte{7};
    std::byte seen{};
    ASSERT_EQ(1, pread(made->fd(), &seen, 1, static_cast<off_t>(page_length())));
    EXPECT_EQ(seen, std::byte{7});
}

TEST(region, is_refused_if_the_memory_is_not_what_was_said)
{
    const own_mapping own, other, unsealable(length, 0), copied(length, MFD_ALLOW_SEALING, MAP_PRIVATE);
    const auto reason = [](const result<region_ptr>& refused) {
        EXPECT_FALSE(refused.has_value());
        return refused ? std::string() : refused.error().message;
    };
    const auto shared = [&](std::byte* start, std::uint64_t bytes, int fd, std::uint64_t offset) {
        return reason(region::share(start, bytes, fd, offset));
    };
    EXPECT_NE(shared(own.start() + 1, length - 1, own.fd(), 0).find("page boundaries"), std::string::npos);
    EXPECT_NE(shared(own.start(), length, own.fd(), 1).find("page boundaries"), std::string::npos);
    EXPECT_NE(shared(own.start(), 0, own.fd(), 0).find("0 bytes"), std::string::npos);
    EXPECT_NE(shared(own.start(), UINT64_MAX, own.fd(), 0).find("page boundaries"), std::string::npos);
    EXPECT_NE(shared(own.start(), length, own.fd(), page_length()).find("are needed"), std::string::npos);
    EXPECT_NE(shared(own.start(), length, other.fd(), 0).find("not a shared mapping"), std::string::npos);
    EXPECT_NE(shared(own.start() + page_length(), page_length(), own.fd(), 0).find("not a shared"), std::string::npos);
    EXPECT_NE(reason(copied.shared()).find("not a shared mapping"), std::string::npos) << "a private one";
    EXPECT_TRUE(unsealable.shared().has_value()) << "peers guard their mappings";
    EXPECT_NE(shared(own.start(), length, -1, 0).find("the file of shared memory"), std::string::npos);
    const int pipe_like = open("/dev/zero", O_RDWR | O_CLOEXEC);
    EXPECT_NE(shared(own.start(), length, pipe_like, 0).find("not in memory"), std::string::npos);
    close(pipe_like);
    std::byte* const hole = own.start() + 2 * page_length();
    munmap(hole, page_length());
    EXPECT_NE(reason(own.shared()).find("not a shared mapping"), std::string::npos) << "a part of it is unmapped";
}

TEST(region_table, finds_the_region_that_holds_all_of_a_range)
{
    region_table table;
    EXPECT_EQ(table.find(&table, 1), nullptr) << "there is none yet";
    std::vector<region_ptr> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(allocated());
        ASSERT_TRUE(table.add(all.back()).has_value());
    }
    for (const auto& each : all) {
        EXPECT_EQ(table.find(each->start(), length), each);
        EXPECT_EQ(table.find(each->start() + length - 1, 1), each);
        EXPECT_NE(table.find(each->start() - 1, 2), each);
        EXPECT_EQ(table.find(each->start() + 1, length), nullptr) << "one byte too long";
        EXPECT_EQ(table.find(each->start(), UINT64_MAX), nullptr);
    }
}

TEST(region_table, forgets_regions_that_ended_or_were_withdrawn)
{
    region_table table;
    const own_mapping own;
    auto first = must(own.shared());
    ASSERT_TRUE(table.add(first).has_value());
    EXPECT_FALSE(table.add(must(own.shared(page_length()))).has_value()) << "some of it is a region already";
    first->withdraw();
    EXPECT_EQ(table.find(own.start(), 1), nullptr);
    auto second = must(own.shared());
    ASSERT_TRUE(table.add(second).has_value());
    EXPECT_EQ(table.find(own.start(), 1), second);
    second.reset();
    EXPECT_EQ(table.find(own.start(), 1), nullptr);
    EXPECT_TRUE(table.add(must(own.shared(page_length()))).has_value());
}

TEST(region_table, is_searched_while_others_change_it)
{
    region_table table;
    const auto kept = allocated();
    ASSERT_TRUE(table.add(kept).has_value());
    std::atomic<bool> is_over{false};
    std::atomic<unsigned> missed{0}, searches{0};
    std::thread reader([&] {
        while (!is_over.load()) {
            missed += table.find(kept->start() + 8, 8) == kept ? 0 : 1;
            ++searches;
            searches.notify_one();
        }
    });
    searches.wait(0); // the reader may get no processor for a while
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(table.add(allocated(page_length())).has_value());
    }
    is_over = true;
    reader.join();
    EXPECT_EQ(missed.load(), 0u);
}

// Rows of two regions and of none.
TEST(windows_over_regions, are_shared_if_all_of_their_bytes_are)
{
    const auto registry = private_registry(64 << 20);
    const auto first = allocated(), second = allocated();
    ASSERT_TRUE(region_table::instance().add(first).has_value());
    ASSERT_TRUE(region_table::instance().add(second).has_value());
    const iov_part parts[] = {{.source = 0, .offset = 100, .item = {.length = 50}},
                              {.source = 2, .offset = 5000, .item = {.length = 8}}};
    const auto plan        = must(pack_plan::compile(must(make_iov(parts))));
    std::vector<std::byte> elsewhere(length);
    const auto regions_over = [&](std::byte* one, std::byte* other) {
        window* const made = must(registry->create({plan, {one, nullptr, other}}));
        auto regions       = made->binding().regions;
        EXPECT_EQ(made->binding().is_shared(), !regions.empty());
        registry->destroy(made);
        return regions;
    };
    EXPECT_EQ(regions_over(first->start(), second->start()), (std::vector<region_ptr>{first, nullptr, second}));
    EXPECT_EQ(regions_over(first->start(), first->start()), (std::vector<region_ptr>{first, nullptr, first}));
    EXPECT_TRUE(regions_over(first->start(), elsewhere.data()).empty());
    EXPECT_TRUE(regions_over(first->start(), second->start() + length - 5001).empty())
        << "its end is not in the region";
}

TEST(windows_over_regions, are_shared_over_memory_of_another_window)
{
    const auto registry = private_registry(64 << 20);
    const dim numbers[] = {{100, 64}};
    window* const owner =
        must(registry->allocate(must(pack_plan::compile(must(make_strided({.length = 8}, numbers))))));
    const auto block    = must(pack_plan::compile(must(make_contig(1, {.length = 1000}))));
    window* const other = must(registry->create({block, {owner->binding().bases[0] + 16}}));
    ASSERT_TRUE(other->binding().is_shared());
    EXPECT_EQ(other->binding().regions[0], owner->binding().regions[0]);
    EXPECT_EQ(other->binding().memory, nullptr) << "it belongs to the first one";
    std::byte* const shown = owner->binding().bases[0];
    registry->destroy(owner);
    shown[16] = std::byte{3}; // the memory stays as long as a window is over it
    registry->destroy(other);
}

} // namespace
