// Which memory types windows get, beside which components of GPUs.
#include "uct/abi/form.h"
#include "uct/abi/window_types.h"

#include <gtest/gtest.h>

namespace
{

using namespace ucxl::abi;

constexpr auto rdma      = UCS_BIT(UCS_MEMORY_TYPE_RDMA);
constexpr auto rocm      = UCS_BIT(UCS_MEMORY_TYPE_ROCM);
constexpr auto ze_device = UCS_BIT(7);

TEST(window_types, without_gpus_rocm_is_the_staged_one_and_peers_may_use_either)
{
    for (const form& each : all_forms()) {
        const auto chosen =
            choose_window_types({each.num_memory_types, {"self", "tcp", "cuda_cpy", "ib"}, false, false});
        EXPECT_EQ(chosen.staged, UCS_MEMORY_TYPE_ROCM) << each.releases;
        EXPECT_EQ(chosen.served, rdma | rocm | (each.num_memory_types > 7 ? ze_device : 0)) << each.releases;
        EXPECT_EQ(chosen.own(), rdma | rocm);
    }
}

TEST(window_types, what_a_gpu_has_is_never_claimed)
{
    for (const auto& components : {std::vector<std::string>{"rocm_cpy"}, {"self", "rocm_ipc"}, {"tcp", "rocm_new"}}) {
        const auto chosen = choose_window_types({9, components, false, false});
        EXPECT_EQ(chosen.staged, static_cast<ucs_memory_type_t>(7)) << components.back();
        EXPECT_EQ(chosen.served, rdma | ze_device) << components.back();
    }
    const auto beside_ze = choose_window_types({9, {"ze_copy", "ze_ipc"}, false, false});
    EXPECT_EQ(beside_ze.staged, UCS_MEMORY_TYPE_ROCM);
    EXPECT_EQ(beside_ze.served, rdma | rocm);
}

TEST(window_types, rocm_is_taken_if_network_cards_register_it)
{
    const auto chosen = choose_window_types({9, {"ib"}, true, false});
    EXPECT_EQ(chosen.staged, static_cast<ucs_memory_type_t>(7));
    EXPECT_EQ(chosen.served, rdma | ze_device);
}

TEST(window_types, none_is_left_if_all_are_taken_or_unknown)
{
    for (const gpu_facts& facts : {gpu_facts{9, {"rocm_cpy", "ze_copy"}, false, false},
                                   {6, {"rocm_cpy"}, false, false},
                                   {6, {}, true, false},
                                   {7, {"rocm_cpy"}, false, false}}) {
        const auto chosen = choose_window_types(facts);
        EXPECT_EQ(chosen.staged, std::nullopt);
        EXPECT_EQ(chosen.served, rdma);
        EXPECT_EQ(chosen.own(), rdma);
    }
}

TEST(window_types, none_is_for_the_older_protocols)
{
    const auto chosen = choose_window_types({9, {}, false, true});
    EXPECT_EQ(chosen.staged, std::nullopt);
    EXPECT_EQ(chosen.served, rdma);
}

TEST(window_types, serves_only_what_it_says)
{
    const auto chosen = choose_window_types({9, {}, false, false});
    for (const unsigned type : {3u, 5u, 7u}) {
        EXPECT_TRUE(chosen.serves(type)) << type;
    }
    for (const unsigned type : {0u, 1u, 2u, 4u, 6u, 8u, 9u, 63u, 64u, 67u, UINT32_MAX}) {
        EXPECT_FALSE(chosen.serves(type)) << type;
    }
}

} // namespace
