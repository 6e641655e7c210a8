// UCP registers a window in the domain of a device alone when it sends it. Its cache may not have that registration any
// more when another window has the addresses.
#include "shown_memory.h"

#include "support/log_guard.h"
#include "support/unmap_events.h"

#include <numeric>

namespace ucxl::test
{
namespace
{

constexpr unsigned kept = 1024; // UCX_LAYOUT_MAP_CACHE_SIZE

class registrations : public ucx_test
{
protected:
    // Maps a window in no context, so that it has no memory handle, calls use(window), and lets the window end. Returns
    // the number of events that its end was.
    template <typename Use>
    std::size_t events_of_end(Use&& use)
    {
        shown_memory memory(spec::strided(spec::block(64), {{800, 160}}));
        check_ok(memory.map(nullptr), "ucp_layout_map");
        use(memory);
        const unmap_events events(memory.window().address(), memory.length());
        memory.unmap();
        push_out();
        return events.count();
    }

private:
    // Of the cache of windows that nobody uses.
    static void push_out()
    {
        std::vector<std::byte> others(kept + 1);
        const auto layout = ucx_layout::layout::create_strided(1, {});
        check(layout.has_value(), "ucp_layout_create");
        for (std::byte& base : others) {
            check(ucx_layout::window::map(nullptr, *layout, &base).has_value(), "ucp_layout_map");
        }
    }
};

TEST_F(registrations, of_windows_end_with_them)
{
    own_peer peer;
    EXPECT_GT(events_of_end([&](shown_memory& memory) { memory.exchange(peer); }), 0u);
}

TEST_F(registrations, that_were_never_made_need_no_end)
{
    own_peer peer;
    EXPECT_EQ(events_of_end([](shown_memory&) {}), 0u);
}

// The same from outside: each address is used again, and the bytes are those of the window that has it.
TEST_F(registrations, are_never_those_of_a_window_that_had_the_address_before)
{
    constexpr std::size_t block = 64, number = 300, stride = 160;
    own_peer peer;
    std::vector<std::uint32_t> memory(1 << 20);
    std::iota(memory.begin(), memory.end(), 0u);
    std::vector<std::uint32_t> host(block * number / sizeof(std::uint32_t));
    const auto layout = ucx_layout::layout::create_strided(block, {{number, stride}});
    check(layout.has_value(), "ucp_layout_create");
    for (std::uint32_t turn = 0; turn < 3 * kept; ++turn) {
        void* const base  = &memory[turn];
        const auto window = ucx_layout::window::map(nullptr, *layout, base);
        check(window.has_value(), "ucp_layout_map in turn {}", turn);
        check_ok(peer.send(window->address(), host.data(), window->length()), "a send");
        ASSERT_EQ(host.front(), turn);
        ASSERT_EQ(host.back(), turn + ((number - 1) * stride + block) / sizeof(std::uint32_t) - 1);
    }
}

} // namespace
} // namespace ucxl::test
