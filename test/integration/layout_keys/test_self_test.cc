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
const environment overlays_wanted{{"UCX_LAYOUT_KEYS_ADDRESS", "ksm"}};

TEST(self_test, finds_that_all_works)
{
    EXPECT_EQ(found_with({}), "address=umr repeat=1 atomic=1 nesting=4");
}

TEST(injected_faults, refusals_are_found_by_the_self_test)
{
    EXPECT_EQ(found_with(no_start_addresses), "address=ksm repeat=1 atomic=1 nesting=4");
    EXPECT_EQ(found_with(no_repeat_blocks), "address=umr repeat=0 atomic=1 nesting=4");
    EXPECT_EQ(found_with(no_atomics), "address=umr repeat=1 atomic=0 nesting=4");
    EXPECT_EQ(found_with({{"SOFTHCA_FAULT", "refuse:umr_start_addr"}, {"UCX_LAYOUT_KEYS_ADDRESS", "umr"}}),
              "address=none repeat=1 atomic=1 nesting=4");
}

TEST(self_test, does_what_the_option_says)
{
    EXPECT_EQ(found_with(overlays_wanted), "address=ksm repeat=1 atomic=1 nesting=4");
    EXPECT_EQ(found_with({{"UCX_LAYOUT_KEYS_ADDRESS", "umr"}}), "address=umr repeat=1 atomic=1 nesting=4");
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

} // namespace
} // namespace ucxl::test
