// Create, destroy, rebind and find from many threads at once; meant for ThreadSanitizer too.
#include "support/forked_process.h"
#include "support/must.h"
#include "support/random.h"
#include "support/wait_until.h"
#include "window_helpers.h"

#include <chrono>
#include <climits>
#include <thread>

#include <pthread.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr unsigned num_threads = 4;
constexpr unsigned num_steps   = 2000;

void run_in_threads(const std::function<void(unsigned)>& fn)
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < num_threads; ++i) {
        threads.emplace_back(fn, i);
    }
    for (std::thread& one : threads) {
        one.join();
    }
}

// Destructors of keys run after those of thread_local objects, and the next thread has the same addresses.
TEST(reader_sections, that_a_thread_opens_first_at_its_end_are_not_waited_for_afterwards)
{
    static pthread_key_t key;
    static constinit thread_local unsigned rounds = 0;
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* value) {
                                     const reader_section section;
                                     if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
                                         pthread_setspecific(key, value);
                                     }
                                 }),
              0);
    for (unsigned i = 0; i < 5; ++i) {
        std::thread([] { pthread_setspecific(key, &key); }).join();
        wait_for_readers(); // for ever, if the list leads in a circle
    }
    pthread_key_delete(key);
}

// What every window of the next test is bound to, so that a reader can see that what it found is whole.
std::byte* base_of(std::uint64_t length)
{
    return reinterpret_cast<std::byte*>(length * 16);
}

TEST(registry_threads, create_and_destroy_with_lookups_of_stale_addresses)
{
    const auto registry = private_registry(64 * mib);
    std::atomic<bool> stop{false};
    std::atomic<unsigned> hits{0};
    std::vector<std::thread> readers;
    for (unsigned i = 0; i < 2; ++i) {
        readers.emplace_back([&, i] {
            ucxl::test::random from(i + 1);
            while (!stop.load()) {
                const std::byte* address = registry->arena_base() + (from.below(256) << 16);
                const reader_section guard;
                if (const window* found = registry->find(address, 1); found != nullptr) {
                    const window_binding& binding = found->binding();
                    EXPECT_EQ(binding.plan->packed_length(), found->length());
                    EXPECT_EQ(binding.bases.at(0), base_of(found->length()));
                    hits.fetch_add(1);
                }
            }
        });
    }
    run_in_threads([&](unsigned thread) {
        ucxl::test::random from(thread + 100);
        std::vector<window*> mine;
        // The readers may get no processor for a while.
        for (unsigned step = 0; step < num_steps || (hits.load() == 0 && step < 1000 * num_steps); ++step) {
            if (mine.size() < 50 && (mine.empty() || from.one_in(2))) {
                const std::uint64_t length = 1 + from.below(60000);
                mine.push_back(must(registry->create(binding_of(length, base_of(length)))));
            } else {
                std::swap(mine.back(), mine[from.below(mine.size())]);
                window* one = mine.back();
                EXPECT_EQ(registry->find(one->address(), one->length()), one);
                registry->destroy(one);
                mine.pop_back();
            }
        }
        for (window* one : mine) {
            registry->destroy(one);
        }
    });
    stop.store(true);
    for (std::thread& one : readers) {
        one.join();
    }
    EXPECT_EQ(registry->num_live(), 0u);
    EXPECT_GT(hits.load(), 0u);
}

TEST(registry_threads, rebind_while_others_read)
{
    const auto registry = private_registry(64 * mib);
    std::byte memory[2][8];
    window* one = must(registry->create(binding_of(8, memory[0])));
    std::atomic<bool> stop{false};
    std::atomic<unsigned> reads{0};
    std::thread reader([&] {
        while (!stop.load()) {
            const reader_section guard;
            const std::byte* base = one->binding().bases.at(0);
            EXPECT_TRUE(base == memory[0] || base == memory[1]);
            ++reads;
            reads.notify_one();
        }
    });
    reads.wait(0); // the reader may get no processor for a while
    for (unsigned step = 0; step < num_steps; ++step) {
        ASSERT_TRUE(registry->rebind(*one, binding_of(8, memory[step % 2])).has_value());
    }
    stop.store(true);
    reader.join();
    registry->destroy(one);
}

TEST(registry_threads, destroy_waits_for_an_open_section)
{
    const auto registry    = private_registry(64 * mib);
    window* one            = must(registry->create(binding_of(8)));
    const std::byte* where = one->address();
    std::atomic<bool> is_destroyed{false};
    std::thread destroyer;
    {
        const reader_section outer;
        const reader_section nested;
        const window* found = registry->find(where, 8);
        ASSERT_EQ(found, one);
        destroyer = std::thread([&] {
            registry->destroy(one);
            is_destroyed.store(true);
        });
        while (registry->find(where, 8) != nullptr) {
            std::this_thread::yield();
        }
        // It has asked many times by now.
        clockid_t clock;
        EXPECT_EQ(pthread_getcpuclockid(destroyer.native_handle(), &clock), 0);
        const double before = processor_seconds(clock);
        EXPECT_TRUE(wait_until([&] { return is_destroyed.load() || processor_seconds(clock) > before + 0.005; }));
        EXPECT_FALSE(is_destroyed.load());
        EXPECT_EQ(found->length(), 8u);
    }
    destroyer.join();
}

// In a process where only this thread has opened sections so far. Another one takes the window away again and again
// while they are opened and closed, and so has to learn of them.
bool section_holds_against_a_second_thread(unsigned num_rounds)
{
    const auto registry    = private_registry(64 * mib);
    window* one            = must(registry->create(binding_of(8)));
    const std::byte* where = one->address();
    std::atomic<bool> is_reading{false};
    std::atomic<bool> is_gone{false};
    std::atomic<bool> is_done{false};
    const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    std::thread second([&] {
        while (!is_reading.load(std::memory_order_relaxed)) {
        }
        for (unsigned i = 0; i < num_rounds; ++i) {
            // Where both threads share a core, each round waits for the scheduler.
            if (i % 64 == 63 && std::chrono::steady_clock::now() > enough) {
                break;
            }
            registry->unpublish(*one);
            is_gone.store(true, std::memory_order_relaxed);
            for (unsigned look = 0; look < 50; ++look) {
                static_cast<void>(is_gone.load(std::memory_order_relaxed)); // gives a section time to see it
            }
            is_gone.store(false, std::memory_order_relaxed);
            registry->publish(*one);
        }
        is_done.store(true);
    });
    bool was_held = true;
    std::vector<std::byte> elsewhere(4 * mib);
    std::size_t place = 0;
    while (!is_done.load(std::memory_order_relaxed)) {
        // Stores that the caches do not hold keep the start of the section waiting behind them.
        for (unsigned store = 0; store < 8; ++store) {
            place                                              = (place + 4096 + 64) % elsewhere.size();
            static_cast<volatile std::byte&>(elsewhere[place]) = std::byte{1};
        }
        const reader_section guard;
        const bool is_there = registry->find(where, 8) != nullptr;
        is_reading.store(true, std::memory_order_relaxed);
        for (unsigned look = 0; look < 20 && is_there; ++look) {
            was_held = was_held && !is_gone.load(std::memory_order_relaxed);
        }
    }
    second.join();
    registry->destroy(one);
    return was_held;
}

TEST(registry_threads, second_thread_of_a_process_waits_for_sections_of_the_first_one)
{
    // A new process, because threads of other tests have opened sections in this one.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            bool all = true;
            for (unsigned i = 0; i < 100; ++i) {
                const unsigned num_rounds = i < 90 ? 1 : 20000;
                all = all && holds_in_child([&] { return section_holds_against_a_second_thread(num_rounds); });
            }
            _exit(all ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(registry_threads, first_use_of_the_registry_of_the_process)
{
    std::atomic<unsigned> made{0};
    run_in_threads([&](unsigned) {
        window* one = must(window_registry::instance().create(binding_of(1)));
        made.fetch_add(window_registry::instance().find(one->address(), 1) == one ? 1 : 0);
        window_registry::instance().destroy(one);
    });
    EXPECT_EQ(made.load(), num_threads);
}

TEST(registry_threads, carved_slots_are_given_back_under_lookups)
{
    const auto registry = private_registry(64 * mib);
    std::atomic<bool> stop{false};
    std::atomic<unsigned> searches{0};
    std::thread reader([&] {
        ucxl::test::random from(run_seed());
        while (!stop.load()) {
            const reader_section guard;
            (void)registry->find(registry->arena_base() + from.below(64 * mib), 1);
            ++searches;
            searches.notify_one();
        }
    });
    searches.wait(0);
    for (unsigned step = 0; step < 100; ++step) {
        window* small = must(registry->create(binding_of(1)));
        registry->destroy(small);
        window* large = must(registry->create(binding_of(60 * mib)));
        registry->destroy(large);
    }
    stop.store(true);
    reader.join();
}

} // namespace
