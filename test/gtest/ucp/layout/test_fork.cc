// A child of fork() has no threads but one, so it must not wait for a lock that another thread of its parent held.
#include "support/forked_process.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

namespace
{

using ucx_layout::layout;
using ucxl::test::holds_in_child;
using ucxl::test::must;
using ucxl::test::ucx_test;

class forks_among_calls : public ucx_test
{
protected:
    // A thread of the parent repeats `call` while children are made, and each child calls it once.
    static void check(const std::function<bool()>& call) { check(call, call); }

    static void check(const std::function<bool()>& call, const std::function<bool()>& in_child)
    {
        constexpr int num_children = 100;
        ASSERT_TRUE(call()); // what is made at the first call is there
        std::atomic<bool> is_right{true};
        const std::jthread caller([&](const std::stop_token& ends) {
            while (!ends.stop_requested()) {
                is_right = call() && is_right;
            }
        });
        for (int i = 0; i < num_children; ++i) {
            ASSERT_TRUE(holds_in_child(in_child)) << "child " << i;
        }
        EXPECT_TRUE(is_right);
    }
};

TEST_F(forks_among_calls, layouts_can_be_made)
{
    check([] { return layout::parse("iov(strided(4,8,16)@0,12@100,1:7@3)").has_value(); });
}

TEST_F(forks_among_calls, windows_can_be_made)
{
    const auto column = must(layout::parse("strided(4,8,16)"));
    std::array<std::byte, 4096> memory{};
    check([&] { return ucx_layout::window::map(nullptr, column, memory.data()).has_value(); });
}

TEST_F(forks_among_calls, shared_memory_can_be_made)
{
    ucp_layout_memory_params_t params{};
    params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH;
    params.length     = 4096;
    check([&] {
        ucp_layout_memory_h made = nullptr;
        return ucp_layout_memory_create(&params, &made) == UCS_OK && ucp_layout_memory_destroy(made) == UCS_OK;
    });
}

TEST_F(forks_among_calls, failures_can_be_watched)
{
    check([] {
        ucp_layout_failure_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL;
        return ucp_layout_failure_watch(nullptr, nullptr) == UCS_OK &&
               ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &attr) == UCS_OK;
    });
}

// The thread packs with new counts, which need new plans, of the datatype that the child packs with.
TEST_F(forks_among_calls, datatypes_can_pack)
{
    std::array<char, 32 * 64> memory{};
    std::atomic<ucp_datatype_t> shared{0};
    const auto pack = [&](ucp_datatype_t datatype, std::size_t count) {
        ucp_layout_datatype_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS | UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT;
        if (ucp_layout_datatype_query(datatype, &attr) != UCS_OK) {
            return false;
        }
        void* const state = attr.operations.start_pack(attr.context, memory.data(), count);
        attr.operations.finish(state);
        return state != nullptr;
    };
    const auto call = [&] {
        const auto described = must(layout::parse("strided(4,8,16)"));
        ucp_datatype_t made  = 0;
        bool is_right        = ucp_layout_datatype_create(described.get(), &made) == UCS_OK;
        const auto last      = shared.exchange(made);
        for (std::size_t count = 2; count < 60 && is_right; ++count) {
            is_right = pack(made, count);
        }
        ucp_layout_datatype_destroy(last);
        return is_right;
    };
    check(call, [&] { return pack(shared, 61) && holds_in_child([&] { return pack(shared, 62); }); });
    ucp_layout_datatype_destroy(shared);
}

} // namespace
