// Layouts of equal content share a handle: from the first one to the last one, by all threads, and never with another
// content.
#include "support/alloc_failure.h"
#include "support/forked_process.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

namespace
{

using ucx_layout::layout;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::holds_in_child;
using ucxl::test::living_allocations;
using ucxl::test::must;
using ucxl::test::ucx_test;

class equal_layouts : public ucx_test
{
};

std::vector<std::byte> serialized(const layout& from)
{
    std::vector<std::byte> bytes(must(from.query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)).serialized_length);
    std::size_t length = bytes.size();
    EXPECT_EQ(ucp_layout_serialize(from.get(), bytes.data(), &length), UCS_OK);
    return bytes;
}

layout deserialized(const std::vector<std::byte>& bytes)
{
    ucp_layout_h made = nullptr;
    EXPECT_EQ(ucp_layout_deserialize(bytes.data(), bytes.size(), &made), UCS_OK);
    return layout(made);
}

std::uint64_t hash_of(const layout& from)
{
    return must(from.query(UCP_LAYOUT_ATTR_FIELD_HASH)).hash;
}

TEST_F(equal_layouts, have_one_handle_however_they_are_made)
{
    const auto created = must(layout::create_strided(8, {{64, 128}}));
    EXPECT_EQ(must(layout::parse("strided(64,8,128)")).get(), created.get());
    EXPECT_EQ(must(layout::parse("iov(strided(60,8,128)@0,8@7680,8@7808,8@7936,8@8064)")).get(), created.get());
    EXPECT_EQ(deserialized(serialized(created)).get(), created.get());
}

TEST_F(equal_layouts, are_not_those_that_differ_in_anything)
{
    const std::vector<layout> all = [] {
        std::vector<layout> made;
        for (const char* text :
             {"strided(64,8,128)", "strided(64,8,129)", "strided(65,8,128)", "strided(64,9,128)",
              "iov(strided(64,8,128)@1)", "iov(1:strided(64,8,128)@0)", "resized(strided(64,8,128),0,9000)",
              "resized(strided(64,8,128),0,9001)", "resized(strided(64,8,128),-1,9001)"}) {
            made.push_back(must(layout::parse(text)));
        }
        return made;
    }();
    for (const layout& one : all) {
        for (const layout& other : all) {
            EXPECT_EQ(one.get() == other.get(), &one == &other);
        }
    }
}

TEST_F(equal_layouts, live_as_long_as_the_last_of_them)
{
    std::array<std::byte, 64> memory;
    std::array<std::byte, 32> packed{};
    memory.fill(std::byte{7});
    void* const base = memory.data();
    auto last        = must(layout::parse("strided(4,8,16)"));
    for (int round = 0; round < 3; ++round) {
        const auto other = must(layout::parse("strided(4,8,16)"));
        EXPECT_EQ(ucp_layout_gather(other.get(), &base, 1, 0, packed.size(), packed.data()), UCS_OK);
    }
    packed = {};
    EXPECT_EQ(ucp_layout_gather(last.get(), &base, 1, 0, packed.size(), packed.data()), UCS_OK);
    EXPECT_EQ(packed[31], std::byte{7});
}

TEST_F(equal_layouts, leave_nothing_behind_after_the_last_handle)
{
    std::array<std::byte, 1024> memory{};
    std::array<std::byte, 32> packed;
    void* const base = memory.data();
    const auto make  = [&](int number) {
        const std::string text = "strided(4,8," + std::to_string(16 + number) + ")";
        const auto first       = must(layout::parse(text.c_str()));
        EXPECT_EQ(must(layout::parse(text.c_str())).get(), first.get());
        // With a plan, too.
        EXPECT_EQ(ucp_layout_gather(first.get(), &base, 1, 0, packed.size(), packed.data()), UCS_OK);
    };
    make(0);
    const auto before = living_allocations();
    for (int number = 1; number < 200; ++number) {
        make(number);
    }
    EXPECT_EQ(living_allocations(), before);
}

// The hash resists no adversary. These two were found by choosing words of the wire form that cancel out.
class colliding_layouts : public ucx_test
{
protected:
    static constexpr const char* one_text   = "iov(8@0,8@802977206184,8@10757529585568)";
    static constexpr const char* other_text = "iov(8@0,8@941424781712,8@-23656134414603)";
};

TEST_F(colliding_layouts, have_a_handle_each)
{
    const auto one   = must(layout::parse(one_text));
    const auto other = must(layout::parse(other_text));
    ASSERT_EQ(hash_of(one), hash_of(other)) << "the hash is another one: find other layouts";
    EXPECT_NE(one.get(), other.get());
    EXPECT_NE(must(one.query(UCP_LAYOUT_ATTR_FIELD_EXTENT)).extent,
              must(other.query(UCP_LAYOUT_ATTR_FIELD_EXTENT)).extent);
    EXPECT_EQ(must(layout::parse(one_text)).get(), one.get());
    EXPECT_EQ(must(layout::parse(other_text)).get(), other.get());
    EXPECT_EQ(deserialized(serialized(one)).get(), one.get());
    EXPECT_EQ(deserialized(serialized(other)).get(), other.get());
}

TEST_F(colliding_layouts, end_one_by_one)
{
    for (const auto& [first_text, second_text] : {std::pair{one_text, other_text}, {other_text, one_text}}) {
        std::optional first(must(layout::parse(first_text)));
        const auto second = must(layout::parse(second_text));
        first.reset();
        EXPECT_EQ(must(layout::parse(second_text)).get(), second.get());
        first.emplace(must(layout::parse(first_text)));
        EXPECT_NE(first->get(), second.get());
    }
}

TEST_F(colliding_layouts, have_a_window_each)
{
    const context used;
    const auto one   = must(layout::parse(one_text));
    const auto other = must(layout::parse(other_text));
    // Addresses only: nothing is read there. No window is within 20 TiB of them (arena.cc).
    void* const base        = reinterpret_cast<void*>(std::uintptr_t{106} << 40);
    const auto one_window   = must(window::map(used.get(), one, base));
    const auto other_window = must(window::map(used.get(), other, base));
    EXPECT_NE(one_window.address(), other_window.address());
    EXPECT_EQ(must(window::map(used.get(), one, base)).address(), one_window.address());
    EXPECT_EQ(must(window::map(used.get(), must(layout::parse(other_text)), base)).address(), other_window.address());
}

// Makes a layout that other threads make and destroy meanwhile, and uses it. Returns whether it showed the right bytes.
bool use_layout(std::size_t stride, bool with_window)
{
    const std::string text = "strided(4,8," + std::to_string(stride) + ")";
    const auto used        = must(layout::parse(text.c_str()));
    std::array<unsigned char, 128> memory;
    std::array<unsigned char, 32> packed;
    std::iota(memory.begin(), memory.end(), static_cast<unsigned char>(0));
    void* const base = memory.data();
    if (ucp_layout_gather(used.get(), &base, 1, 0, packed.size(), packed.data()) != UCS_OK) {
        return false;
    }
    for (std::size_t i = 0; i < packed.size(); ++i) {
        if (packed[i] != i / 8 * stride + i % 8) {
            return false;
        }
    }
    const auto equal = must(layout::parse(text.c_str()));
    return equal.get() == used.get() &&
           (!with_window || must(window::map(nullptr, equal, memory.data())).length() == packed.size());
}

// Threads that make and destroy the same layout all the time, with each handle perhaps the last one.
class making_threads
{
public:
    explicit making_threads(bool with_plans)
    {
        for (int id = 0; id < 3; ++id) {
            _threads.emplace_back([with_plans](const std::stop_token& stop) {
                while (!stop.stop_requested()) {
                    EXPECT_TRUE(with_plans ? use_layout(16, false) : bool(layout::parse("strided(4,8,24)")));
                }
            });
        }
    }

private:
    std::vector<std::jthread> _threads;
};

TEST_F(equal_layouts, are_made_and_destroyed_by_several_threads)
{
    const making_threads others(false);
    for (int round = 0; round < 200'000; ++round) {
        ASSERT_EQ(must(must(layout::parse("strided(4,8,24)")).query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH)).packed_length,
                  32u);
    }
}

TEST_F(equal_layouts, are_used_by_several_threads)
{
    const making_threads others(true);
    for (unsigned round = 0; round < 5000; ++round) {
        ASSERT_TRUE(use_layout(16 + round % 2, false));
        ASSERT_TRUE(round % 8 != 0 || use_layout(18, true));
    }
}

// Of a layout that no test maps: a window that is kept would keep its handle and plan.
constexpr std::size_t unmapped_stride = 20;

// Forks while another thread, which makes and uses the layout, is at its allocation of this number. Returns whether it
// got there. What it may hold there must not keep the child from doing the same.
bool fork_at_allocation(std::int64_t number)
{
    std::binary_semaphore is_there{0}, is_forked{0};
    bool got_there                   = false;
    const std::function<void()> halt = [&] {
        got_there = true;
        is_there.release();
        // No longer than that, because fork may have to wait for what this thread holds.
        (void)is_forked.try_acquire_for(std::chrono::milliseconds(50));
    };
    const std::jthread other([&] {
        ucxl::test::call_at_allocation(number, halt);
        EXPECT_TRUE(use_layout(unmapped_stride, false));
        ucxl::test::call_at_allocation(-1, halt);
        if (!got_there) {
            is_there.release();
        }
    });
    is_there.acquire();
    EXPECT_TRUE(holds_in_child([] { return use_layout(unmapped_stride, false); })) << "allocation " << number;
    is_forked.release();
    return got_there;
}

TEST_F(equal_layouts, are_made_in_a_child_whatever_another_thread_was_doing)
{
    std::int64_t number = 0;
    while (fork_at_allocation(number) && !HasFailure()) {
        ++number;
    }
    EXPECT_GT(number, 20);
}

} // namespace
