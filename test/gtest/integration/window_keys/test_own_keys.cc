// Keys that peers must be able to lose (UCP's error mode PEER): they are not the window's, and end with their handle.
#include "device_control.h"
#include "shown_memory.h"

#include "abi/uct.h"
#include "support/must.h"

#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

// The memory domain of the device, as UCP opens it.
class device_domain
{
public:
    device_domain()
    {
        uct_component_h* components = nullptr;
        unsigned count              = 0;
        check_ok(uct_query_components(&components, &count), "uct_query_components");
        for (unsigned i = 0; i < count && _md == nullptr; ++i) {
            uct_component_attr_t attr{};
            attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            check_ok(uct_component_query(components[i], &attr), "uct_component_query");
            if (std::string_view(attr.name) == "ib") {
                uct_md_config_t* config = nullptr;
                check_ok(uct_md_config_read(components[i], nullptr, nullptr, &config), "uct_md_config_read");
                const auto status = uct_md_open(components[i], "mlx5_0", config, &_md);
                uct_config_release(config);
                check_ok(status, "uct_md_open");
            }
        }
        uct_release_component_list(components);
        check(_md != nullptr, "this UCX has no component \"ib\"");
    }
    ~device_domain() { uct_md_close(_md); }
    device_domain(const device_domain&)            = delete;
    device_domain& operator=(const device_domain&) = delete;

    // Memory of the card.
    uct_allocated_memory_t allocate(std::size_t length) const
    {
        uct_mem_alloc_params_t params{};
        params.field_mask            = UCT_MEM_ALLOC_PARAM_FIELD_MDS | UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE;
        params.mem_type              = UCS_MEMORY_TYPE_RDMA;
        params.mds.mds               = &_md;
        params.mds.count             = 1;
        const uct_alloc_method_t way = UCT_ALLOC_METHOD_MD;
        uct_allocated_memory_t memory{};
        check_ok(uct_mem_alloc(length, &way, 1, &params, &memory), "uct_mem_alloc");
        return memory;
    }
    uct_mem_h add(void* address, std::size_t length) const
    {
        uct_mem_h memh = nullptr;
        check_ok(uct_md_mem_reg(_md, address, length, UCT_MD_MEM_ACCESS_ALL, &memh), "uct_md_mem_reg");
        return memh;
    }
    uct_mem_h add(const ucx_layout::window& window) const { return add(window.address(), window.length()); }

    // The key for puts and gets.
    std::uint32_t pack(uct_mem_h memh, unsigned flags) const
    {
        const abi::mkey_pack_params params{.field_mask = abi::mkey_pack_params::has_flags, .flags = flags};
        std::uint64_t packed = 0;
        check_ok(_md->ops->mkey_pack(_md, memh, nullptr, 0, &params, &packed), "mkey_pack");
        return static_cast<std::uint32_t>(packed);
    }

    // Returns how often the completion was called.
    unsigned remove(uct_mem_h memh, unsigned flags) const
    {
        struct counted {
            uct_completion_t super;
            unsigned calls;
        } done{{.func   = [](uct_completion_t* self) { ++reinterpret_cast<counted*>(self)->calls; },
                .count  = 1,
                .status = UCS_OK},
               0};
        const abi::mem_dereg_params params{.field_mask = abi::mem_dereg_params::has_memh |
                                                         abi::mem_dereg_params::has_flags |
                                                         abi::mem_dereg_params::has_completion,
                                           .flags = flags,
                                           .memh  = memh,
                                           .comp  = &done.super};
        check_ok(_md->ops->mem_dereg(_md, &params), "mem_dereg");
        return done.calls;
    }

private:
    uct_md_h _md = nullptr;
};

class own_keys : public testing::Test
{
protected:
    own_keys() { check_ok(_window.map(_peer.context()), "ucp_layout_map"); }

    own_peer _peer;
    shown_memory _window{spec::strided(spec::block(64), {{512, 128}})};
    device_domain _domain;
    const device_control _device;
};

constexpr unsigned can_be_lost = abi::mkey_pack_params::invalidate_rma;

TEST_F(own_keys, are_those_of_one_handle)
{
    const uct_mem_h first  = _domain.add(_window.window());
    const uct_mem_h second = _domain.add(_window.window());
    const auto shared      = _domain.pack(first, 0);
    EXPECT_EQ(_domain.pack(second, 0), shared);
    const auto of_first  = _domain.pack(first, can_be_lost);
    const auto of_second = _domain.pack(second, can_be_lost);
    EXPECT_NE(of_first, shared);
    EXPECT_NE(of_second, shared);
    EXPECT_NE(of_first, of_second);
    EXPECT_EQ(_domain.pack(first, can_be_lost), of_first);
    EXPECT_EQ(_domain.remove(first, abi::mem_dereg_params::invalidate), 1u);
    EXPECT_EQ(_domain.pack(second, can_be_lost), of_second);
    EXPECT_EQ(_domain.remove(second, abi::mem_dereg_params::invalidate), 1u);
}

TEST_F(own_keys, are_free_when_their_handle_has_gone)
{
    const uct_mem_h memh = _domain.add(_window.window());
    const auto key       = _domain.pack(memh, can_be_lost);
    EXPECT_TRUE(_device.is_bound(key));
    EXPECT_EQ(_domain.remove(memh, abi::mem_dereg_params::invalidate), 1u);
    EXPECT_FALSE(_device.is_bound(key));
}

TEST_F(own_keys, do_not_come_back_for_the_next_handle)
{
    std::vector<std::uint32_t> lost;
    for (int round = 0; round < 20; ++round) {
        const uct_mem_h memh = _domain.add(_window.window());
        const auto key       = _domain.pack(memh, can_be_lost);
        EXPECT_TRUE(_device.is_bound(key));
        EXPECT_THAT(lost, testing::Each(testing::ResultOf([&](auto each) { return _device.is_bound(each); }, false)));
        EXPECT_EQ(_domain.remove(memh, abi::mem_dereg_params::invalidate), 1u);
        lost.push_back(key);
    }
}

// More handles at once than the domain keeps unused keys: the others end, and the device uses their indices again.
TEST_F(own_keys, do_not_come_back_after_many_at_once)
{
    constexpr int num_handles = 120;
    std::set<std::uint32_t> lost;
    for (int round = 0; round < 4; ++round) {
        std::vector<uct_mem_h> all;
        std::vector<std::uint32_t> keys;
        for (int i = 0; i < num_handles; ++i) {
            all.push_back(_domain.add(_window.window()));
            keys.push_back(_domain.pack(all.back(), can_be_lost));
        }
        EXPECT_THAT(keys, testing::Each(testing::ResultOf([&](auto key) { return lost.contains(key); }, false)));
        for (const uct_mem_h memh : all) {
            EXPECT_EQ(_domain.remove(memh, abi::mem_dereg_params::invalidate), 1u);
        }
        lost.insert(keys.begin(), keys.end());
    }
}

TEST_F(own_keys, are_those_of_one_handle_of_memory_of_the_card)
{
    const auto memory      = _domain.allocate(256);
    const auto neighbour   = _domain.allocate(256);
    const uct_mem_h first  = _domain.add(memory.address, memory.length);
    const uct_mem_h second = _domain.add(memory.address, memory.length / 2);
    const auto shared      = _domain.pack(first, 0);
    EXPECT_EQ(_domain.pack(second, 0), shared);
    EXPECT_EQ(_domain.pack(neighbour.memh, 0), shared) << "of the chunk";
    const auto of_first     = _domain.pack(first, can_be_lost);
    const auto of_second    = _domain.pack(second, can_be_lost);
    const auto of_neighbour = _domain.pack(neighbour.memh, can_be_lost);
    EXPECT_EQ(std::set({shared, of_first, of_second, of_neighbour}).size(), 4u);
    EXPECT_TRUE(_device.is_bound(of_first));
    EXPECT_EQ(_domain.remove(first, abi::mem_dereg_params::invalidate), 1u);
    EXPECT_FALSE(_device.is_bound(of_first));
    EXPECT_TRUE(_device.is_bound(of_second));
    check_ok(uct_mem_free(&neighbour), "uct_mem_free");
    EXPECT_FALSE(_device.is_bound(of_neighbour));
    EXPECT_TRUE(_device.is_bound(shared));
    EXPECT_EQ(_domain.remove(second, abi::mem_dereg_params::invalidate), 1u);
    check_ok(uct_mem_free(&memory), "uct_mem_free");
}

// UCP keeps handles of memory that was freed.
TEST_F(own_keys, are_free_when_the_memory_of_the_card_is_freed)
{
    const auto neighbour       = _domain.allocate(256); // keeps the chunk
    const auto memory          = _domain.allocate(256);
    const uct_mem_h other      = _domain.add(memory.address, memory.length);
    const uct_mem_h part       = _domain.add(static_cast<std::byte*>(memory.address) + 128, 128);
    const auto shared          = _domain.pack(other, 0);
    const auto of_other        = _domain.pack(other, can_be_lost);
    const auto of_part         = _domain.pack(part, can_be_lost);
    const auto of_neighbour    = _domain.pack(neighbour.memh, can_be_lost);
    const auto is_bound_of_any = [&] { return _device.is_bound(of_other) || _device.is_bound(of_part); };
    EXPECT_TRUE(_device.is_bound(of_other));
    EXPECT_TRUE(_device.is_bound(of_part));
    check_ok(uct_mem_free(&memory), "uct_mem_free");
    EXPECT_FALSE(is_bound_of_any());
    EXPECT_TRUE(_device.is_bound(of_neighbour));
    const auto next = _domain.allocate(256);
    ASSERT_EQ(next.address, memory.address);
    EXPECT_FALSE(is_bound_of_any());
    EXPECT_EQ(_domain.pack(other, 0), shared);
    const auto again = _domain.pack(other, can_be_lost); // the next owner's
    EXPECT_NE(again, of_other);
    EXPECT_TRUE(_device.is_bound(again));
    check_ok(uct_mem_free(&next), "uct_mem_free");
    EXPECT_FALSE(_device.is_bound(again));
    for (const uct_mem_h memh : {other, part}) {
        EXPECT_EQ(_domain.remove(memh, abi::mem_dereg_params::invalidate), 1u);
    }
    check_ok(uct_mem_free(&neighbour), "uct_mem_free");
}

TEST_F(own_keys, are_free_when_the_memory_of_the_card_ends_with_its_window)
{
    own_peer peer({.error_handling = true});
    const auto map = [&] {
        const auto layout = must(ucx_layout::layout::create_contig(1, {4096, nullptr}));
        ucp_layout_map_params_t params{};
        params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS |
                            UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE;
        params.layout              = layout.get();
        params.flags               = UCP_LAYOUT_MAP_FLAG_ALLOCATE;
        params.base_memory_type    = UCS_MEMORY_TYPE_RDMA;
        ucp_layout_window_h window = nullptr;
        check_ok(ucp_layout_map(peer.context(), &params, &window), "ucp_layout_map on a card");
        return window;
    };
    const auto neighbour = map(); // keeps the chunk
    const auto window    = map();
    void* base           = nullptr;
    check_ok(ucp_layout_window_bases(window, &base, 1), "ucp_layout_window_bases");
    std::vector<std::byte> received(4096);
    EXPECT_EQ(_device.num_bound_at(base), 0u);
    check_ok(peer.send(base, received.data(), received.size()), "send");
    EXPECT_EQ(_device.num_bound_at(base), 1u) << "of the handle that UCP keeps";
    ucp_layout_unmap(window);
    EXPECT_EQ(_device.num_bound_at(base), 0u);
    ucp_layout_unmap(neighbour);
}

TEST_F(own_keys, are_free_when_the_window_is_unmapped)
{
    const uct_mem_h memh = _domain.add(_window.window());
    const auto key       = _domain.pack(memh, can_be_lost);
    EXPECT_TRUE(_device.is_bound(key));
    _window.unmap();
    EXPECT_FALSE(_device.is_bound(key));
    EXPECT_EQ(_domain.remove(memh, abi::mem_dereg_params::invalidate), 1u);
}

} // namespace

} // namespace ucxl::test
