// Shared memory by the public functions: its handles, and the windows over it.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/printed_text.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <cstdio>
#include <filesystem>
#include <format>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace
{

using ucx_layout::layout;
using ucx_layout::memory;
using ucx_layout::window;
using ucxl::test::must;
using ucxl::test::printed_text;
using ucxl::test::ucx_test;

constexpr std::size_t length = 1 << 20;

class shared_memory : public ucx_test
{
protected:
    layout _column = must(layout::create_strided(8, {{64, 128}}));

    static ucp_layout_memory_params_t params(std::uint64_t fields, std::size_t bytes = length)
    {
        ucp_layout_memory_params_t made{};
        made.field_mask = fields;
        made.length     = bytes;
        return made;
    }
    static ucs_status_t status_of(const ucp_layout_memory_params_t& given)
    {
        auto* const before       = reinterpret_cast<ucp_layout_memory_h>(std::uintptr_t{2});
        ucp_layout_memory_h made = before;
        const auto status        = ucp_layout_memory_create(&given, &made);
        if (status == UCS_OK) {
            EXPECT_EQ(ucp_layout_memory_destroy(made), UCS_OK);
        } else {
            EXPECT_EQ(made, before) << "outputs are written only on success";
        }
        return status;
    }
};

TEST_F(shared_memory, is_zeroed_and_whole_pages)
{
    const auto made = must(memory::allocate(length + 1));
    EXPECT_GE(made.bytes().size(), length + 1);
    EXPECT_EQ(made.bytes().size() % static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), 0u);
    EXPECT_EQ(made.bytes().back(), std::byte{0});
    made.bytes().back() = std::byte{1};
}

TEST_F(shared_memory, wrong_parameters_are_named)
{
    constexpr std::uint64_t len = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH, address = UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS,
                            fd = UCP_LAYOUT_MEMORY_PARAM_FIELD_FD, offset = UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET;
    const auto refused = [&](const ucp_layout_memory_params_t& given, const char* text) {
        logs().expect(text);
        EXPECT_EQ(status_of(given), UCS_ERR_INVALID_PARAM) << text;
    };
    refused(params(0), "length is required, from 1 to");
    refused(params(len | UINT64_C(1) << 40), "field_mask");
    for (const auto& again : {params(len, 0), params(len, SIZE_MAX)}) {
        EXPECT_EQ(status_of(again), UCS_ERR_INVALID_PARAM);
    }
    refused(params(len | fd), "fd is set, and address is not");
    refused(params(len | offset), "offset is set, and fd is not");
    auto elsewhere    = params(len | address | fd);
    elsewhere.address = this;
    elsewhere.fd      = -1;
    refused(elsewhere, "the file of shared memory");
    elsewhere.field_mask = len | address;
    refused(elsewhere, "UCP_LAYOUT_MEMORY_FLAG_MOVE");
    logs().allow("is NULL");
    EXPECT_EQ(ucp_layout_memory_create(nullptr, nullptr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_layout_memory_query(nullptr, nullptr), UCS_ERR_INVALID_PARAM);
}

TEST_F(shared_memory, wrong_options_are_named)
{
    constexpr std::uint64_t len = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH, address = UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS,
                            fd = UCP_LAYOUT_MEMORY_PARAM_FIELD_FD, flags = UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS,
                            huge      = UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES,
                            alignment = UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT,
                            node      = UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE;
    const auto refused                = [&](std::uint64_t fields, const char* text, auto change) {
        auto given    = params(fields);
        given.address = this;
        change(given);
        logs().allow(text);
        EXPECT_EQ(status_of(given), UCS_ERR_INVALID_PARAM) << text;
    };
    using given     = ucp_layout_memory_params_t&;
    const auto move = [](given with) { with.flags = UCP_LAYOUT_MEMORY_FLAG_MOVE; };
    refused(len | flags, "flags has unknown bits", [](given with) { with.flags = 2; });
    refused(len | flags, "needs address", move);
    refused(len | flags | address | fd, "needs address, and no fd", move);
    refused(len | address | alignment, "alignment and numa_node", [](given) {});
    refused(len | address | node, "alignment and numa_node", [](given) {});
    refused(len | address | huge, "huge_pages is of memory", [](given) {});
    refused(len | huge, "huge_pages is 3",
            [](given with) { with.huge_pages = static_cast<ucp_layout_huge_pages_t>(3); });
    refused(len | huge | flags | address, "huge_pages is 2", [](given with) {
        with.flags      = UCP_LAYOUT_MEMORY_FLAG_MOVE;
        with.huge_pages = UCP_LAYOUT_HUGE_PAGES_ALWAYS;
    });
    refused(len | alignment, "alignment is 3", [](given with) { with.alignment = 3; });
    refused(len | alignment, "alignment is 0", [](given with) { with.alignment = 0; });
    refused(len | node, "numa_node is -1", [](given with) { with.numa_node = -1; });
    refused(len | node, "numa_node is 1024", [](given with) { with.numa_node = 1024; });
}

TEST_F(shared_memory, of_the_program_may_be_moved_or_named_by_its_address)
{
    std::vector<std::byte> block(length, std::byte{1});
    {
        const auto moved = must(memory::move(block));
        EXPECT_GE(moved.bytes().size(), length);
        EXPECT_EQ(block[5], std::byte{1});
        logs().allow("shared already");
        EXPECT_FALSE(memory::move(block).has_value());
    }
    block[5]             = std::byte{2};
    const auto allocated = must(memory::allocate(length));
    logs().allow("shared memory already");
    EXPECT_FALSE(memory::share(allocated.bytes()).has_value()) << "it is a region already";
}

TEST_F(shared_memory, is_described_for_people)
{
    const auto made = must(memory::allocate(length));
    const auto all  = printed_text([](FILE* stream) { EXPECT_EQ(ucp_layout_print_memory(getpid(), stream), UCS_OK); });
    const auto line = std::format("region at {}: {} bytes, allocated, ", static_cast<void*>(made.bytes().data()),
                                  made.bytes().size());
    EXPECT_NE(all.find(line), std::string::npos) << all;
    EXPECT_NE(all.find("mapped by no other process"), std::string::npos) << all;
    logs().expect("does not exist");
    EXPECT_EQ(ucp_layout_print_memory(0x3fffffff, stdout), UCS_ERR_NO_ELEM);
}

TEST_F(shared_memory, handles_that_are_none_are_detected)
{
    logs().allow("no handle of shared memory");
    ucp_layout_memory_h made = nullptr;
    const auto given         = params(UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH);
    ASSERT_EQ(ucp_layout_memory_create(&given, &made), UCS_OK);
    EXPECT_EQ(ucp_layout_memory_destroy(made), UCS_OK);
    EXPECT_EQ(ucp_layout_memory_destroy(made), UCS_ERR_INVALID_PARAM);
    ucp_layout_memory_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS;
    EXPECT_EQ(ucp_layout_memory_query(made, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_layout_memory_destroy(reinterpret_cast<ucp_layout_memory_h>(this)), UCS_ERR_INVALID_PARAM);
}

TEST_F(shared_memory, of_the_program_is_what_it_has_mapped)
{
    const int fd      = memfd_create("own", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    auto* const start = static_cast<std::byte*>(
        ftruncate(fd, length) == 0 ? mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED);
    ASSERT_NE(static_cast<void*>(start), MAP_FAILED);
    {
        const auto made = must(memory::share({start, length}, fd));
        EXPECT_EQ(made.bytes().data(), start);
        EXPECT_EQ(made.bytes().size(), length);
        const auto over = must(window::map(nullptr, _column, start + 64));
        logs().allow("shared memory already");
        EXPECT_FALSE(memory::share({start, length}, fd).has_value());
    }
    EXPECT_TRUE(memory::share({start, length}, fd).has_value()) << "it was released";
    munmap(start, length);
    close(fd);
}

std::size_t num_open_files()
{
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// One that is kept for the next mapping of the same content would keep the memory, too.
TEST_F(shared_memory, is_not_kept_by_windows_that_nobody_uses)
{
    {
        const auto first = must(memory::allocate(length)); // UCX opens files of its own when it is first needed
        const auto over  = must(window::map(nullptr, _column, first.bytes().data()));
    }
    const auto before = num_open_files();
    {
        const auto made = must(memory::allocate(length));
        for (std::size_t i = 0; i < 10; ++i) {
            const auto over = must(window::map(nullptr, _column, made.bytes().data() + 8 * i));
        }
    }
    EXPECT_EQ(num_open_files(), before);
}

TEST_F(shared_memory, stays_while_a_window_is_over_it)
{
    std::byte* first = nullptr;
    std::optional<window> over;
    {
        const auto made = must(memory::allocate(length));
        first           = made.bytes().data();
        over.emplace(must(window::map(nullptr, _column, first)));
    }
    first[0] = std::byte{1};
    over.reset();
}

// A window over private memory that was unmapped is kept and found again. By now the same addresses may be shared.
TEST_F(shared_memory, windows_that_were_kept_are_made_anew_over_it)
{
    const int fd      = memfd_create("own", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    auto* const start = static_cast<std::byte*>(
        ftruncate(fd, length) == 0 ? mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED);
    ASSERT_NE(static_cast<void*>(start), MAP_FAILED);
    const void* const kept = must(window::map(nullptr, _column, start)).address();
    {
        const auto made = must(memory::share({start, length}, fd));
        const auto over = must(window::map(nullptr, _column, start));
        EXPECT_NE(over.address(), kept);
    }
    munmap(start, length);
    close(fd);
}

TEST_F(shared_memory, is_made_and_released_by_several_threads)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int turn = 0; turn < 50; ++turn) {
                const auto made = must(memory::allocate(4096));
                const auto over =
                    must(window::map(nullptr, must(layout::create_contig(1, {.length = 100, .layout = nullptr})),
                                     made.bytes().data() + turn));
            }
        });
    }
    for (auto& each : threads) {
        each.join();
    }
}

} // namespace
