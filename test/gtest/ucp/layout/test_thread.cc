// Threads that share one UCP worker (UCS_THREAD_MODE_MULTI), each with windows of its own.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <algorithm>
#include <thread>
#include <vector>

namespace
{

using ucx_layout::layout;
using ucx_layout::window;
using ucxl::test::contiguous;
using ucxl::test::must;
using ucxl::test::ucp_pair;
using ucxl::test::ucx_test;

constexpr std::size_t rows = 64;
constexpr std::size_t line = 128;
constexpr int num_threads  = 4;
constexpr int num_rounds   = 50;

// Sends a column from a window and receives it in another window, then in plain memory.
void exchange(ucp_pair& loop, const layout& column, int id)
{
    std::vector<std::byte> from(rows * line);
    std::vector<std::byte> to(rows * line);
    std::vector<std::byte> packed(rows * 8);
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(id));
    }
    for (int round = 0; round < num_rounds; ++round) {
        const auto source = window::map(loop.context(), column, from.data());
        const auto target = window::map(loop.context(), column, to.data());
        ASSERT_TRUE(source && target);
        const auto tag  = static_cast<ucp_tag_t>(id) + 1;
        const auto sent = contiguous(source->address(), source->length());
        std::ranges::fill(to, std::byte{0});
        ASSERT_EQ(loop.transfer(sent, contiguous(target->address(), target->length()), tag), UCS_OK);
        ASSERT_EQ(loop.transfer(sent, contiguous(packed.data(), packed.size()), tag), UCS_OK);
        for (std::size_t i = 0; i < to.size(); ++i) {
            const bool in_column = i % line < 8;
            ASSERT_EQ(to[i], in_column ? from[i] : std::byte{0});
            ASSERT_TRUE(!in_column || packed[i / line * 8 + i % line] == from[i]);
        }
    }
}

class shared_worker : public ucx_test
{
};

TEST_F(shared_worker, threads_send_and_receive_windows)
{
    ucp_pair loop({.self = true, .thread_mode = UCS_THREAD_MODE_MULTI});
    ucp_worker_attr_t attr{};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
    ASSERT_EQ(ucp_worker_query(loop.worker(0), &attr), UCS_OK);
    if (attr.thread_mode != UCS_THREAD_MODE_MULTI) {
        GTEST_SKIP() << "this UCX was built without UCS_THREAD_MODE_MULTI";
    }
    const auto column = must(layout::create_strided(8, {{rows, line}}));
    std::vector<std::jthread> threads;
    for (int id = 0; id < num_threads; ++id) {
        threads.emplace_back([&loop, &column, id] { exchange(loop, column, id); });
    }
}

} // namespace
