#include "prm/command.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "softhca/shim/fault_spec.h"
#include "softhca/shim/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace ucxl::softhca
{
namespace
{

using ::testing::HasSubstr;

TEST(fault_spec, every_form_means_what_the_manual_says)
{
    const auto command = parse_fault("command:create_mkey,first=3,times=2,status=bad_resource");
    ASSERT_TRUE(command.has_value()) << command.error();
    EXPECT_EQ(command->kind, fault_kind::command);
    EXPECT_EQ(command->opcode, std::to_underlying(prm::command::create_mkey));
    EXPECT_EQ(command->first, 3U);
    EXPECT_EQ(command->times, 2U);
    EXPECT_EQ(command->status, std::to_underlying(prm::command_status::bad_resource));

    const auto wqe = parse_fault("wqe:rdma_write,syndrome=0x13");
    ASSERT_TRUE(wqe.has_value()) << wqe.error();
    EXPECT_EQ(wqe->opcode, std::to_underlying(prm::wqe_opcode::rdma_write));
    EXPECT_EQ(wqe->first, 1U);
    EXPECT_EQ(wqe->times, 1U);
    EXPECT_EQ(wqe->status, 0x13);

    const auto any = parse_fault("wqe");
    ASSERT_TRUE(any.has_value()) << any.error();
    EXPECT_EQ(any->opcode, any_opcode);
    EXPECT_EQ(any->status, std::to_underlying(prm::cqe_syndrome::transport_retry_exceeded));

    const auto delay = parse_fault("delay:0xa,time=50us");
    ASSERT_TRUE(delay.has_value()) << delay.error();
    EXPECT_EQ(delay->opcode, 0xaU);
    EXPECT_EQ(delay->amount, 50'000U);
    EXPECT_EQ(delay->times, UINT64_MAX);

    const auto drop = parse_fault("drop:rdma_read,times=all");
    ASSERT_TRUE(drop.has_value()) << drop.error();
    EXPECT_EQ(drop->times, UINT64_MAX);

    const auto refuse = parse_fault("refuse:umr_repeat_block");
    ASSERT_TRUE(refuse.has_value()) << refuse.error();
    EXPECT_EQ(refuse->opcode, std::to_underlying(refusable::umr_repeat_block));
    EXPECT_EQ(refuse->times, UINT64_MAX);

    const auto fatal = parse_fault("fatal:umr,first=3");
    ASSERT_TRUE(fatal.has_value()) << fatal.error();
    EXPECT_EQ(fatal->opcode, std::to_underlying(prm::wqe_opcode::umr));
    EXPECT_EQ(fatal->first, 3U);

    EXPECT_EQ(parse_fault("keys=100")->amount, 100U);
    EXPECT_EQ(parse_fault("memic=64K")->amount, 65536U);
    EXPECT_EQ(parse_fault("memic=0")->amount, 0U);
}

TEST(fault_spec, errors_name_the_part_that_is_wrong)
{
    const std::pair<const char*, const char*> wrong[] = {
        {"", "not a kind"},
        {"comand", "'comand' is not a kind"},
        {"command:make_tea", "opcode: 'make_tea'"},
        {"wqe:0x40", "opcode: 0x40 is above 0x3f"},
        {"wqe:send,first=0", "first: '0'"},
        {"wqe:send,times=-1", "times: '-1'"},
        {"wqe:send,status=1", "'status' is not a field"},
        {"wqe:send,syndrome=0x100", "syndrome: 0x100 is above 0xff"},
        {"wqe:send,", "'' is not a field"},
        {"delay:send", "a time is needed"},
        {"delay:send,time=5", "time: '5'"},
        {"delay:send,time=61s", "time: '61s'"},
        {"keys", "a limit is needed"},
        {"keys=many", "a limit is needed"},
        {"memic=4G", "not '4G'"},
        {"keys=5,first=2", "'first' is not a field"},
        {"memic=99999999999999999999", "a limit is needed"},
        {"wqe=5", "an opcode follows a colon"},
        {"refuse", "what is refused follows a colon"},
        {"refuse:tea", "refuse: 'tea'"},
        {"refuse:3", "refuse: 3 is above 0x2"},
    };
    for (const auto& [text, message] : wrong) {
        const auto parsed = parse_fault(text);
        ASSERT_FALSE(parsed.has_value()) << text;
        EXPECT_THAT(parsed.error(), HasSubstr(message)) << text;
    }
}

TEST(fault_spec, several_are_separated_by_semicolons_and_there_is_a_limit)
{
    const auto two = parse_faults("wqe:send;keys=3;");
    ASSERT_TRUE(two.has_value()) << two.error();
    EXPECT_EQ(two->rules[0].kind, fault_kind::wqe);
    EXPECT_EQ(two->rules[1].kind, fault_kind::key_limit);
    EXPECT_EQ(two->rules[2].kind, fault_kind::none);
    std::string many;
    for (std::size_t i = 0; i <= max_fault_rules; ++i) {
        many += "wqe;";
    }
    EXPECT_THAT(parse_faults(many).error(), HasSubstr("more than 16 rules"));
}

TEST(settings, options_are_checked_and_errors_name_them)
{
    EXPECT_EQ(to_options({})->devices, 1U);
    settings chosen;
    chosen.devices   = "2";
    chosen.functions = "3";
    chosen.profile   = "bf3";
    chosen.faults    = "keys=7";
    const auto given = to_options(chosen);
    ASSERT_TRUE(given.has_value());
    EXPECT_EQ(given->devices, 2U);
    EXPECT_EQ(given->functions_per_device, 3U);
    EXPECT_EQ(given->costs, profile::bf3);
    EXPECT_EQ(given->faults.rules[0].amount, 7U);
    settings wrong;
    wrong.devices = "two";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("devices: 'two' is not a number from 1 to 8"));
    wrong         = {};
    wrong.profile = "cx99";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("profile: 'cx99'"));
    wrong        = {};
    wrong.faults = "wqe:frob";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("fault 'wqe:frob': opcode"));
}

TEST(settings, an_order_has_a_seed_or_gets_one)
{
    const auto seed_of = [](const std::string& order) {
        settings chosen;
        chosen.order = order;
        return to_options(chosen).value().adversarial_seed;
    };
    EXPECT_EQ(seed_of(""), std::nullopt);
    EXPECT_EQ(seed_of("posted"), std::nullopt);
    EXPECT_EQ(seed_of("adversarial,seed=0"), 0U);
    EXPECT_EQ(seed_of("adversarial,seed=18446744073709551615"), UINT64_MAX);
    EXPECT_NE(seed_of("adversarial"), std::nullopt);
    EXPECT_EQ(order_with_seed("posted"), "posted");
    EXPECT_EQ(order_with_seed("adversarial,seed=3"), "adversarial,seed=3");
    EXPECT_EQ(order_with_seed("adversarial").find("adversarial,seed="), 0U);
    EXPECT_NE(order_with_seed("adversarial"), order_with_seed("adversarial"));
    for (const char* const wrong : {"random", "adversarial,", "adversarial,seed=", "adversarial,seed=-1",
                                    "adversarial,seed=18446744073709551616", "posted,seed=1"}) {
        settings chosen;
        chosen.order = wrong;
        EXPECT_THAT(to_options(chosen).error(), HasSubstr(std::string("order: '") + wrong + "' is not posted"));
    }
}

TEST(settings, the_place_of_a_fabric_comes_back_from_its_text)
{
    const auto place = parse_fabric_place(to_text({.process = 1234, .file = 5}));
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->process, 1234);
    EXPECT_EQ(place->file, 5);
    for (const char* wrong : {"", ":", "1", "1:", ":1", "0:1", "-1:1", "1:-1", "1:2x", "1:2:3", "99999999999:1"}) {
        EXPECT_FALSE(parse_fabric_place(wrong).has_value()) << wrong;
    }
}

} // namespace
} // namespace ucxl::softhca
