// Windows in all the ways that programs use them on a device: in lists, over several devices, by many threads, larger
// than 4 GiB, and many of them one after the other.
#include "device_fabric.h"
#include "remote_key.h"
#include "scenario.h"
#include "strided_window.h"
#include "transfer_batch.h"
#include "transports.h"

#include <memory>
#include <thread>

namespace ucxl::two_process
{

namespace
{

// A list of UCP whose entries are parts of windows. One of the two sides may be a plain buffer.
struct window_list {
    std::vector<std::unique_ptr<side>> sides;
    std::vector<std::uint64_t> lengths;
    std::vector<ucp_dt_iov_t> entries;

    window_list(session& session, test::random& random, std::uint64_t total, bool is_one_buffer)
    {
        const std::uint64_t number = is_one_buffer ? 1 : 1 + random.below(6);
        for (std::uint64_t left = number; left > 0; --left) {
            const std::uint64_t length = left == 1 ? total : total / 2;
            total -= length;
            const auto kind = is_one_buffer      ? side_kind::host
                              : random.one_in(3) ? side_kind::allocated
                                                 : side_kind::window;
            const side_plan plan{
                .kind = kind, .seed = random.next(), .before = random.below(300), .after = random.below(300)};
            sides.push_back(std::make_unique<side>(session, plan, length));
            lengths.push_back(length);
            entries.push_back({sides.back()->buffer(), length});
        }
    }

    template <typename Fn>
    void for_each(std::span<const std::byte> message, Fn&& use)
    {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            use(*sides[i], message.first(lengths[i]));
            message = message.subspan(lengths[i]);
        }
    }
    ucp_request_param_t describe() const
    {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype     = entries.size() > 1 ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
        return param;
    }
    const void* buffer() const { return entries.size() > 1 ? entries.data() : entries[0].buffer; }
    std::size_t count() const { return entries.size() > 1 ? entries.size() : entries[0].length; }
};

void lists(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const auto seed = test::derive_seed(arguments.seed, round);
        test::random common(seed);
        constexpr std::uint64_t sizes[] = {1, 100, 4096, 30000, 300000};
        const std::uint64_t length      = sizes[common.below(std::size(sizes))] + common.below(100);
        const int plain                 = static_cast<int>(common.below(3)); // nobody, for 2
        test::random random(test::derive_seed(seed, static_cast<std::uint64_t>(arguments.role)));
        window_list own(session, random, length, plain == arguments.role);
        const auto message = test::random_bytes(seed, length);
        auto param         = own.describe();
        own.for_each(message, [&](side& each, std::span<const std::byte> part) {
            arguments.plays(0) ? each.put_message(part) : each.expect_message(part);
        });
        if (arguments.plays(0)) {
            session.barrier();
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), own.buffer(), own.count(), round, &param)),
                     "send");
        } else {
            auto* const request = ucp_tag_recv_nbx(session.worker(), const_cast<void*>(own.buffer()), own.count(),
                                                   round, UINT64_MAX, &param);
            session.barrier();
            check_ok(session.wait(request), "receive");
        }
        session.barrier();
        for (const auto& each : own.sides) {
            each->verify();
        }
    }
    session.close();
}

// 64 MiB of memory, described again and again: more than 4 GiB of window.
void huge(const peer_arguments& arguments)
{
    constexpr std::size_t memory_length = std::size_t{64} << 20;
    constexpr std::size_t turns         = 65;
    constexpr std::size_t length        = turns * memory_length;
    const context_handle context(arguments);
    session session(arguments, context);
    void* const memory =
        mmap(nullptr, memory_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != MAP_FAILED, "mmap failed");
    auto* const start = static_cast<std::byte*>(memory);
    const auto layout = ucx_layout::layout::create_strided(memory_length, {{turns, 0}});
    check(layout.has_value(), "ucp_layout_strided failed");
    const auto window = ucx_layout::window::map(context.get(), *layout, memory);
    check(window.has_value(), "ucp_layout_map failed");
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
    bytes key;
    append_key(key, session.context(), window->memh(), window->address());
    const bytes other               = session.exchange(key);
    std::span<const std::byte> rest = other;
    {
        const remote_key target(session.endpoint(), rest);
        const ucp_request_param_t param{};
        for (const std::size_t offset : {length - 100, (std::size_t{4} << 30) - 50, std::size_t{0}}) {
            const auto sent = strided_window::message(100, static_cast<unsigned>(offset % 97));
            if (arguments.plays(0)) {
                check_ok(session.wait(ucp_put_nbx(session.endpoint(), sent.data(), sent.size(),
                                                  target.address() + offset, target.get(), &param)),
                         "put");
                session.flush();
                bytes got(sent.size());
                check_ok(session.wait(ucp_get_nbx(session.endpoint(), got.data(), got.size(), target.address() + offset,
                                                  target.get(), &param)),
                         "get");
                check(got == sent, "what came back from offset {} is not what was put", offset);
            }
            session.barrier();
            if (arguments.plays(1)) {
                for (std::size_t i = 0; i < sent.size(); ++i) {
                    check(start[(offset + i) % memory_length] == sent[i], "byte {} at offset {} is wrong", i, offset);
                }
            }
            session.barrier();
        }
        // One whole transfer, from window to window.
        if (arguments.plays(0)) {
            for (std::size_t i = 0; i < memory_length; i += 4096) {
                start[i] = strided_window::byte_of(3, i / 4096);
            }
            check_ok(session.wait(ucp_put_nbx(session.endpoint(), window->address(), length, target.address(),
                                              target.get(), &param)),
                     "put of the whole window");
            session.flush();
        }
    }
    session.barrier();
    for (std::size_t i = 0; i < memory_length; i += 4096) {
        check(start[i] == strided_window::byte_of(3, i / 4096), "byte {} is wrong after the whole transfer", i);
    }
    check_ok(ucp_layout_window_query(window->get(), &attr), "ucp_layout_window_query");
    check(attr.statistics.bytes_read == 0 && attr.statistics.bytes_written == 0, "CPUs copied");
    session.close();
    munmap(memory, memory_length);
}

// Windows of changing content; each is used once. Rounds of the second half need no more keys than the first.
void cycles(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    std::vector<std::byte> memory(1 << 20);
    const ucp_request_param_t param{};
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const std::size_t number = 2 + round % 61;
        const auto layout =
            ucx_layout::layout::create_strided(8 + 8 * (round % 7), {{number, static_cast<std::ptrdiff_t>(96)}});
        check(layout.has_value(), "ucp_layout_strided failed");
        void* const base  = memory.data() + round % 4001 * 64;
        const auto window = ucx_layout::window::map(context.get(), *layout, base);
        check(window.has_value(), "ucp_layout_map failed in round {}", round);
        if (round % 500 == 0) {
            if (arguments.plays(0)) {
                check_ok(session.wait(
                             ucp_tag_send_nbx(session.endpoint(), window->address(), window->length(), round, &param)),
                         "send");
            } else {
                check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), window->address(), window->length(), round,
                                                       UINT64_MAX, &param)),
                         "receive");
            }
        }
    }
    session.close();
}

const scenario list_transfers("device.lists", lists);
const scenario huge_windows("device.huge", huge);
const scenario map_cycles("device.cycles", cycles);

class device_windows : public testing::TestWithParam<setting>
{
};

TEST_P(device_windows, in_lists)
{
    EXPECT_PAIR(config_for(GetParam(), "device.lists", 20));
    auto config = config_for(GetParam(), "device.lists", 10);
    config.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, device_windows,
                         testing::Combine(testing::ValuesIn(transports({}, {"rc_x", "dc_x", "far"})),
                                          testing::Values("y")),
                         setting_name);

TEST(huge_device_windows, of_more_than_4_gigabytes_reach_every_byte)
{
    EXPECT_PAIR(config_for({transports({}, {"rc_x"}).front(), "y"}, "device.huge", 1));
}

class several_devices : public testing::TestWithParam<const char*>
{
};

TEST_P(several_devices, carry_transfers_of_every_kind)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "another number of software devices";
    }
    device_fabric fabric({"--devices", "2"});
    for (const char* const threshold : {"0", "auto"}) {
        auto config = config_for({transports({}, {"rc_x"}).front(), "y"}, GetParam(), 6);
        config.variables.emplace_back("UCX_MAX_RNDV_RAILS", "2");
        config.variables.emplace_back("UCX_MAX_EAGER_RAILS", "2");
        config.variables.emplace_back("UCX_MAX_RMA_RAILS", "2");
        config.variables.emplace_back("UCX_RNDV_THRESH", threshold);
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
    }
    EXPECT_EQ(fabric.end()["keys_left"], 0);
}

INSTANTIATE_TEST_SUITE_P(matrix, several_devices,
                         testing::Values("mixed", "device.lists", "errors.rebound", "threads"));

TEST(map_cycles_on_a_device, need_no_more_keys_the_more_there_are)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "only the software device counts its keys";
    }
    const auto most_keys = [](unsigned rounds, nlohmann::json& counts) {
        device_fabric fabric;
        auto config = config_for({transports({}, {"rc_x"}).front(), "y"}, "device.cycles", rounds);
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        counts = fabric.end();
        EXPECT_EQ(counts["keys_left"], 0);
        return counts["keys_live_max"].get<int>();
    };
    nlohmann::json few;
    nlohmann::json many;
    const int keys_of_few  = most_keys(5000, few);
    const int keys_of_many = most_keys(10000, many);
    EXPECT_LE(keys_of_many, keys_of_few + 20);
    EXPECT_LE(many["commands"]["create_mkey"]["count"].get<int>(),
              few["commands"]["create_mkey"]["count"].get<int>() + 200);
}

} // namespace

} // namespace ucxl::two_process
