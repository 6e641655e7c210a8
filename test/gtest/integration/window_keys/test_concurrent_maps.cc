// Windows that one thread maps into a context while another thread registers windows there, the same one or others.
#include "shown_memory.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

constexpr unsigned turns = 100;

ucp_mem_h registered(ucp_context_h context, void* address, std::size_t length)
{
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = address;
    params.length      = length;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memh     = nullptr;
    check_ok(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
    return memh;
}

// Each window is a page longer than the one before, so its memory is registered anew. This takes long enough for the
// threads to meet.
TEST(concurrent_maps, leave_a_window_that_is_sent_its_key)
{
    constexpr std::size_t block = 64, distance = 512, blocks_per_page = 4096 / distance, least_blocks = 1 << 12;
    own_peer peer({.error_handling = true, .for_threads = true});
    std::vector<std::byte> memory((least_blocks + turns * blocks_per_page) * distance);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<std::byte>(i / distance + i);
    }
    for (unsigned turn = 0; turn < turns; ++turn) {
        const auto blocks = least_blocks + turn * blocks_per_page;
        const auto layout = ucx_layout::layout::create_strided(block, {{blocks, distance}});
        const auto known  = ucx_layout::window::map(nullptr, layout.value(), memory.data());
        check(known.has_value(), "ucp_layout_map without a context");
        std::atomic<unsigned> ready{0};
        std::atomic<bool> is_mapped{false};
        const auto meet = [&ready] {
            for (++ready; ready < 2;) {
            }
        };
        std::vector<std::byte> got(known->length());
        std::optional<ucx_layout::window> window;
        std::jthread mapper([&] {
            meet();
            if (auto made = ucx_layout::window::map(peer.context(), layout.value(), memory.data())) {
                window.emplace(std::move(*made));
            }
            is_mapped = true;
        });
        meet();
        const ucp_mem_h memh = registered(peer.context(), known->address(), known->length());
        ucs_status_t status  = UCS_OK;
        do {
            status = peer.send(known->address(), got.data(), got.size());
        } while (status == UCS_OK && !is_mapped);
        mapper.join();
        check(window.has_value(), "ucp_layout_map with a context");
        ASSERT_EQ(status, UCS_OK) << "turn " << turn;
        ASSERT_EQ(peer.send(window->address(), got.data(), got.size()), UCS_OK) << "turn " << turn;
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i], memory[i / block * distance + i % block]) << "turn " << turn << ", byte " << i;
        }
        check_ok(ucp_mem_unmap(peer.context(), memh), "ucp_mem_unmap");
    }
}

TEST(concurrent_maps, go_on_while_other_windows_are_registered)
{
    own_peer peer({.error_handling = true, .for_threads = true});
    const auto shape = spec::strided(spec::block(64), {{512, 128}});
    const std::jthread mapper([&](const std::stop_token& stop) {
        shown_memory other(shape);
        while (!stop.stop_requested()) {
            check_ok(other.map(peer.context()), "ucp_layout_map with a context");
            other.unmap();
        }
    });
    for (unsigned turn = 0; turn < turns; ++turn) {
        shown_memory memory(shape);
        check_ok(memory.map(nullptr), "ucp_layout_map without a context");
        const ucp_mem_h memh = registered(peer.context(), memory.window().address(), memory.length());
        memory.exchange(peer);
        check_ok(ucp_mem_unmap(peer.context(), memh), "ucp_mem_unmap");
    }
}

} // namespace

} // namespace ucxl::test
