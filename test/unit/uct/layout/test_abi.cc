#include "uct/abi/abi_check.h"
#include "uct/abi/uct_abi_1_18.h"
#include "uct/layout/init.h"

#include <gtest/gtest.h>

namespace
{

constexpr ucxl::abi::ucx_facts known{1, 18, 1, sizeof(ucxl::abi::base_iface), sizeof(ucxl::abi::base_ep)};

std::string refusal(ucxl::abi::ucx_facts facts)
{
    const auto answer = ucxl::abi::abi_check(facts);
    return answer ? "" : answer.error().message;
}

TEST(abi_check, this_ucx_is_known)
{
    EXPECT_TRUE(ucxl::abi::abi_check().has_value());
    EXPECT_TRUE(ucxl::uct_layout_status().has_value());
    EXPECT_EQ(ucxl::abi::loaded_ucx().major, 1u);
    EXPECT_EQ(ucxl::abi::loaded_ucx().minor, 18u);
}

TEST(abi_check, any_release_of_the_minor_is_known)
{
    for (const unsigned release : {0u, 1u, 99u}) {
        auto facts    = known;
        facts.release = release;
        EXPECT_EQ(refusal(facts), "");
    }
}

TEST(abi_check, other_minors_and_majors_are_refused_by_number)
{
    for (const auto& [major, minor] : {std::pair{1u, 17u}, {1u, 19u}, {0u, 18u}, {2u, 18u}}) {
        auto facts       = known;
        facts.major      = major;
        facts.minor      = minor;
        const auto words = refusal(facts);
        EXPECT_NE(words.find("UCX " + std::to_string(major) + "." + std::to_string(minor) + ".1 is loaded"),
                  std::string::npos)
            << words;
        EXPECT_NE(words.find("built for UCX 1.18.x"), std::string::npos) << words;
    }
}

TEST(abi_check, build_with_statistics_is_refused_as_such)
{
    auto facts = known;
    facts.base_iface_length += sizeof(void*);
    facts.base_ep_length += sizeof(void*);
    EXPECT_NE(refusal(facts).find("--enable-stats"), std::string::npos) << refusal(facts);
}

TEST(abi_check, other_sizes_are_refused)
{
    auto facts = known;
    facts.base_iface_length -= 8;
    EXPECT_NE(refusal(facts).find("1272 and 8 bytes instead of 1280 and 8"), std::string::npos) << refusal(facts);
    facts = known;
    facts.base_ep_length += 16;
    EXPECT_NE(refusal(facts), "");
}

} // namespace
