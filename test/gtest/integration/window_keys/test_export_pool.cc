// The pool of keys for memory that other functions of the device use: how many there are, and what an export does when
// none is ready. The figures tell.
#include "device_control.h"
#include "dpu.h"
#include "library_part.h"
#include "shown_memory.h"

#include "support/log_guard.h"
#include "support/printed_text.h"
#include "support/wait_until.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ucxl::test
{
namespace
{

using namespace std::chrono_literals;

enum class owner { library, ucx, nobody };

// Whose key the exported handle has.
owner owner_of_export(ucp_mem_h memh)
{
    const auto packed = exported(memh);
    return packed.empty() ? owner::nobody : is_of_the_library(packed) ? owner::library : owner::ucx;
}

struct shown_figures {
    unsigned long exported;
    unsigned long spare;
};

shown_figures figures()
{
    const std::string all =
        printed_text([](FILE* stream) { check_ok(ucp_layout_print_windows(0, stream), "ucp_layout_print_windows"); });
    const auto number = [&](const std::string& name) {
        const auto found = all.find("\n  " + name + " ");
        check(found != std::string::npos, "no figure '{}' in:\n{}", name, all);
        return std::stoul(all.substr(found + name.size() + 3));
    };
    return {.exported = number("exported"), .spare = number("unused keys for export")};
}

class export_pool : public ucx_test
{
protected:
    ~export_pool() override
    {
        _held.clear();
        _peer.reset();
        for (const auto& [name, before] : _before) {
            setenv(name.c_str(), before.c_str(), 1);
        }
    }

    void set(const std::string& option, const char* value)
    {
        const std::string name      = "UCX_LAYOUT_KEYS_EXPORT_" + option;
        const char* const before    = getenv(name.c_str());
        static const auto& defaults = *new std::map<std::string, std::string>{
            {"SPARE", "0"}, {"MAX", "65536"}, {"EMPTY", "grow"}, {"WAIT", "100ms"}, {"IDLE", "10s"}};
        _before.try_emplace(name, before != nullptr ? before : defaults.at(option));
        setenv(name.c_str(), value, 1);
    }

    ucp_context_h context()
    {
        if (_peer == nullptr) {
            _peer = std::make_unique<own_peer>();
        }
        return _peer->context();
    }

    std::unique_ptr<plain_buffer> fresh() { return std::make_unique<plain_buffer>(context()); }
    owner exported_fresh()
    {
        _held.push_back(fresh());
        return owner_of_export(_held.back()->memh());
    }
    // UCX deregisters freed memory with its next registration.
    void let_go()
    {
        _held.clear();
        fresh();
    }

    // Uses all keys that there are, gives most of them back, and calls act() with a buffer that is not exported yet.
    template <typename Act>
    void while_keys_rest_and_the_device_gives_no_more(Act&& act)
    {
        constexpr std::size_t num_spare = 4; // as many rest
        set("SPARE", std::to_string(num_spare).c_str());
        _peer = std::make_unique<own_peer>(own_peer_options{.keeps_memory = false});
        for (std::size_t i = 0; i < 2 * num_spare; ++i) { // now, because registering makes keys, too
            _held.push_back(fresh());
        }
        const auto spare = [&] { // the figures change with the next export
            owner_of_export(_held.front()->memh());
            return figures().spare;
        };
        ASSERT_TRUE(wait_until([&] { return spare() >= num_spare - 1; }));
        const device_control device;
        device.fail("command:create_mkey,first=1,times=all");
        const std::size_t num_used = spare();
        for (std::size_t i = 1; i <= num_used; ++i) {
            EXPECT_EQ(owner_of_export(_held[i]->memh()), owner::library);
        }
        for (std::size_t i = 1; i <= num_used; ++i) {
            _held[i].reset();
        }
        act(*_held.back());
        EXPECT_TRUE(device.stop_failing());
    }

    std::vector<std::unique_ptr<plain_buffer>> _held;

private:
    std::unique_ptr<own_peer> _peer;
    std::map<std::string, std::string> _before;
};

TEST_F(export_pool, leaves_buffers_beyond_its_maximum_to_ucx_until_one_comes_back)
{
    set("MAX", "3");
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(exported_fresh(), owner::library) << round;
        }
        EXPECT_EQ(exported_fresh(), owner::ucx) << round;
        EXPECT_EQ(figures().exported, 3u);
        let_go();
        EXPECT_EQ(figures().exported, 0u);
        EXPECT_EQ(figures().spare, 3u);
    }
}

TEST_F(export_pool, refuses_a_window_beyond_its_maximum)
{
    set("MAX", "1");
    shown_memory memory(spec::strided(spec::block(64), {{77, 128}}));
    check_ok(memory.map(context()), "ucp_layout_map");
    ASSERT_EQ(exported_fresh(), owner::library);
    logs().expect("1 keys exist, the limit is 1");
    logs().allow("ucp_memh_pack");
    EXPECT_EQ(owner_of_export(memory.window().memh()), owner::nobody);
    let_go();
    EXPECT_EQ(owner_of_export(memory.window().memh()), owner::library)
        << "the key of a buffer goes for one of a window";
    EXPECT_EQ(exported_fresh(), owner::ucx);
}

TEST_F(export_pool, loses_no_key_when_binding_fails)
{
    set("MAX", "2");
    ASSERT_EQ(exported_fresh(), owner::library);
    logs().allow("ibv_poll_cq(UMR CQ");
    logs().allow("failed to export");
    const device_control device;
    for (int i = 0; i < 5; ++i) {
        device.fail("wqe:umr,first=1");
        EXPECT_NE(exported_fresh(), owner::library);
        EXPECT_TRUE(device.stop_failing());
    }
    EXPECT_EQ(exported_fresh(), owner::library);
    EXPECT_EQ(figures().exported, 2u);
}

TEST_F(export_pool, lets_a_key_rest_before_it_shows_other_memory)
{
    set("SPARE", "3");
    std::vector<std::uint32_t> used;
    for (int i = 0; i < 10; ++i) {
        _held.push_back(fresh());
        auto packed               = exported(_held.back()->memh());
        const auto key            = unpacked(packed).key.key;
        const std::size_t resting = std::min<std::size_t>(used.size(), 3);
        EXPECT_FALSE(std::ranges::contains(used.end() - static_cast<std::ptrdiff_t>(resting), used.end(), key)) << i;
        used.push_back(key);
        let_go();
    }
}

// The limit leaves no other keys, so those that came back do not rest.
TEST_F(export_pool, lets_no_key_rest_at_its_maximum)
{
    set("SPARE", "16");
    set("MAX", "1");
    set("EMPTY", "fresh");
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(exported_fresh(), owner::library) << i;
        let_go();
    }
}

TEST_F(export_pool, takes_a_key_that_rests_if_the_device_gives_no_more)
{
    while_keys_rest_and_the_device_gives_no_more(
        [](const plain_buffer& next) { EXPECT_EQ(owner_of_export(next.memh()), owner::library); });
}

TEST_F(export_pool, waits_until_a_key_has_rested)
{
    set("EMPTY", "wait");
    set("WAIT", "10s");
    while_keys_rest_and_the_device_gives_no_more([](const plain_buffer& next) {
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(owner_of_export(next.memh()), owner::library);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
    });
}

TEST_F(export_pool, takes_a_key_that_rests_after_it_has_waited)
{
    set("EMPTY", "wait");
    set("WAIT", "1ms");
    while_keys_rest_and_the_device_gives_no_more(
        [](const plain_buffer& next) { EXPECT_EQ(owner_of_export(next.memh()), owner::library); });
}

TEST_F(export_pool, takes_no_time_for_a_key_if_told_so)
{
    set("EMPTY", "fresh");
    EXPECT_EQ(exported_fresh(), owner::library);
    EXPECT_EQ(exported_fresh(), owner::ucx);
}

TEST_F(export_pool, waits_for_a_key_that_comes_back)
{
    set("EMPTY", "wait");
    set("WAIT", "100s");
    set("MAX", "1");
    ASSERT_EQ(exported_fresh(), owner::library);
    const auto later = fresh(); // before the thread: UCX registers under its context's lock
    std::jthread exporting([&] { EXPECT_EQ(owner_of_export(later->memh()), owner::library); });
    std::this_thread::sleep_for(20ms);
    let_go();
}

TEST_F(export_pool, waits_no_longer_than_told)
{
    set("EMPTY", "wait");
    set("WAIT", "1ms");
    set("MAX", "1");
    EXPECT_EQ(exported_fresh(), owner::library);
    EXPECT_EQ(exported_fresh(), owner::ucx);
}

TEST_F(export_pool, waits_for_nothing_if_no_key_can_come)
{
    set("EMPTY", "wait");
    set("WAIT", "100s");
    shown_memory memory(spec::strided(spec::block(64), {{79, 128}}));
    check_ok(memory.map(context()), "ucp_layout_map");
    EXPECT_EQ(owner_of_export(memory.window().memh()), owner::library) << "there is one of the other size only";
}

TEST_F(export_pool, is_filled_up_for_buffers_and_for_windows)
{
    set("SPARE", "8");
    EXPECT_EQ(exported_fresh(), owner::library);
    const auto spare = [&] { // the figures change with the next export
        owner_of_export(_held.front()->memh());
        return figures().spare;
    };
    EXPECT_TRUE(wait_until([&] { return spare() >= 7; })) << "the first one may be of the eight";
    for (int i = 0; i < 6; ++i) {
        exported_fresh();
    }
    EXPECT_TRUE(wait_until([&] { return spare() >= 4; })) << "half of them";
    shown_memory memory(spec::strided(spec::block(64), {{78, 128}}));
    check_ok(memory.map(context()), "ucp_layout_map");
    EXPECT_EQ(owner_of_export(memory.window().memh()), owner::library);
    EXPECT_TRUE(wait_until([&] { return spare() >= 4 + 7; })) << spare();
}

TEST_F(export_pool, gets_rid_of_keys_that_nobody_needs)
{
    set("SPARE", "2");
    set("IDLE", "30ms");
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(exported_fresh(), owner::library);
    }
    let_go();
    EXPECT_GE(figures().spare, 2u);
    exported_fresh();
    const auto spare = [&] {
        owner_of_export(_held.front()->memh());
        return figures().spare;
    };
    EXPECT_TRUE(wait_until([&] { return spare() <= 3; })) << spare();
    std::this_thread::sleep_for(100ms);
    EXPECT_GE(spare(), 2u);
}

} // namespace
} // namespace ucxl::test
