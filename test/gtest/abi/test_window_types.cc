// Which memory types windows get, beside which components of GPUs.
#include "abi/form.h"
#include "abi/window_types.h"

#include <gtest/gtest.h>

namespace
{

using namespace ucxl::abi;

constexpr auto rdma      = UCS_BIT(UCS_MEMORY_TYPE_RDMA);
constexpr auto rocm      = UCS_BIT(UCS_MEMORY_TYPE_ROCM);
constexpr auto cuda      = UCS_BIT(UCS_MEMORY_TYPE_CUDA);
constexpr auto ze_type   = static_cast<ucs_memory_type_t>(7);
constexpr auto ze_device = UCS_BIT(7);

gpu_facts facts_of(unsigned num_memory_types, std::vector<std::string> components)
{
    return {.num_memory_types    = num_memory_types,
            .components          = std::move(components),
            .cards_register_rocm = false,
            .cards_register_cuda = false,
            .old_protocols       = false};
}

TEST(window_types, without_gpus_rocm_is_the_staged_one_and_peers_may_use_any)
{
    for (const form& each : all_forms()) {
        const auto chosen = choose_window_types(facts_of(each.num_memory_types, {"self", "tcp", "ib"}));
        const bool has_ze = each.num_memory_types > 7;
        EXPECT_EQ(chosen.staged, UCS_MEMORY_TYPE_ROCM) << each.releases;
        EXPECT_EQ(chosen.direct, has_ze ? ze_type : UCS_MEMORY_TYPE_CUDA) << each.releases;
        EXPECT_EQ(chosen.served, rdma | rocm | cuda | (has_ze ? ze_device : 0)) << each.releases;
        EXPECT_EQ(chosen.own(), rdma | rocm | (has_ze ? ze_device : cuda));
    }
}

TEST(window_types, what_a_gpu_has_is_never_claimed)
{
    for (const auto& components : {std::vector<std::string>{"rocm_cpy"}, {"self", "rocm_ipc"}, {"tcp", "rocm_new"}}) {
        const auto chosen = choose_window_types(facts_of(9, components));
        EXPECT_EQ(chosen.staged, ze_type) << components.back();
        EXPECT_EQ(chosen.direct, UCS_MEMORY_TYPE_CUDA) << components.back();
        EXPECT_EQ(chosen.served, rdma | ze_device | cuda) << components.back();
    }
    const auto beside_ze = choose_window_types(facts_of(9, {"ze_copy", "ze_ipc"}));
    EXPECT_EQ(beside_ze.staged, UCS_MEMORY_TYPE_ROCM);
    EXPECT_EQ(beside_ze.direct, UCS_MEMORY_TYPE_CUDA);
    EXPECT_EQ(beside_ze.served, rdma | rocm | cuda);
    const auto beside_cuda = choose_window_types(facts_of(9, {"cuda_cpy"}));
    EXPECT_EQ(beside_cuda.staged, UCS_MEMORY_TYPE_ROCM);
    EXPECT_EQ(beside_cuda.direct, ze_type);
    EXPECT_EQ(beside_cuda.served, rdma | rocm | ze_device);
}

TEST(window_types, what_network_cards_register_is_taken)
{
    gpu_facts facts           = facts_of(9, {"ib"});
    facts.cards_register_rocm = true;
    const auto beside_rocm    = choose_window_types(facts);
    EXPECT_EQ(beside_rocm.staged, ze_type);
    EXPECT_EQ(beside_rocm.direct, UCS_MEMORY_TYPE_CUDA);
    EXPECT_EQ(beside_rocm.served, rdma | ze_device | cuda);
    facts.cards_register_cuda = true;
    const auto beside_both    = choose_window_types(facts);
    EXPECT_EQ(beside_both.staged, ze_type);
    EXPECT_EQ(beside_both.direct, std::nullopt);
    EXPECT_EQ(beside_both.served, rdma | ze_device);
}

TEST(window_types, of_which_whole_allocations_are_registered_are_served_and_not_chosen)
{
    gpu_facts facts              = facts_of(6, {});
    facts.types_registered_whole = "cuda";
    const auto of_old_release    = choose_window_types(facts);
    EXPECT_EQ(of_old_release.staged, UCS_MEMORY_TYPE_ROCM);
    EXPECT_EQ(of_old_release.direct, std::nullopt);
    EXPECT_EQ(of_old_release.served, rdma | rocm | cuda);
    facts.num_memory_types       = 9;
    facts.types_registered_whole = "cuda,rocm";
    const auto beside_rocm       = choose_window_types(facts);
    EXPECT_EQ(beside_rocm.staged, ze_type);
    EXPECT_EQ(beside_rocm.direct, std::nullopt);
    facts.types_registered_whole = "all";
    EXPECT_EQ(choose_window_types(facts).staged, std::nullopt);
}

TEST(window_types, of_intels_gpus_are_taken_where_network_cards_register_them)
{
    gpu_facts facts         = facts_of(9, {});
    facts.cards_register_ze = true;
    EXPECT_EQ(choose_window_types(facts).direct, UCS_MEMORY_TYPE_CUDA);
}

// The types of staged windows are no other ones than they ever were, so that peers of other releases know them.
TEST(window_types, cuda_is_never_the_staged_one)
{
    gpu_facts with_rocm_driver           = facts_of(6, {});
    with_rocm_driver.cards_register_rocm = true;
    for (const gpu_facts& facts : {facts_of(9, {"rocm_cpy", "ze_copy"}), facts_of(6, {"rocm_cpy"}), with_rocm_driver,
                                   facts_of(7, {"rocm_cpy"})}) {
        const auto chosen = choose_window_types(facts);
        EXPECT_EQ(chosen.staged, std::nullopt);
        EXPECT_EQ(chosen.direct, std::nullopt);
        EXPECT_EQ(chosen.served, rdma | cuda);
        EXPECT_EQ(chosen.own(), rdma);
    }
}

TEST(window_types, none_is_for_the_older_protocols)
{
    gpu_facts facts     = facts_of(9, {});
    facts.old_protocols = true;
    const auto chosen   = choose_window_types(facts);
    EXPECT_EQ(chosen.staged, std::nullopt);
    EXPECT_EQ(chosen.direct, std::nullopt);
    EXPECT_EQ(chosen.served, rdma);
}

TEST(window_types, serves_only_what_it_says)
{
    const auto chosen = choose_window_types(facts_of(9, {}));
    for (const unsigned type : {1u, 3u, 5u, 7u}) {
        EXPECT_TRUE(chosen.serves(type)) << type;
    }
    for (const unsigned type : {0u, 2u, 4u, 6u, 8u, 9u, 63u, 64u, 67u, UINT32_MAX}) {
        EXPECT_FALSE(chosen.serves(type)) << type;
    }
}

} // namespace
