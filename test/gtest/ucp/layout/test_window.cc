// Handles of windows, and their stock memory handles in contexts that come and go.
#include "support/forked_process.h"
#include "support/leak_checks.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace
{

using ucx_layout::layout;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::contiguous;
using ucxl::test::leaks_of_others;
using ucxl::test::must;
using ucxl::test::ucp_pair;
using ucxl::test::ucx_test;

class window_handle : public ucx_test
{
protected:
    layout _column                 = must(layout::create_strided(8, {{64, 128}}));
    std::vector<std::byte> _matrix = std::vector<std::byte>(64 * 128);
    std::vector<std::byte> _other  = std::vector<std::byte>(64 * 128);

    ucp_layout_window_h map(unsigned flags = 0)
    {
        void* const base = _matrix.data();
        ucp_layout_map_params_t params{};
        params.field_mask =
            UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
        params.layout            = _column.get();
        params.bases             = &base;
        params.num_bases         = 1;
        params.flags             = flags;
        ucp_layout_window_h made = nullptr;
        EXPECT_EQ(ucp_layout_map(nullptr, &params, &made), UCS_OK);
        return made;
    }

    static std::string reason(const window& shown)
    {
        std::array<char, 256> text{};
        EXPECT_EQ(shown.carrier_reason(text), UCS_OK);
        return text.data();
    }

    static ucp_layout_window_attr_t attributes(ucp_layout_window_h window)
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH |
                          UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH | UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES |
                          UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS;
        EXPECT_EQ(ucp_layout_window_query(window, &attr), UCS_OK);
        return attr;
    }
};

TEST_F(window_handle, tells_what_the_window_is)
{
    const auto made = map(UCP_LAYOUT_MAP_FLAG_EXCLUSIVE);
    const auto attr = attributes(made);
    EXPECT_NE(attr.address, nullptr);
    EXPECT_EQ(attr.length, 64u * 8);
    EXPECT_EQ(attr.memh, nullptr) << "no context";
    EXPECT_EQ(attr.num_sources, 1u);
    EXPECT_EQ(attr.flags, unsigned{UCP_LAYOUT_MAP_FLAG_EXCLUSIVE});
    EXPECT_EQ(ucp_layout_unmap(made), UCS_OK);
}

TEST_F(window_handle, tells_who_moves_its_bytes_and_why)
{
    context used;
    const auto shape = must(layout::create_strided(8, {{16, 192}})); // of this test alone
    const auto shown = must(window::map(nullptr, shape, _matrix.data()));
    EXPECT_EQ(shown.carrier(), UCP_LAYOUT_CARRIER_UNDECIDED) << "no context";
    EXPECT_FALSE(reason(shown).empty());
    ASSERT_TRUE(shown.memh(used.get()));
    EXPECT_EQ(shown.carrier(), UCP_LAYOUT_CARRIER_COPIES) << "no network card";
    EXPECT_FALSE(reason(shown).empty());
}

// MPI programs map windows without a context.
TEST_F(window_handle, over_shared_memory_does_not_wait_for_a_context_with_a_network_card)
{
    const auto memory = must(ucx_layout::memory::allocate(2 << 20));
    const auto shape  = must(layout::create_strided(64, {{16384, 128}})); // of this test alone
    const auto shown  = must(window::map(nullptr, shape, memory.bytes().data()));
    EXPECT_EQ(shown.carrier(), UCP_LAYOUT_CARRIER_DIRECT);
}

TEST_F(window_handle, the_reason_of_its_carrier_is_cut_to_the_room_for_it)
{
    const auto shown       = must(window::map(nullptr, _column, _matrix.data()));
    const std::string full = reason(shown);
    std::array<char, 6> text;
    text.fill('?');
    EXPECT_EQ(shown.carrier_reason(std::span(text).first(5)), UCS_OK);
    EXPECT_EQ(std::string(text.data()), full.substr(0, 4));
    EXPECT_EQ(text[5], '?');
    logs().expect("ucp_layout_window_carrier_reason: length is 0");
    EXPECT_EQ(ucp_layout_window_carrier_reason(shown.get(), text.data(), 0), UCS_ERR_BUFFER_TOO_SMALL);
    EXPECT_EQ(std::string(text.data()), full.substr(0, 4)) << "written only on success";
}

TEST_F(window_handle, fields_not_asked_for_are_left_alone)
{
    const auto made = map();
    ucp_layout_window_attr_t attr;
    std::memset(&attr, 0x5a, sizeof(attr));
    auto expected   = attr;
    attr.field_mask = expected.field_mask = 0;
    EXPECT_EQ(ucp_layout_window_query(made, &attr), UCS_OK);
    EXPECT_EQ(std::memcmp(&attr, &expected, sizeof(attr)), 0);
    EXPECT_EQ(ucp_layout_unmap(made), UCS_OK);
}

TEST_F(window_handle, an_unknown_field_is_refused)
{
    const auto made = map();
    ucp_layout_window_attr_t attr{};
    attr.field_mask = 1u << 30;
    logs().expect("ucp_layout_window_query: field_mask");
    EXPECT_EQ(ucp_layout_window_query(made, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_layout_unmap(made), UCS_OK);
}

TEST_F(window_handle, is_refused_after_unmap_and_when_it_is_none)
{
    const auto stale = map();
    EXPECT_EQ(ucp_layout_unmap(stale), UCS_OK);
    const auto live = map(); // the same window again, under another handle
    int foreign     = 0;
    for (const char* function :
         {"unmap", "rebind", "window_query", "window_bases", "window_carrier_reason", "window_memh", "window_detach"}) {
        logs().expect(std::string("ucp_layout_") + function + ": window ");
    }
    for (const auto bad : {stale, reinterpret_cast<ucp_layout_window_h>(&foreign)}) {
        ucp_layout_window_attr_t attr{};
        void* base       = nullptr;
        ucp_mem_h memh   = nullptr;
        auto* const some = reinterpret_cast<ucp_context_h>(&foreign);
        EXPECT_EQ(ucp_layout_unmap(bad), UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(ucp_layout_rebind(bad, &base, 1), UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(ucp_layout_window_query(bad, &attr), UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(ucp_layout_window_bases(bad, &base, 1), UCS_ERR_INVALID_PARAM);
        char text[8] = "old";
        EXPECT_EQ(ucp_layout_window_carrier_reason(bad, text, sizeof(text)), UCS_ERR_INVALID_PARAM);
        EXPECT_STREQ(text, "old");
        EXPECT_EQ(ucp_layout_window_memh(bad, some, &memh), UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(ucp_layout_window_detach(bad, some), UCS_ERR_INVALID_PARAM);
    }
    EXPECT_EQ(attributes(live).length, 64u * 8) << "the live one is not touched";
    EXPECT_EQ(ucp_layout_unmap(live), UCS_OK);
}

TEST_F(window_handle, bases_need_room)
{
    auto pair = must(layout::parse("iov(0:4@0,1:4@0)"));
    const std::array<void*, 2> bases{_matrix.data(), _other.data()};
    auto shown    = must(window::map(nullptr, pair, bases));
    void* found[] = {nullptr, nullptr, nullptr};
    {
        logs().expect("num_bases is 1, the layout has 2 sources");
        EXPECT_EQ(ucp_layout_window_bases(shown.get(), found, 1), UCS_ERR_BUFFER_TOO_SMALL);
        EXPECT_EQ(found[0], nullptr);
    }
    EXPECT_EQ(ucp_layout_window_bases(shown.get(), found, 3), UCS_OK);
    EXPECT_EQ(found[0], bases[0]);
    EXPECT_EQ(found[1], bases[1]);
    EXPECT_EQ(found[2], nullptr);
}

TEST_F(window_handle, a_source_without_bytes_needs_no_base)
{
    auto second = must(layout::parse("iov(1:4@0)"));
    const std::array<void*, 2> bases{nullptr, _other.data()};
    EXPECT_TRUE(window::map(nullptr, second, bases));
}

class exclusive_window : public window_handle
{
};

TEST_F(exclusive_window, is_not_shared_and_can_always_be_bound_elsewhere)
{
    auto first  = must(window::map(nullptr, _column, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
    auto second = must(window::map(nullptr, _column, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
    auto shared = must(window::map(nullptr, _column, _matrix.data()));
    EXPECT_NE(first.address(), second.address());
    EXPECT_NE(first.address(), shared.address());
    EXPECT_NE(second.address(), shared.address());
    EXPECT_NE(window::map(nullptr, _column, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE)->address(), shared.address())
        << "one that is used is not taken away";
    void* const to = _other.data();
    EXPECT_EQ(first.rebind(std::span(&to, 1)), UCS_OK);
    auto elsewhere = must(window::map(nullptr, _column, _other.data()));
    EXPECT_NE(elsewhere.address(), first.address()) << "nobody finds it by its new content";
    EXPECT_EQ(first.rebind(std::span(&to, 1)), UCS_OK) << "and nobody makes it busy";
}

TEST_F(exclusive_window, that_is_unused_does_not_take_the_place_of_the_shared_one)
{
    const auto layout = must(layout::create_strided(8, {{16, 256}})); // of this test alone
    auto shared       = must(window::map(nullptr, layout, _matrix.data()));
    must(window::map(nullptr, layout, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
    const auto again = must(window::map(nullptr, layout, _matrix.data()));
    EXPECT_EQ(again.address(), shared.address());
    logs().expect("the same layout and bases are mapped 2 times");
    void* const to = _other.data();
    EXPECT_EQ(shared.rebind(std::span(&to, 1)), UCS_ERR_BUSY);
    void* base = nullptr;
    EXPECT_EQ(again.bases(std::span(&base, 1)), UCS_OK);
    EXPECT_EQ(base, _matrix.data()) << "the refusal changed nothing";
}

class found_window : public window_handle
{
};

TEST_F(found_window, is_that_of_every_range_inside_it)
{
    const auto shown      = must(window::map(nullptr, _column, _matrix.data()));
    auto* const first     = static_cast<std::byte*>(shown.address());
    const std::size_t all = shown.length();
    EXPECT_EQ(window::find(first), shown.get());
    EXPECT_EQ(window::find(first, all), shown.get());
    EXPECT_EQ(window::find(first + 17, 100), shown.get());
    EXPECT_EQ(window::find(first + all - 1, 1), shown.get());
    for (const auto& outside : {window::find(first, all + 1), window::find(first + all), window::find(first + all, 1),
                                window::find(first - 1, 2), window::find(first + 1, SIZE_MAX)}) {
        ASSERT_FALSE(outside);
        EXPECT_EQ(outside.error(), UCS_ERR_NO_ELEM);
    }
}

TEST_F(found_window, is_none_for_other_memory_and_the_output_stays)
{
    const auto shown = must(window::map(nullptr, _column, _matrix.data())); // there is an arena
    int local        = 0;
    for (const void* address : {static_cast<const void*>(_matrix.data()), static_cast<const void*>(&local),
                                static_cast<const void*>(nullptr), reinterpret_cast<const void*>(UINTPTR_MAX)}) {
        ucp_layout_window_h found = shown.get();
        EXPECT_EQ(ucp_layout_window_find(address, 1, &found), UCS_ERR_NO_ELEM);
        EXPECT_EQ(found, shown.get());
    }
}

TEST_F(found_window, without_bytes_has_its_address)
{
    const auto shown = must(window::map(nullptr, must(layout::create_contig(0)), _matrix.data()));
    EXPECT_EQ(window::find(shown.address()), shown.get());
    EXPECT_FALSE(window::find(shown.address(), 1));
}

TEST_F(found_window, is_one_of_its_mappings_until_the_last_one_ends)
{
    std::vector<window> mapped;
    for (int i = 0; i < 4; ++i) {
        mapped.push_back(must(window::map(nullptr, _column, _matrix.data())));
    }
    void* const address = mapped.front().address();
    const auto first    = must(window::find(address));
    EXPECT_EQ(first, mapped.front().get());
    mapped.erase(mapped.begin() + 2); // in the middle
    EXPECT_EQ(window::find(address), first) << "the same one until it is unmapped";
    while (!mapped.empty()) {
        const auto found = must(window::find(address));
        EXPECT_TRUE(std::ranges::contains(mapped, found, &window::get));
        mapped.erase(mapped.begin());
    }
    EXPECT_FALSE(window::find(address)) << "the window is only kept for the next mapping";
    const auto again = must(window::map(nullptr, _column, _matrix.data()));
    ASSERT_EQ(again.address(), address);
    EXPECT_EQ(window::find(address), again.get());
}

TEST_F(found_window, stays_when_it_is_bound_elsewhere_and_with_memory_of_its_own)
{
    auto bound     = must(window::map(nullptr, _column, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
    void* const to = _other.data();
    EXPECT_EQ(bound.rebind(std::span(&to, 1)), UCS_OK);
    EXPECT_EQ(window::find(bound.address()), bound.get());
    const auto owned = must(window::allocate(nullptr, _column));
    EXPECT_EQ(window::find(owned.address()), owned.get());
}

// Whoever finds a window that another thread unmaps gets no handle or a stale one, and never that of another window.
TEST_F(found_window, that_is_being_unmapped_is_stale_and_no_other)
{
    constexpr int rounds = 20000;
    void* const address  = must(window::map(nullptr, _column, _matrix.data())).address();
    std::atomic<bool> is_done{false};
    std::atomic<long> found{0};
    std::thread seeker([&] {
        while (!is_done) {
            const auto handle = window::find(address);
            if (!handle) {
                continue;
            }
            ucp_layout_window_attr_t attr{};
            attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS;
            if (ucp_layout_window_query(*handle, &attr) == UCS_OK) {
                ++found;
                EXPECT_EQ(attr.address, address);
            }
        }
    });
    logs().allow("is no window handle, or was unmapped");
    for (int i = 0; i < rounds || found == 0; ++i) {
        const auto shown = must(window::map(nullptr, _column, _matrix.data()));
        const auto other = must(window::map(nullptr, _column, _other.data())); // takes the next handle
        ASSERT_EQ(shown.address(), address);
    }
    is_done = true;
    seeker.join();
}

TEST_F(exclusive_window, comes_from_the_unused_ones_and_goes_back_to_them)
{
    void* const before = must(window::map(nullptr, _column, _matrix.data())).address();
    {
        auto exclusive = must(window::map(nullptr, _column, _matrix.data(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
        EXPECT_EQ(exclusive.address(), before);
        auto shared = must(window::map(nullptr, _column, _matrix.data()));
        EXPECT_NE(shared.address(), before);
        void* const to = _other.data();
        EXPECT_EQ(exclusive.rebind(std::span(&to, 1)), UCS_OK);
    }
    EXPECT_EQ(must(window::map(nullptr, _column, _other.data())).address(), before) << "found by what it showed last";
}

class window_memory : public window_handle
{
};

TEST_F(window_memory, a_window_without_a_context_works_in_any)
{
    ucp_pair loop({.self = true});
    auto column = must(window::map(nullptr, _column, _matrix.data()));
    for (std::size_t i = 0; i < _matrix.size(); ++i) {
        _matrix[i] = static_cast<std::byte>(i * 7);
    }
    std::vector<std::byte> packed(column.length());
    ASSERT_EQ(loop.transfer(contiguous(column.address(), column.length()), contiguous(packed.data(), packed.size())),
              UCS_OK);
    for (std::size_t at = 0; at < packed.size(); ++at) {
        ASSERT_EQ(packed[at], _matrix[at / 8 * 128 + at % 8]);
    }
}

TEST_F(window_memory, there_is_one_handle_for_each_context)
{
    context first, second;
    auto column     = must(window::map(first.get(), _column, _matrix.data()));
    const auto here = column.memh(first.get());
    ASSERT_TRUE(here);
    EXPECT_EQ(*here, column.memh()) << "the one made with the window";
    const auto there = column.memh(second.get());
    ASSERT_TRUE(there);
    EXPECT_NE(*here, *there);
    EXPECT_EQ(*column.memh(second.get()), *there);
    ucp_mem_attr_t attr;
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_MEM_TYPE;
    EXPECT_EQ(ucp_mem_query(*there, &attr), UCS_OK);
    EXPECT_EQ(attr.address, column.address());
    EXPECT_EQ(attr.mem_type, UCS_MEMORY_TYPE_RDMA);
}

TEST_F(window_memory, detaching_ends_the_handle_of_that_context_only)
{
    context first;
    std::optional<context> second(std::in_place);
    auto column = must(window::map(first.get(), _column, _matrix.data()));
    ASSERT_TRUE(column.memh(second->get()));
    EXPECT_EQ(column.detach(second->get()), UCS_OK);
    second.reset();
    EXPECT_NE(column.memh(), nullptr);
    EXPECT_EQ(column.detach(first.get()), UCS_OK);
    EXPECT_EQ(column.memh(), nullptr);
    logs().expect("no memory handle in context");
    EXPECT_EQ(column.detach(first.get()), UCS_ERR_INVALID_PARAM);
}

// Two mappings of the same content use one memory handle: it stays until both have given it back.
TEST_F(window_memory, a_handle_is_counted)
{
    context used;
    auto first  = must(window::map(used.get(), _column, _matrix.data()));
    auto second = must(window::map(used.get(), _column, _matrix.data()));
    EXPECT_EQ(first.memh(), second.memh());
    EXPECT_EQ(first.detach(used.get()), UCS_OK);
    ucp_mem_attr_t attr;
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    EXPECT_EQ(ucp_mem_query(second.memh(), &attr), UCS_OK);
    EXPECT_EQ(attr.address, second.address());
}

TEST_F(window_memory, a_context_without_our_transport_gets_no_handle)
{
    context without("posix,self");
    auto column = must(window::map(nullptr, _column, _matrix.data()));
    logs().expect("ucp_layout_window_memh: the transport lay_copy is not in this UCP context");
    EXPECT_EQ(column.memh(without.get()).error(), UCS_ERR_NO_DEVICE);
}

struct ended_child {
    int status;
    std::string output;

    // By UCX, whose sources are C.
    bool is_asserted() const
    {
        return status == 128 + SIGABRT && std::regex_search(output, std::regex(R"(\.c:[0-9]+ +Assertion )"));
    }
};

// A UCX with assertions ends the process if a memory handle is left.
ended_child clean_up_with_handles(const layout& layout, void* base, const char* tls)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> printed(std::tmpfile(), &std::fclose);
    const int file = fileno(printed.get());
    ucxl::test::forked_process child([&](ucxl::test::forked_process&) {
        ::alarm(20);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        auto left = must(window::map(nullptr, layout, base));
        const context gone(tls);
        ASSERT_TRUE(left.memh(gone.get()));
    });
    ended_child ended{.status = child.join(), .output = std::string(1 << 16, '\0')};
    ended.output.resize(static_cast<std::size_t>(::pread(file, ended.output.data(), ended.output.size(), 0)));
    return ended;
}

// The context goes first, against the rules: the window forgets what it had in it, and works on. Without lay_shm and
// lay_cma, because with them UCP caches registrations, and UCX with assertions ends the process when one is in use
// then.
TEST_F(window_memory, outlives_contexts_that_were_cleaned_up_first)
{
    constexpr const char* uncached = "self,posix,lay_copy";
    const ended_child ended        = clean_up_with_handles(_column, _matrix.data(), uncached);
    if (ended.is_asserted()) {
        GTEST_SKIP() << "this UCX asserts that no memory handle is left at ucp_cleanup";
    }
    ASSERT_EQ(ended.status, 0) << ended.output;
    const leaks_of_others handles_left_at_cleanup; // which UCP does not free
    auto column = must(window::map(nullptr, _column, _matrix.data()));
    for (int round = 0; round < 3; ++round) {
        context gone(uncached);
        ASSERT_TRUE(column.memh(gone.get()));
    }
    auto mapped = [&] {
        context gone(uncached);
        return must(window::map(gone.get(), _column, _other.data()));
    }();
    EXPECT_EQ(mapped.memh(), nullptr);
    context next(uncached); // likely where the others were
    EXPECT_EQ(mapped.memh(), nullptr) << "a context at the same place is another one";
    ASSERT_TRUE(mapped.memh(next.get()));
    ASSERT_TRUE(column.memh(next.get()));
}

} // namespace
