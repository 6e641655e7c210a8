// ucp_layout_map and what belongs to it, in one process: sharing, rebinding, allocation, refusals, transfers to itself.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace
{

using ucx_layout::layout;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::must;
using ucxl::test::open_worker;
using ucxl::test::ucx_test;

class mapping : public ucx_test
{
protected:
    context _context;
    layout _column                 = must(layout::create_strided(8, {{64, 128}}));
    std::vector<std::byte> _matrix = std::vector<std::byte>(64 * 128);
    std::vector<std::byte> _other  = std::vector<std::byte>(64 * 128);
};

TEST_F(mapping, gives_an_address_as_long_as_the_packed_layout)
{
    auto column = window::map(_context.get(), _column, _matrix.data());
    ASSERT_TRUE(column);
    EXPECT_NE(column->address(), nullptr);
    EXPECT_EQ(column->length(), 64u * 8);
    ucp_mem_attr_t attr;
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH | UCP_MEM_ATTR_FIELD_MEM_TYPE;
    EXPECT_EQ(ucp_mem_query(column->memh(), &attr), UCS_OK);
    EXPECT_EQ(attr.address, column->address());
    EXPECT_EQ(attr.length, column->length());
    EXPECT_EQ(attr.mem_type, UCS_MEMORY_TYPE_RDMA);
}

TEST_F(mapping, of_the_same_content_again_is_the_same_window)
{
    const auto equal = must(layout::parse("strided(64,8,128)"));
    auto first       = window::map(_context.get(), _column, _matrix.data());
    auto second      = window::map(_context.get(), equal, _matrix.data());
    auto elsewhere   = window::map(_context.get(), _column, _other.data());
    EXPECT_EQ(first->address(), second->address());
    EXPECT_EQ(first->memh(), second->memh());
    EXPECT_NE(first->get(), second->get()) << "every mapping has a handle of its own";
    EXPECT_NE(first->address(), elsewhere->address());
}

TEST_F(mapping, after_the_last_unmap_finds_the_same_window_again)
{
    void* const before = must(window::map(_context.get(), _column, _matrix.data())).address();
    EXPECT_EQ(must(window::map(_context.get(), _column, _matrix.data())).address(), before);
}

// The handles must end before their context, and the windows of the loop push each other out of the cache.
TEST_F(mapping, after_the_last_unmap_keeps_its_memory_handle_while_there_are_workers)
{
    std::vector<std::byte> many(100000);
    context second;
    for (int round = 0; round < 2; ++round) {
        ucp_worker_h worker    = open_worker(second.get());
        const ucp_mem_h before = must(window::map(second.get(), _column, _matrix.data())).memh();
        auto held = window::map(_context.get(), _column, _other.data()); // takes the place of a freed handle
        EXPECT_EQ(must(window::map(second.get(), _column, _matrix.data())).memh(), before);
        for (std::size_t i = 0; i < many.size() - _matrix.size(); i += 16) {
            EXPECT_TRUE(window::map(i % 32 == 0 ? second.get() : _context.get(), _column, many.data() + i));
        }
        ucp_worker_destroy(worker);
    }
}

TEST_F(mapping, is_shared_by_contexts_with_a_memory_handle_each)
{
    context second;
    auto here  = window::map(_context.get(), _column, _matrix.data());
    auto there = window::map(second.get(), _column, _matrix.data());
    EXPECT_EQ(here->address(), there->address());
    EXPECT_NE(here->memh(), there->memh());
}

TEST_F(mapping, an_empty_layout_gives_an_address_and_length_zero)
{
    const auto empty = must(layout::create_contig(0, {8, nullptr}));
    auto first       = window::map(_context.get(), empty, _matrix.data());
    auto second      = window::map(_context.get(), empty, _other.data());
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->length(), 0u);
    EXPECT_NE(first->address(), second->address());
}

TEST_F(mapping, rebind_keeps_address_and_handle)
{
    auto column        = window::map(_context.get(), _column, _matrix.data());
    void* const before = column->address();
    void* const to     = _other.data();
    EXPECT_EQ(column->rebind(std::span(&to, 1)), UCS_OK);
    EXPECT_EQ(column->address(), before);
    void* base = nullptr;
    EXPECT_EQ(column->bases(std::span(&base, 1)), UCS_OK);
    EXPECT_EQ(base, _other.data());
    // Found by its new content, and no longer by the old one.
    EXPECT_EQ(must(window::map(_context.get(), _column, _other.data())).address(), before);
    EXPECT_NE(must(window::map(_context.get(), _column, _matrix.data())).address(), before);
}

TEST_F(mapping, rebind_of_a_shared_window_is_refused)
{
    auto first     = window::map(_context.get(), _column, _matrix.data());
    auto second    = window::map(_context.get(), _column, _matrix.data());
    void* const to = _other.data();
    logs().expect("mapped 2 times");
    EXPECT_EQ(first->rebind(std::span(&to, 1)), UCS_ERR_BUSY);
}

TEST_F(mapping, rebind_checks_the_number_of_bases)
{
    auto column             = window::map(_context.get(), _column, _matrix.data());
    const void* const two[] = {_matrix.data(), _other.data()};
    logs().expect("num_bases is 2, the layout has 1 sources");
    EXPECT_EQ(column->rebind(two), UCS_ERR_INVALID_PARAM);
}

TEST_F(mapping, allocates_zeroed_memory_for_every_source)
{
    const ucp_layout_iov_t parts[] = {{0, -100, {8, nullptr}}, {1, 4000, {100, nullptr}}, {0, 100, {8, nullptr}}};
    auto memory                    = window::allocate(_context.get(), must(layout::concatenate(parts)));
    ASSERT_TRUE(memory);
    void* bases[2];
    ASSERT_EQ(memory->bases(bases), UCS_OK);
    const auto* first  = static_cast<const std::byte*>(bases[0]);
    const auto* second = static_cast<const std::byte*>(bases[1]);
    EXPECT_EQ(std::count(first - 100, first + 108, std::byte{0}), 208);
    EXPECT_EQ(std::count(second + 4000, second + 4100, std::byte{0}), 100);
    std::memset(static_cast<std::byte*>(bases[1]) + 4000, 1, 100);
}

TEST_F(mapping, allocated_contiguous_memory_is_also_at_the_window_address)
{
    auto memory = window::allocate(_context.get(), must(layout::create_contig(1000, {8, nullptr})));
    void* base;
    ASSERT_EQ(memory->bases(std::span(&base, 1)), UCS_OK);
    std::memset(base, 0x5a, 8000);
    EXPECT_EQ(std::memcmp(memory->address(), base, 8000), 0);
    static_cast<std::byte*>(memory->address())[7999] = std::byte{1};
    EXPECT_EQ(static_cast<std::byte*>(base)[7999], std::byte{1});
}

TEST_F(mapping, allocation_is_never_shared)
{
    const auto of = must(layout::create_contig(8));
    auto first    = window::allocate(_context.get(), of);
    auto second   = window::allocate(_context.get(), of);
    EXPECT_NE(first->address(), second->address());
}

TEST_F(mapping, allocation_has_bounds_set_by_the_user_too)
{
    auto memory = window::allocate(_context.get(), must(layout::parse("resized(8,-5000,20000)")));
    ASSERT_TRUE(memory);
    void* base;
    ASSERT_EQ(memory->bases(std::span(&base, 1)), UCS_OK);
    std::memset(static_cast<std::byte*>(base) - 5000, 1, 20000);
    EXPECT_EQ(*static_cast<std::byte*>(memory->address()), std::byte{1});
}

TEST_F(mapping, of_one_base_gives_window_and_address_at_once)
{
    ucp_layout_window_h made = nullptr;
    void* address            = nullptr;
    ASSERT_EQ(ucp_layout_map_base(_context.get(), _column.get(), _matrix.data(), &made, &address), UCS_OK);
    const auto same = must(window::map(_context.get(), _column, _matrix.data()));
    EXPECT_EQ(address, same.address()) << "as ucp_layout_map";
    ucp_layout_window_attr_t attr{};
    attr.field_mask =
        UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH | UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS;
    EXPECT_EQ(ucp_layout_window_query(made, &attr), UCS_OK);
    EXPECT_EQ(attr.address, address);
    EXPECT_EQ(attr.memh, same.memh());
    EXPECT_NE(attr.memh, nullptr);
    EXPECT_EQ(attr.flags, 0u);
    EXPECT_EQ(ucp_layout_unmap(made), UCS_OK);
}

TEST_F(mapping, of_one_base_needs_no_base_for_no_bytes)
{
    ucp_layout_window_h made = nullptr;
    void* address            = nullptr;
    ASSERT_EQ(ucp_layout_map_base(nullptr, must(layout::create_contig(0)).get(), nullptr, &made, &address), UCS_OK);
    EXPECT_NE(address, nullptr);
    EXPECT_EQ(ucp_layout_unmap(made), UCS_OK);
}

TEST_F(mapping, of_one_base_refuses_what_it_cannot_map_and_writes_nothing)
{
    const auto pair          = must(layout::parse("iov(0:4@0,1:4@0)"));
    auto* const untouched    = reinterpret_cast<ucp_layout_window_h>(&_context);
    ucp_layout_window_h made = untouched;
    void* address            = &made;
    context without("posix,self");
    const auto map = [&](ucp_context_h context, const layout& shape, void* base) {
        const auto status = ucp_layout_map_base(context, shape.get(), base, &made, &address);
        EXPECT_EQ(made, untouched);
        EXPECT_EQ(address, &made);
        return status;
    };
    logs().expect("ucp_layout_map_base: bases[0] is NULL, and the layout describes bytes of source 0");
    logs().expect("ucp_layout_map_base: num_bases is 1, the layout has 2 sources");
    logs().expect("ucp_layout_map_base: the transport lay_copy is not in this UCP context");
    EXPECT_EQ(map(nullptr, _column, nullptr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(map(nullptr, pair, _matrix.data()), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(map(without.get(), _column, _matrix.data()), UCS_ERR_NO_DEVICE);
}

TEST_F(mapping, query_returns_the_layout)
{
    auto column = window::map(_context.get(), _column, _matrix.data());
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_LAYOUT | UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS;
    ASSERT_EQ(ucp_layout_window_query(column->get(), &attr), UCS_OK);
    const layout back(attr.layout);
    EXPECT_EQ(back.query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash, _column.query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash);
    EXPECT_EQ(attr.address, column->address());
}

TEST_F(mapping, without_our_transport_fails_and_says_what_to_set)
{
    context without("posix,self");
    logs().expect("UCX_TLS");
    EXPECT_EQ(window::map(without.get(), _column, _matrix.data()).error(), UCS_ERR_NO_DEVICE);
}

// A window known to one context must not make another one, which lacks our transport, look good.
TEST_F(mapping, the_check_for_our_transport_is_per_context)
{
    auto good = window::map(_context.get(), _column, _matrix.data());
    logs().expect("lay_copy is not in this UCP context");
    for (int round = 0; round < 3; ++round) {
        context without("posix,self");
        EXPECT_EQ(window::map(without.get(), _column, _matrix.data()).error(), UCS_ERR_NO_DEVICE);
    }
}

// UCP then has a registration of the window in its cache, and need not ask our transport again.
TEST_F(mapping, the_check_for_our_transport_knows_of_registrations_by_the_user)
{
    auto first = window::map(_context.get(), _column, _matrix.data());
    context second;
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = first->address();
    params.length      = first->length();
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memh     = nullptr;
    ASSERT_EQ(ucp_mem_map(second.get(), &params, &memh), UCS_OK);
    EXPECT_EQ(ucp_mem_unmap(second.get(), memh), UCS_OK);
    EXPECT_TRUE(window::map(second.get(), _column, _matrix.data()));
}

struct bad_map {
    const char* name;
    void (*change)(ucp_layout_map_params_t&);
    ucs_status_t status;
    const char* message;
};

void PrintTo(const bad_map& shown, std::ostream* to)
{
    *to << shown.name;
}

class map_refuses : public ucx_test, public testing::WithParamInterface<bad_map>
{
};

TEST_P(map_refuses, with_a_message_that_names_the_field)
{
    context used;
    const auto column = must(layout::create_strided(8, {{64, 128}}));
    std::vector<std::byte> matrix(64 * 128);
    void* const base = matrix.data();
    ucp_layout_map_params_t params{};
    params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
    params.layout     = column.get();
    params.bases      = &base;
    params.num_bases  = 1;
    GetParam().change(params);
    logs().expect(GetParam().message);
    ucp_layout_window_h made = nullptr;
    EXPECT_EQ(ucp_layout_map(used.get(), &params, &made), GetParam().status);
    EXPECT_EQ(made, nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    fields, map_refuses,
    testing::Values(
        bad_map{"no_layout", [](auto& p) { p.field_mask &= ~std::uint64_t{UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT}; },
                UCS_ERR_INVALID_PARAM, "layout is required"},
        bad_map{"layout_null", [](auto& p) { p.layout = nullptr; }, UCS_ERR_INVALID_PARAM, "layout is required"},
        bad_map{"no_bases", [](auto& p) { p.field_mask &= ~std::uint64_t{UCP_LAYOUT_MAP_PARAM_FIELD_BASES}; },
                UCS_ERR_INVALID_PARAM, "bases are required"},
        bad_map{"bases_null", [](auto& p) { p.bases = nullptr; }, UCS_ERR_INVALID_PARAM, "bases is NULL"},
        bad_map{"base_null",
                [](auto& p) {
                    static void* const null = nullptr;
                    p.bases                 = &null;
                },
                UCS_ERR_INVALID_PARAM, "bases[0] is NULL, and the layout describes bytes of source 0"},
        bad_map{"wrong_number", [](auto& p) { p.num_bases = 2; }, UCS_ERR_INVALID_PARAM, "num_bases is 2"},
        bad_map{"unknown_bit", [](auto& p) { p.field_mask |= 1u << 30; }, UCS_ERR_INVALID_PARAM, "field_mask"},
        bad_map{"unknown_flag",
                [](auto& p) {
                    p.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
                    p.flags = 9;
                },
                UCS_ERR_INVALID_PARAM, "flags 0x9 has unknown bits 0x8"},
        bad_map{"host_instead_of_no_card",
                [](auto& p) {
                    p.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
                    p.flags = UCP_LAYOUT_MAP_FLAG_OR_HOST;
                },
                UCS_ERR_INVALID_PARAM, "needs UCP_LAYOUT_MAP_FLAG_ALLOCATE and base_memory_type UCS_MEMORY_TYPE_RDMA"},
        bad_map{"bases_and_allocate",
                [](auto& p) {
                    p.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
                    p.flags = UCP_LAYOUT_MAP_FLAG_ALLOCATE;
                },
                UCS_ERR_INVALID_PARAM, "must not be set"},
        bad_map{"memory_type",
                [](auto& p) {
                    p.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE;
                    p.base_memory_type = UCS_MEMORY_TYPE_CUDA;
                },
                UCS_ERR_UNSUPPORTED, "base_memory_type"},
        bad_map{"unknown_memory_type",
                [](auto& p) {
                    p.field_mask |= UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE;
                    p.base_memory_type = UCS_MEMORY_TYPE_LAST;
                },
                UCS_ERR_INVALID_PARAM, "is unknown"}),
    [](const auto& test) { return test.param.name; });

TEST_F(mapping, threads_map_share_and_unmap_the_same_things)
{
    constexpr int num_threads = 4;
    std::vector<std::thread> threads;
    for (int id = 0; id < num_threads; ++id) {
        threads.emplace_back([&, id] {
            for (int round = 0; round < 200; ++round) {
                auto shared = window::map(_context.get(), _column, _matrix.data());
                auto own    = window::map(_context.get(), _column, _other.data() + id);
                ASSERT_TRUE(shared && own);
                ASSERT_NE(shared->address(), own->address());
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

} // namespace
