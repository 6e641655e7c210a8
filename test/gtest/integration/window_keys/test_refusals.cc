// A card that refuses from its Nth bind of a kind on, or only that one, for every N until it has none to refuse: a
// window that gets no key is copied and says why, every byte is right either way, and the device has no object left in
// the end. What the self-test meets narrows what the domain uses; what comes later concerns one window. A card that
// takes a bind and refuses to use the key ends the connection, so all that has to be found by the self-test.
#include "device_control.h"
#include "shown_memory.h"

#include "support/log_guard.h"
#include "support/process.h"

#include <array>
#include <format>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

namespace ucxl::test
{
namespace
{

// Irregular and too many for one request, so their list lies in memory, and too many for the window's own key.
spec_ptr pieces(std::int64_t number)
{
    std::vector<spec_part> parts;
    for (std::int64_t i = 0; i < number; ++i) {
        parts.push_back({0, 200 * i + i * i % 61, spec::block(64), 1, {}});
    }
    return spec::iov(std::move(parts));
}

// So many blocks in loops within each other that it becomes keys over keys over keys.
spec_ptr three_loops(std::uint64_t block)
{
    return spec::strided(spec::block(block), {{16, 60000}, {8, 7000}, {8, 800}});
}

struct refusal {
    const char* name;
    const char* fault;
    const char* need; // as the reason names it, a regular expression
};

void PrintTo(const refusal& one, std::ostream* to)
{
    *to << one.name;
}

class refusals : public testing::TestWithParam<refusal>
{
protected:
    // A context, two windows that are sent and received into, one of them shown elsewhere meanwhile. Returns whether
    // something was refused.
    bool refuse_from(unsigned number)
    {
        _device.fail(std::format("{},first={}", GetParam().fault, number));
        bool has_refused = false;
        {
            own_peer peer;
            // The key of a window that is unused since a round before, of the same layout and at the same place,
            // would be taken as it is, so that nothing could be refused.
            static unsigned num_rounds = 0;
            ++num_rounds;
            std::array<shown_memory, 2> all{shown_memory(spec::strided(spec::block(64), {{500 + num_rounds, 160}})),
                                            shown_memory(pieces(300 + num_rounds))};
            for (shown_memory& each : all) {
                check_ok(each.map(peer.context()), "ucp_layout_map");
                each.exchange(peer);
                note(each);
            }
            for (shown_memory& each : all) {
                if (each.rebind() != UCS_OK) { // it shows the memory before, or nothing
                    each.unmap();
                    check_ok(each.map(peer.context()), "ucp_layout_map after rebinding was refused");
                }
                each.exchange(peer);
                note(each);
            }
            has_refused = _device.stop_failing();
        }
        EXPECT_EQ(_device.objects(), _before);
        return has_refused;
    }

    void note(const shown_memory& memory)
    {
        if (memory.has_key()) {
            ++_num_keyed;
            return;
        }
        ++_num_copied;
        const std::string reason = memory.why_no_key();
        EXPECT_TRUE(std::regex_search(reason, std::regex(GetParam().need))) << reason;
        EXPECT_TRUE(!reason.starts_with("a bind request") || reason.contains("vendor syndrome 0x")) << reason;
    }

    const device_control _device;
    const device_objects _before = _device.objects();
    unsigned _num_keyed          = 0;
    unsigned _num_copied         = 0;
    log_guard _logs;
};

TEST_P(refusals, at_any_step_leave_windows_right)
{
    _logs.allow("ucp_layout_rebind: ");
    _logs.allow("shows nothing any more"); // nor may the key be bound to what it showed before
    unsigned number = 1;
    while (!HasFailure() && number < 100 && refuse_from(number)) {
        ++number;
    }
    EXPECT_GT(number, 2U);
    EXPECT_LT(number, 100U) << "something is refused without end";
    EXPECT_GT(_num_keyed, 0U);
    EXPECT_GT(_num_copied, 0U);
    RecordProperty("steps", std::to_string(number - 1));
    RecordProperty("copied", std::to_string(_num_copied));
}

constexpr refusal kinds[] = {
    {"a_start_address", "refuse:umr_start_addr,times=1", "start address"},
    {"start_addresses", "refuse:umr_start_addr", "start address"},
    {"a_repeat_block", "refuse:umr_repeat_block,times=1", "repeat block"},
    {"repeat_blocks", "refuse:umr_repeat_block", "repeat block"},
    {"a_list_in_memory", "refuse:umr_pointer,times=1", "list in memory"},
    {"lists_in_memory", "refuse:umr_pointer", "list in memory"},
    {"an_atomic_right", "refuse:umr_atomic_right,times=1", "atomic"},
    // Every bind names it, until the self-test finds out. If the first bind was taken, it finds out less.
    {"atomic_rights", "refuse:umr_atomic_right", "atomic|begin at address 0|over the limit of 1"},
};

struct refused_use {
    const char* name;
    const char* fault;
    std::array<const char*, 3> reasons; // of a strided window, one of pieces, one of three loops; null: it has a key
};

void PrintTo(const refused_use& one, std::ostream* to)
{
    *to << one.name;
}

class refused_uses : public testing::TestWithParam<refused_use>
{
};

TEST_P(refused_uses, are_found_before_a_window_has_keys)
{
    const device_control device;
    const device_objects before = device.objects();
    device.fail(GetParam().fault);
    {
        own_peer peer;
        std::array<shown_memory, 3> all{shown_memory(spec::strided(spec::block(64), {{500, 160}})),
                                        shown_memory(pieces(300)), shown_memory(three_loops(400))};
        for (std::size_t i = 0; i < all.size(); ++i) {
            check_ok(all[i].map(peer.context()), "ucp_layout_map");
            all[i].exchange(peer);
            const char* const reason = GetParam().reasons[i];
            EXPECT_EQ(all[i].has_key(), reason == nullptr) << i << ": " << all[i].why_no_key();
            EXPECT_TRUE(reason == nullptr || all[i].why_no_key().contains(reason)) << i << ": " << all[i].why_no_key();
        }
        EXPECT_TRUE(device.stop_failing()) << "nothing was refused";
    }
    EXPECT_EQ(device.objects(), before);
}

// Though the window is of the same layout and over the same memory, and lay unused meanwhile.
TEST(refused_windows, get_keys_in_a_context_whose_device_has_them)
{
    const device_control device;
    shown_memory memory(spec::strided(spec::block(64), {{613, 160}}));
    device.fail("refuse:indirect_atomic");
    {
        own_peer peer;
        check_ok(memory.map(peer.context()), "ucp_layout_map");
        EXPECT_FALSE(memory.has_key());
        memory.unmap();
    }
    EXPECT_TRUE(device.stop_failing());
    own_peer peer;
    check_ok(memory.map(peer.context()), "ucp_layout_map");
    EXPECT_TRUE(memory.has_key()) << memory.why_no_key();
    memory.exchange(peer);
    memory.unmap();
}

void change_device(const std::string& change)
{
    const auto ended = process(SOFTHCA_RUN, {"--change", change}, {.variables = {{"LD_PRELOAD", ""}}}).wait();
    check(ended.status == 0, "softhca-run --change {}: {}", change, ended.output());
}

TEST(port, that_was_down_at_the_first_window_is_asked_again)
{
    log_guard logs;
    logs.allow("windows get no hardware keys");
    own_peer peer;
    change_device("port_down:mlx5_0");
    shown_memory early(spec::strided(spec::block(64), {{611, 160}}));
    check_ok(early.map(peer.context()), "ucp_layout_map");
    EXPECT_FALSE(early.has_key());
    EXPECT_TRUE(early.why_no_key().contains("not active")) << early.why_no_key();
    change_device("port_up:mlx5_0");
    shown_memory late(spec::strided(spec::block(64), {{612, 160}}));
    check_ok(late.map(peer.context()), "ucp_layout_map");
    EXPECT_TRUE(late.has_key()) << late.why_no_key();
    late.exchange(peer);
}

constexpr auto no_atomics = "none by keys of windows (use: ";
constexpr auto too_deep   = "over the limit of 1";

constexpr refused_use uses[] = {
    {"local_nested", "refuse:local_nested", {}},
    {"deep_local_nested", "refuse:deep_local_nested", {}},
    {"nested_repeat_block", "refuse:nested_repeat_block", {nullptr, too_deep, too_deep}},
    {"an_atomic_through_keys", "refuse:nested_atomic", {no_atomics, no_atomics, no_atomics}},
    {"indirect_atomic", "refuse:indirect_atomic", {no_atomics, no_atomics, no_atomics}},
};

INSTANTIATE_TEST_SUITE_P(of, refused_uses, testing::ValuesIn(uses),
                         [](const auto& one) { return std::string(one.param.name); });

INSTANTIATE_TEST_SUITE_P(of, refusals, testing::ValuesIn(kinds),
                         [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace ucxl::test
