// Which form is chosen from what was found in a process, and what the refusals say.
#include "abi/form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace
{

using namespace ucxl::abi;

ucx_facts facts_for(const form& form, unsigned release = 0)
{
    return {.major             = 1,
            .minor             = form.minor,
            .release           = release,
            .file              = "/opt/ucx/lib/libucp.so.0",
            .exported          = form.exported,
            .base_iface_length = 1280,
            .base_ep_length    = 8};
}

std::string refusal(const ucx_facts& facts)
{
    const auto chosen = choose_form(facts);
    return chosen ? "" : chosen.error().message;
}

void expect_words(const std::string& message, std::initializer_list<const char*> words)
{
    for (const char* const each : words) {
        EXPECT_NE(message.find(each), std::string::npos) << "no '" << each << "' in: " << message;
    }
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

class each_form : public testing::TestWithParam<form>
{
};

TEST_P(each_form, is_chosen_by_its_number_and_symbols_for_every_patch_release)
{
    for (const unsigned release : {0u, 1u, 99u}) {
        const auto chosen = choose_form(facts_for(GetParam(), release));
        ASSERT_TRUE(chosen) << chosen.error().message;
        EXPECT_STREQ((*chosen)->releases, GetParam().releases);
    }
}

TEST_P(each_form, is_refused_with_one_symbol_more_or_less)
{
    for (std::size_t i = 0; i < markers.size(); ++i) {
        auto facts = facts_for(GetParam());
        facts.exported ^= 1u << i;
        if (const auto chosen = choose_form(facts)) {
            EXPECT_EQ((*chosen)->minor, GetParam().minor);
            EXPECT_EQ((*chosen)->exported, facts.exported); // the other form of the same minor
        } else {
            expect_words(chosen.error().message, {"/opt/ucx/lib/libucp.so.0", "export", "Use a released UCX"});
        }
    }
}

TEST_P(each_form, is_refused_with_the_number_of_another_minor)
{
    for (const auto& other : all_forms()) {
        auto facts  = facts_for(GetParam());
        facts.minor = other.minor;
        if (other.minor != GetParam().minor) {
            expect_words(refusal(facts), {"no release of UCX 1.", "/opt/ucx/lib/libucp.so.0"});
        }
    }
}

TEST_P(each_form, is_refused_in_a_build_with_statistics)
{
    auto facts = facts_for(GetParam());
    facts.base_iface_length += sizeof(void*);
    facts.base_ep_length += sizeof(void*);
    expect_words(refusal(facts), {"--enable-stats", "/opt/ucx/lib/libucp.so.0", "Use a UCX built without it"});
}

TEST_P(each_form, is_refused_with_base_objects_of_other_lengths)
{
    auto facts = facts_for(GetParam());
    facts.base_iface_length -= 8;
    expect_words(refusal(facts), {"1272 and 8 bytes instead of 1280 and 8", "/opt/ucx/lib/libucp.so.0"});
    facts                = facts_for(GetParam());
    facts.base_ep_length = 0; // libucp without libuct
    expect_words(refusal(facts), {"1280 and 0 bytes"});
}

std::string name_of(const testing::TestParamInfo<form>& info)
{
    std::string name = info.param.releases;
    std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return "ucx_" + name;
}

INSTANTIATE_TEST_SUITE_P(forms, each_form, testing::ValuesIn(all_forms().begin(), all_forms().end()), name_of);

TEST(choose_form, refuses_old_and_new_releases_with_the_known_range)
{
    auto facts  = facts_for(all_forms().front());
    facts.minor = 15;
    expect_words(refusal(facts), {"UCX 1.15.0 in /opt/ucx/lib/libucp.so.0 is too old", "1.16 to 1.23", "newer UCX"});
    facts.major = 0;
    facts.minor = 20;
    expect_words(refusal(facts), {"UCX 0.20.0", "too old"});
    facts       = facts_for(all_forms().back());
    facts.minor = 24;
    expect_words(refusal(facts), {"UCX 1.24.0", "newer than this ucx-layout", "1.16 to 1.23", "newer ucx-layout"});
    facts.major = 2;
    facts.minor = 18;
    expect_words(refusal(facts), {"UCX 2.18.0", "newer than this ucx-layout"});
}

TEST(all_forms, differ_from_each_other)
{
    for (const auto& one : all_forms()) {
        for (const auto& other : all_forms()) {
            EXPECT_TRUE(&one == &other || one.minor != other.minor || one.exported != other.exported) << one.releases;
        }
    }
}

} // namespace
