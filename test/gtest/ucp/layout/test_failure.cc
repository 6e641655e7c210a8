// Every way to make something through the C API, with its Nth allocation failing for every N: the status is NO_MEMORY,
// outputs stay as they were, and the next try works. What leaks is found by the AddressSanitizer run.
#include "support/alloc_failure.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include <unistd.h>

namespace
{

using ucx_layout::layout;
using ucxl::test::context;
using ucxl::test::fail_every_allocation;
using ucxl::test::must;
using ucxl::test::ucx_test;

class failing_allocations : public ucx_test
{
protected:
    failing_allocations() { logs().allow("out of memory"); }

    // `make` writes its output, a pointer that starts as null, only with UCS_OK. Returns how many allocations it has.
    template <typename Output, typename Make, typename Release>
    static void check(Make&& make, Release&& release)
    {
        Output made{};
        const auto failures = fail_every_allocation([&] {
            const ucs_status_t status = make(&made);
            return status == UCS_OK ? made != Output{} : status == UCS_ERR_NO_MEMORY && made == Output{};
        });
        EXPECT_GT(failures, 0) << "allocation " << -failures - 1;
        release(made);
    }
};

TEST_F(failing_allocations, of_create_leave_nothing_behind)
{
    const ucp_layout_dim_t dims[]            = {{7, 100}, {3, 8}};
    const ucp_layout_interleaved_t sources[] = {{0, 0, {4, nullptr}, 3, dims, 2}, {1, 0, {2, nullptr}, 2, dims, 1}};
    ucp_layout_params_t params{};
    params.field_mask      = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_INTERLEAVED;
    params.kind            = UCP_LAYOUT_KIND_INTERLEAVED;
    params.interleaved     = sources;
    params.num_interleaved = 2;
    check<ucp_layout_h>([&](ucp_layout_h* made) { return ucp_layout_create(&params, made); }, ucp_layout_destroy);
}

TEST_F(failing_allocations, of_parse_leave_nothing_behind)
{
    check<ucp_layout_h>([](ucp_layout_h* made) { return ucp_layout_parse("iov(strided(4,8,16)@0,12@100)", made); },
                        ucp_layout_destroy);
}

TEST_F(failing_allocations, of_deserialize_leave_nothing_behind)
{
    const auto from = must(layout::parse("iov(strided(4,8,16)@0,12@100,1:7@3)"));
    std::vector<std::byte> bytes(from.query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)->serialized_length);
    std::size_t length = bytes.size();
    ASSERT_EQ(ucp_layout_serialize(from.get(), bytes.data(), &length), UCS_OK);
    check<ucp_layout_h>([&](ucp_layout_h* made) { return ucp_layout_deserialize(bytes.data(), length, made); },
                        ucp_layout_destroy);
}

TEST_F(failing_allocations, of_plans_leave_nothing_behind)
{
    for (const std::size_t count : {1, 7}) {
        check<ucp_layout_plan_h>(
            [&](ucp_layout_plan_h* made) {
                const auto of = layout::parse("strided(4,8,16)"); // new each time, so that it is compiled each time
                const ucp_layout_plan_params_t params{UCP_LAYOUT_PLAN_PARAM_FIELD_COUNT, count};
                return of ? ucp_layout_plan_create(of->get(), &params, made) : of.error();
            },
            ucp_layout_plan_destroy);
    }
}

TEST_F(failing_allocations, of_gather_copy_nothing)
{
    std::array<char, 64> memory{};
    std::array<char, 32> packed{};
    memory.fill(1);
    const auto failures = fail_every_allocation([&] {
        const auto of = layout::parse("strided(4,8,16)"); // new each time, so that it is compiled each time
        if (!of) {
            return of.error() == UCS_ERR_NO_MEMORY;
        }
        void* const base  = memory.data();
        const auto status = ucp_layout_gather(of->get(), &base, 1, 0, packed.size(), packed.data());
        return status == UCS_OK || (status == UCS_ERR_NO_MEMORY && packed == std::array<char, 32>{});
    });
    EXPECT_GT(failures, 0) << "allocation " << -failures - 1;
}

TEST_F(failing_allocations, of_datatype_leave_nothing_behind)
{
    check<ucp_datatype_t>(
        [](ucp_datatype_t* made) {
            const auto of = layout::parse("strided(4,8,16)"); // new each time, so that its plan is compiled each time
            return of ? ucp_layout_datatype_create(of->get(), made) : of.error();
        },
        ucp_layout_datatype_destroy);
}

TEST_F(failing_allocations, of_a_list_of_buffers_leave_nothing_behind)
{
    std::array<char, 64> memory{};
    const ucp_dt_iov_t list[] = {{&memory[40], 5}, {&memory[3], 9}};
    check<ucp_layout_h>([&](ucp_layout_h* made) { return ucp_layout_from_iov(list, 2, memory.data(), made); },
                        ucp_layout_destroy);
}

class failing_allocations_of_map : public failing_allocations
{
protected:
    context _context;
    std::vector<std::byte> _memory = std::vector<std::byte>(1 << 16);

    void check_map(ucp_context_h context, unsigned flags)
    {
        std::size_t at = 0;
        check<ucp_layout_window_h>(
            [&](ucp_layout_window_h* made) {
                const auto of = layout::parse("strided(4,8,16)");
                if (!of) {
                    return of.error();
                }
                void* const base = _memory.data() + at++; // new each time, so that nothing is found again
                ucp_layout_map_params_t params{};
                params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
                params.layout     = of->get();
                params.flags      = flags;
                if (!(flags & UCP_LAYOUT_MAP_FLAG_ALLOCATE)) {
                    params.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
                    params.bases     = &base;
                    params.num_bases = 1;
                }
                return ucp_layout_map(context, &params, made);
            },
            [&](ucp_layout_window_h made) { EXPECT_EQ(ucp_layout_unmap(made), UCS_OK); });
        if (!(flags & UCP_LAYOUT_MAP_FLAG_ALLOCATE)) {
            check_unused(at);
        }
    }

    // None of the windows that were tried has a user left: rebinding refuses windows of several.
    void check_unused(std::size_t count)
    {
        const auto of = must(layout::parse("strided(4,8,16)"));
        for (std::size_t at = 0; at < count; ++at) {
            auto window    = ucx_layout::window::map(nullptr, of, _memory.data() + at);
            void* const to = _memory.data() + 8192 + at;
            ASSERT_TRUE(window);
            EXPECT_EQ(window->rebind(std::span(&to, 1)), UCS_OK) << "try " << at;
        }
    }
};

TEST_F(failing_allocations_of_map, over_given_memory_leave_nothing_behind)
{
    check_map(_context.get(), 0);
}

TEST_F(failing_allocations_of_map, without_a_context_leave_nothing_behind)
{
    check_map(nullptr, 0);
}

TEST_F(failing_allocations_of_map, of_an_exclusive_window_leave_nothing_behind)
{
    check_map(_context.get(), UCP_LAYOUT_MAP_FLAG_EXCLUSIVE);
}

TEST_F(failing_allocations_of_map, with_memory_leave_nothing_behind)
{
    check_map(_context.get(), UCP_LAYOUT_MAP_FLAG_ALLOCATE);
}

// What was not done yet is done by the next try.
TEST_F(failing_allocations_of_map, on_release_of_shared_memory_keep_its_handle)
{
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::byte* const start = _memory.data() + (-reinterpret_cast<std::uintptr_t>(_memory.data()) & (page - 1));
    ucp_layout_memory_params_t params{};
    params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                        UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS;
    params.length              = page;
    params.address             = start;
    params.flags               = UCP_LAYOUT_MEMORY_FLAG_MOVE;
    ucp_layout_memory_h memory = nullptr;
    ASSERT_EQ(ucp_layout_memory_create(&params, &memory), UCS_OK);
    const auto of     = must(layout::parse("strided(4,8,16)"));
    const auto window = must(ucx_layout::window::map(_context.get(), of, start));

    const auto is_handle = [&] {
        ucp_layout_memory_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH;
        return ucp_layout_memory_query(memory, &attr) == UCS_OK;
    };
    ucs_status_t status = UCS_OK;
    const auto failures = fail_every_allocation([&] {
        status = ucp_layout_memory_destroy(memory);
        return status == UCS_OK || (status == UCS_ERR_NO_MEMORY && is_handle());
    });
    EXPECT_GT(failures, 0) << "allocation " << -failures - 1;
    EXPECT_EQ(status, UCS_OK);
    logs().allow("no handle of shared memory");
    EXPECT_FALSE(is_handle());
}

TEST_F(failing_allocations_of_map, on_rebind_keep_the_old_bases)
{
    const auto of = must(layout::parse("strided(4,8,16)"));
    for (const unsigned flags : {0u, unsigned{UCP_LAYOUT_MAP_FLAG_EXCLUSIVE}}) {
        auto window = ucx_layout::window::map(_context.get(), of, _memory.data(), flags);
        ASSERT_TRUE(window);
        void* const to  = _memory.data() + 64;
        const auto base = [&] {
            void* found = nullptr;
            EXPECT_EQ(window->bases(std::span(&found, 1)), UCS_OK);
            return found;
        };
        const auto failures = fail_every_allocation([&] {
            const auto status = window->rebind(std::span(&to, 1));
            return status == UCS_OK ? base() == to : status == UCS_ERR_NO_MEMORY && base() == _memory.data();
        });
        EXPECT_GT(failures, 0);
    }
}

TEST_F(failing_allocations_of_map, on_a_memory_handle_leave_the_window_without_it)
{
    context second;
    const auto of = must(layout::parse("strided(4,8,16)"));
    auto window   = ucx_layout::window::map(nullptr, of, _memory.data());
    ASSERT_TRUE(window);
    check<ucp_mem_h>(
        [&](ucp_mem_h* made) {
            const auto status = ucp_layout_window_memh(window->get(), second.get(), made);
            if (status != UCS_OK) {
                logs().allow("no memory handle");
                EXPECT_EQ(window->detach(second.get()), UCS_ERR_INVALID_PARAM);
            }
            return status;
        },
        [&](ucp_mem_h) { EXPECT_EQ(window->detach(second.get()), UCS_OK); });
}

// Unmapping succeeds whatever fails: a window that cannot be kept for the next mapping goes.
TEST_F(failing_allocations_of_map, on_unmap_only_lose_the_window_that_was_to_be_kept)
{
    const auto of = must(layout::parse("strided(4,8,16)"));
    for (const unsigned flags : {0u, unsigned{UCP_LAYOUT_MAP_FLAG_EXCLUSIVE}}) {
        std::vector<ucx_layout::window> windows;
        for (int i = 0; i < 8; ++i) {
            windows.push_back(must(ucx_layout::window::map(_context.get(), of, _memory.data() + 4096 + i, flags)));
        }
        const auto failures = fail_every_allocation([&] {
            auto unmapped = std::move(windows.back());
            windows.pop_back();
            return true;
        });
        EXPECT_GT(failures, 0);
        ASSERT_FALSE(windows.empty());
    }
}

} // namespace
