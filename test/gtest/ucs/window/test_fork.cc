#include "window_helpers.h"

#include "support/forked_process.h"
#include "support/must.h"

#include <thread>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

// ASan's allocator unlocks its mutexes in the child of a fork, but leaves them marked for a waiter that did not come
// along: two threads of the child that meet at one may then wait for ever. ThreadSanitizer ends a child of a process
// with threads that starts one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool threads_after_fork = false;
#else
constexpr bool threads_after_fork = true;
#endif

TEST(registry_fork, child_has_the_windows_and_may_make_others)
{
    window_registry& registry = window_registry::instance();
    std::byte memory[16]{std::byte{1}};
    window* one = must(registry.create(binding_of(16, memory)));
    EXPECT_TRUE(holds_in_child([&] {
        const window* found = registry.find(one->address(), 16);
        if (found != one || found->binding().bases.at(0)[0] != std::byte{1}) {
            return false;
        }
        window* other = must(registry.create(binding_of(16, memory)));
        registry.destroy(one);
        registry.destroy(other);
        return registry.num_live() == 0;
    }));
    EXPECT_EQ(registry.find(one->address(), 16), one) << "the parent keeps its own";
    registry.destroy(one);
}

TEST(registry_fork, no_lock_or_section_is_inherited)
{
    const auto registry = private_registry(64 * mib);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        while (!stop.load()) {
            registry->destroy(must(registry->create(binding_of(1))));
        }
    });
    threads.emplace_back([&] {
        while (!stop.load()) {
            const reader_section guard;
            std::this_thread::sleep_for(std::chrono::microseconds(100)); // synchronises nothing: forks fall into it
        }
    });
    for (unsigned i = 0; i < 50; ++i) {
        EXPECT_TRUE(holds_in_child([&] {
            for (unsigned step = 0; step < 10; ++step) {
                registry->destroy(must(registry->create(binding_of(1))));
            }
            if (threads_after_fork) {
                // A thread of the child may get the stack of one that did not come along.
                std::thread([&] { registry->destroy(must(registry->create(binding_of(1)))); }).join();
            }
            return true;
        }));
    }
    stop.store(true);
    for (std::thread& one : threads) {
        one.join();
    }
}

} // namespace
