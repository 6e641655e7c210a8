// What the self-test finds when a domain is opened, and that everything works with the rest.
#include <string>

#include <gtest/gtest.h>

#include "support/process.h"

namespace ucxl::test
{
namespace
{

std::string found_with(const environment& variables)
{
    environment all{{"UCXL_CHILD", "found_by_self_test"}};
    all.insert(all.end(), variables.begin(), variables.end());
    const ended_process found = process(program_path(), {}, {.variables = all}).wait();
    EXPECT_EQ(found.status, 0);
    return found.output();
}

const environment no_start_addresses{{"SOFTHCA_FAULT", "refuse:umr_start_addr"}};
const environment no_repeat_blocks{{"SOFTHCA_FAULT", "refuse:umr_repeat_block"}};
const environment no_atomics{{"SOFTHCA_FAULT", "refuse:indirect_atomic"}};
const environment no_atomic_right{{"SOFTHCA_FAULT", "refuse:umr_atomic_right"}};
const environment overlays_wanted{{"UCX_LAYOUT_KEYS_ADDRESS", "ksm"}};

TEST(self_test, finds_that_all_works)
{
    EXPECT_EQ(found_with({}), "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
}

TEST(injected_faults, refusals_are_found_by_the_self_test)
{
    EXPECT_EQ(found_with(no_start_addresses), "address=ksm repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with(no_repeat_blocks), "address=umr repeat=0 atomic=1 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with(no_atomics), "address=umr repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:local_nested"}}),
              "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=0");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:deep_local_nested"}}),
              "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=0");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:nested_atomic"}}),
              "address=umr repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:nested_repeat_block"}}),
              "address=umr repeat=1 atomic=1 nesting=1 pointer=1 local_nested=0");
    EXPECT_EQ(found_with(no_atomic_right), "address=umr repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:umr_start_addr"}, {"SOFTHCA_PROFILE", "none,fixed_buffer_size=0"}}),
              "address=none repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:umr_start_addr"}, {"UCX_LAYOUT_KEYS_ADDRESS", "umr"}}),
              "address=none repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
}

TEST(self_test, does_what_the_option_says)
{
    EXPECT_EQ(found_with(overlays_wanted), "address=ksm repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
    EXPECT_EQ(found_with({{"UCX_LAYOUT_KEYS_ADDRESS", "umr"}}),
              "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1");
}

TEST(injected_faults, each_card_does_what_its_capabilities_say)
{
    const std::pair<const char*, const char*> cards[] = {
        {"cx5", "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1"},
        {"cx6dx", "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1"},
        {"cx7", "address=umr repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1"},
        {"bf3", "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1"},
        {"vf", "address=umr repeat=0 atomic=0 nesting=2 pointer=1 local_nested=0"},
        {"none,atomics=0", "address=umr repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1"},
        {"none,indirection=1", "address=umr repeat=1 atomic=1 nesting=1 pointer=1 local_nested=0"},
        {"none,fixed_buffer_size=0", "address=umr repeat=1 atomic=1 nesting=4 pointer=1 local_nested=1"},
    };
    for (const auto& [profile, found] : cards) {
        EXPECT_EQ(found_with({{"SOFTHCA_PROFILE", profile}}), found) << profile;
    }
}

TEST(injected_faults, overlays_have_relaxed_order_where_all_memory_has_it)
{
    EXPECT_EQ(found_with({{"SOFTHCA_PROFILE", "cx7,needs_relaxed_keys=1"}, {"UCX_LAYOUT_KEYS_ADDRESS", "ksm"}}),
              "address=ksm repeat=1 atomic=0 nesting=4 pointer=1 local_nested=1");
}

// Tests of this program once more.
void expect_pass(const environment& variables, const std::string& filter)
{
    process child(program_path(), {"--gtest_filter=" + filter}, {.variables = variables});
    const ended_process result = child.wait(std::chrono::seconds(300));
    EXPECT_EQ(result.status, 0) << result.output();
    EXPECT_NE(result.out.find("[  PASSED  ]"), std::string::npos) << result.output();
    EXPECT_EQ(result.out.find("[  PASSED  ] 0 tests"), std::string::npos) << result.output();
}

TEST(self_test, regions_under_overlays_do_what_others_do)
{
    expect_pass(overlays_wanted, "worked_keys.*:region_addresses.*:atomic_words.*");
}

TEST(injected_faults, regions_do_the_same_without_start_addresses)
{
    expect_pass(no_start_addresses, "worked_keys.*:region_addresses.*:atomic_words.*");
}

TEST(injected_faults, regions_do_the_same_without_repeat_blocks)
{
    expect_pass(no_repeat_blocks, "worked_keys.*:region_addresses.*:atomic_words.*");
}

TEST(injected_faults, regions_do_the_same_on_every_card_in_any_order)
{
    // Those with atomics, which these tests use, and single capabilities of the others.
    for (const char* const profile :
         {"cx5", "cx6dx", "bf3", "none,imaicl=0", "none,umr_fence=0", "none,repeat_blocks=0,umr_ptr_rlkey=0"}) {
        for (const char* const order : {"posted", "adversarial,seed=7"}) {
            const environment card{{"SOFTHCA_PROFILE", profile}, {"SOFTHCA_ORDER", order}};
            expect_pass(card, "worked_keys.*:region_addresses.*");
        }
    }
}

} // namespace
} // namespace ucxl::test
