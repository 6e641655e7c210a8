#include "prm/command.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "softhca/shim/fault_spec.h"
#include "softhca/shim/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
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
        {"refuse:9", "refuse: 9 is above 0x8"},
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
    chosen.profile   = "bf3,imaicl=0,dc_wqe=512";
    chosen.times     = "bf3";
    chosen.faults    = "keys=7";
    const auto given = to_options(chosen);
    ASSERT_TRUE(given.has_value());
    EXPECT_EQ(given->devices, 2U);
    EXPECT_EQ(given->functions_per_device, 3U);
    EXPECT_EQ(given->costs, card_times::bf3);
    EXPECT_FALSE(given->card.imaicl);
    EXPECT_EQ(given->card.dc_wqe, 512);
    EXPECT_TRUE(given->card.exports);
    EXPECT_EQ(given->faults.rules[0].amount, 7U);
    settings wrong;
    wrong.devices = "two";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("devices: 'two' is not a number from 1 to 8"));
    wrong         = {};
    wrong.profile = "cx99";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("profile: 'cx99' is not none, cx5"));
    for (const char* const change :
         {"imaicl", "imaicl=2", "imaicl=x", "indirection=5", "fence=1", "dc_wqe=63", "list_alignment=96"}) {
        wrong.profile = std::string("cx7,") + change;
        EXPECT_THAT(to_options(wrong).error(), HasSubstr(std::format("profile: '{}' is no capability", change)));
    }
    wrong       = {};
    wrong.times = "cx99";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("times: 'cx99'"));
    wrong        = {};
    wrong.faults = "wqe:frob";
    EXPECT_THAT(to_options(wrong).error(), HasSubstr("fault 'wqe:frob': opcode"));
}

TEST(fault_spec, changes_of_devices_come_at_a_request_or_at_a_time)
{
    const auto counted = parse_fault("port_down:rdma_write,first=3,time=20ms");
    ASSERT_TRUE(counted.has_value()) << counted.error();
    EXPECT_EQ(counted->kind, fault_kind::port_down);
    EXPECT_EQ(counted->first, 3U);
    EXPECT_EQ(counted->amount, 20'000'000U);
    EXPECT_EQ(counted->after_ns, 0U);
    const auto timed = parse_fault("remove,after=2s,device=mlx5_3");
    ASSERT_TRUE(timed.has_value()) << timed.error();
    EXPECT_EQ(timed->kind, fault_kind::remove);
    EXPECT_EQ(timed->after_ns, 2'000'000'000U);
    EXPECT_EQ(timed->function, 3U);
    EXPECT_EQ(timed->amount, 0U);
    EXPECT_THAT(parse_fault("remove:send,after=2s").error(), HasSubstr("after: what comes at a time has no opcode"));
    EXPECT_THAT(parse_fault("fatal,first=2,after=2s").error(), HasSubstr("after: what comes at a time"));
    EXPECT_THAT(parse_fault("fatal,device=mlx5_1").error(), HasSubstr("device: only what comes at a time"));
    EXPECT_THAT(parse_fault("fatal,after=0s").error(), HasSubstr("after: '0s' is not a time of at most 60s"));
    EXPECT_TRUE(parse_fault("reset:umr,first=3").has_value());
    EXPECT_THAT(parse_fault("reset,time=1s").error(), HasSubstr("'time' is not a field of this kind"));
    EXPECT_THAT(parse_fault("wqe,after=1s").error(), HasSubstr("'after' is not a field of this kind"));
}

TEST(fault_spec, changes_name_their_device_first)
{
    const auto up = parse_change("port_up:mlx5_2,lid=0x20");
    ASSERT_TRUE(up.has_value()) << up.error();
    EXPECT_EQ(up->change.kind, change_kind::port_up);
    EXPECT_EQ(up->change.function, 2U);
    EXPECT_EQ(up->change.lid, 0x20U);
    const auto down = parse_change("port_down,time=5s");
    ASSERT_TRUE(down.has_value()) << down.error();
    EXPECT_EQ(down->change.function, 0U);
    EXPECT_EQ(down->time_ns, 5'000'000'000U);
    for (const char* const word : {"fatal", "remove", "recover", "reset"}) {
        EXPECT_TRUE(parse_change(word).has_value()) << word;
    }
    const std::pair<const char*, const char*> wrong[] = {
        {"", "'' is not port_down"},
        {"down", "'down' is not port_down"},
        {"remove:mlx4_0", "device: 'mlx4_0' is not one of mlx5_0 to mlx5_31"},
        {"remove:mlx5_32", "device: 'mlx5_32'"},
        {"recover,time=1s", "'time=1s' is not a field"},
        {"reset,time=1s", "'time=1s' is not a field"},
        {"port_up,lid=0xc000", "lid: '0xc000' is not a local identifier from 1 to 0xbfff"},
        {"port_up,", "'' is not a field"},
    };
    for (const auto& [text, message] : wrong) {
        EXPECT_THAT(parse_change(text).error(), HasSubstr(message)) << text;
    }
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
