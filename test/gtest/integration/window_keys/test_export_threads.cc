// Several threads of one context export, import and unmap at once, while the pool's own thread makes keys and ends
// those that are idle for a millisecond.
#include "device_control.h"
#include "dpu.h"
#include "own_peer.h"
#include "shown_memory.h"

#include "support/log_guard.h"
#include "support/random.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

namespace ucxl::test
{
namespace
{

constexpr unsigned num_threads = 3;
constexpr unsigned rounds      = 40;

void expect_read(dpu_side& dpu, ucp_mem_h memh, const void* address, std::span<const std::byte> expected)
{
    const auto packed = exported(memh);
    check(!packed.empty(), "nothing was exported");
    const imported_memory imported(dpu.context(), packed);
    check_ok(imported.status(), "import");
    std::vector<std::byte> got(expected.size());
    check_ok(dpu.read(imported, address, got), "read");
    check(std::ranges::equal(got, expected), "the DPU has read other bytes");
}

void share_windows_and_buffers(ucp_context_h host, ucp_context_h importing, std::uint64_t seed)
{
    constexpr std::size_t block = 64, number = 300, distance = 160;
    random random(seed);
    dpu_side dpu(importing);
    std::vector<std::unique_ptr<plain_buffer>> kept;
    for (unsigned round = 0; round < rounds; ++round) {
        auto buffer = std::make_unique<plain_buffer>(host, 4096 * (1 + random.below(4)));
        for (std::byte& each : buffer->bytes()) {
            each = static_cast<std::byte>(random.next());
        }
        expect_read(dpu, buffer->memh(), buffer->address(), buffer->bytes());
        if (random.one_in(3)) {
            kept.push_back(std::move(buffer)); // so that keys come back in another order than they went
        } else if (random.one_in(4)) {
            kept.clear();
        }
        if (random.one_in(4)) {
            std::vector<std::byte> memory(number * distance);
            std::vector<std::byte> message;
            for (std::size_t i = 0; i < memory.size(); ++i) {
                memory[i] = static_cast<std::byte>(random.next());
                if (i % distance < block) {
                    message.push_back(memory[i]);
                }
            }
            const auto layout = ucx_layout::layout::create_strided(block, {{number, distance}});
            auto window       = ucx_layout::window::map(host, layout.value(), memory.data());
            check(window.has_value(), "ucp_layout_map");
            expect_read(dpu, window->memh(), window->address(), message);
        }
        if (random.one_in(5)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2)); // for keys to become idle
        }
    }
}

class export_threads : public ucx_test, public testing::WithParamInterface<const char*>
{
protected:
    struct option {
        option(const char* name, const char* value) : _name(name), _before(std::getenv(name) ? std::getenv(name) : "")
        {
            setenv(name, value, 1);
        }
        ~option()
        {
            if (_before.empty()) {
                unsetenv(_name);
            } else {
                setenv(_name, _before.c_str(), 1);
            }
        }
        option(const option&)            = delete;
        option& operator=(const option&) = delete;

    private:
        const char* _name;
        std::string _before;
    };

    const option _idle{"UCX_LAYOUT_KEYS_EXPORT_IDLE", "1ms"};
    const option _spare{"UCX_LAYOUT_KEYS_EXPORT_SPARE", "2"};
    const option _empty{"UCX_LAYOUT_KEYS_EXPORT_EMPTY", GetParam()};
    const option _wait{"UCX_LAYOUT_KEYS_EXPORT_WAIT", "30s"};
};

TEST_P(export_threads, share_memory_while_the_pool_grows_and_shrinks)
{
    const device_control device;
    const auto before = device.objects();
    const auto begin  = std::chrono::steady_clock::now();
    {
        const own_peer host({.for_threads = true});
        // UCX's cache of imported memory ends the process when addresses come again with other lengths.
        auto options        = dpu_context(false);
        options.for_threads = true;
        const test::context importing(options);
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < num_threads; ++i) {
            threads.emplace_back([&, i] {
                try {
                    share_windows_and_buffers(host.context(), importing.get(), derive_seed(run_seed(), i));
                } catch (const std::exception& failure) {
                    ADD_FAILURE() << failure.what();
                }
            });
        }
        threads.clear();
    }
    EXPECT_EQ(device.objects(), before);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "an export waited in vain";
}

INSTANTIATE_TEST_SUITE_P(when_empty, export_threads, testing::Values("grow", "wait", "fresh"),
                         [](const auto& each) { return each.param; });

} // namespace
} // namespace ucxl::test
