// The table of memory handles: its own are told from all others, and places are used again.
#include "uct/ib/mlx5/domain/window_handle.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace
{

using namespace ucxl::mlx5;

TEST(handle_table, tells_its_handles_from_others)
{
    auto& table        = handle_table::instance();
    auto* const handle = table.take().value();
    const int on_stack = 0;
    const auto in_heap = std::make_unique<window_handle>();
    ASSERT_NE(handle, nullptr);
    EXPECT_TRUE(table.holds(handle));
    EXPECT_FALSE(table.holds(&on_stack));
    EXPECT_FALSE(table.holds(in_heap.get()));
    EXPECT_FALSE(table.holds(nullptr));
    EXPECT_FALSE(table.holds(reinterpret_cast<void*>(std::uintptr_t{0} - 1)));
    table.give_back(handle);
}

TEST(window_handle, begins_with_what_transports_read)
{
    const window_handle handle;
    EXPECT_EQ(static_cast<const void*>(&handle), static_cast<const transport_handle*>(&handle));
    EXPECT_EQ(static_cast<const void*>(&handle), &handle.lkey);
}

TEST(handle_table, uses_places_again_as_if_they_were_new)
{
    auto& table                               = handle_table::instance();
    auto* const first                         = table.take().value();
    first->lkey                               = 1;
    first->rkey                               = 2;
    first->flags                              = 3;
    first->record                             = std::make_shared<window_record>();
    const std::weak_ptr<window_record> record = first->record;
    table.give_back(first);
    EXPECT_TRUE(record.expired());
    auto* const second = table.take().value();
    const window_handle fresh;
    EXPECT_EQ(second, first);
    EXPECT_EQ(second->lkey, fresh.lkey);
    EXPECT_EQ(second->rkey, fresh.rkey);
    EXPECT_EQ(second->flags, 0u);
    EXPECT_EQ(second->record, nullptr);
    table.give_back(second);
}

TEST(handle_table, gives_each_thread_its_own)
{
    auto& table = handle_table::instance();
    std::vector<std::vector<window_handle*>> taken(4);
    std::vector<std::thread> threads;
    for (auto& own : taken) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                own.push_back(table.take().value());
                if (i % 3 == 0) {
                    table.give_back(own.back());
                    own.pop_back();
                }
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    std::set<window_handle*> all;
    std::size_t number = 0;
    for (const auto& own : taken) {
        number += own.size();
        all.insert(own.begin(), own.end());
    }
    EXPECT_EQ(all.size(), number);
    for (window_handle* const each : all) {
        table.give_back(each);
    }
}

} // namespace
