// What the device did is counted, not assumed: transfers of windows are the work requests of contiguous memory, no CPU
// copies a byte, and what is done for the first window is not done again for each transfer.
#include "device_fabric.h"
#include "remote_key.h"
#include "scenario.h"
#include "strided_window.h"
#include "transports.h"

#include <map>
#include <optional>
#include <string>

namespace ucxl::two_process
{

namespace
{

constexpr strided_shape usual_shape{.block = 64, .number = 1024};

struct target {
    bytes own;
    std::optional<remote_key> key;

    target(session& session, const strided_window& window)
    {
        bytes packed;
        append_key(packed, session.context(), window.get().memh(), window.address());
        own                             = session.exchange(packed);
        std::span<const std::byte> rest = own;
        key.emplace(session.endpoint(), rest);
    }
};

// Role 0 acts. With a window on both sides, and then with host memory on its own side.
void put_or_get(const peer_arguments& arguments, bool is_put, bool from_window)
{
    const context_handle context(arguments);
    session session(arguments, context);
    strided_window window(context.get(), usual_shape);
    bytes host(window.length());
    {
        const target other(session, window);
        if (arguments.plays(is_put ? 0 : 1)) {
            window.fill(3);
            host = strided_window::message(host.size(), 3);
        }
        session.barrier();
        if (arguments.plays(0)) {
            void* const local = from_window ? window.address() : host.data();
            const ucp_request_param_t param{};
            for (unsigned round = 0; round < arguments.rounds; ++round) {
                const auto request = is_put ? ucp_put_nbx(session.endpoint(), local, host.size(), other.key->address(),
                                                          other.key->get(), &param)
                                            : ucp_get_nbx(session.endpoint(), local, host.size(), other.key->address(),
                                                          other.key->get(), &param);
                check_ok(session.wait(request), is_put ? "put" : "get");
            }
            session.flush();
        }
    }
    session.barrier();
    if (!is_put && !from_window && arguments.plays(0)) {
        check(host == strided_window::message(host.size(), 3), "a get brought other bytes");
        window.verify_untouched("the window of a get into host memory");
    } else if (is_put && !from_window && arguments.plays(0)) {
        window.fill(3);
    } else {
        window.verify(3, "after all rounds");
    }
    window.expect_no_copies("after all rounds");
    session.close();
}

void messages(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    strided_window window(context.get(), usual_shape);
    if (arguments.plays(0)) {
        window.fill(4);
    }
    const ucp_request_param_t param{};
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        if (arguments.plays(1)) {
            const auto request =
                ucp_tag_recv_nbx(session.worker(), window.address(), window.length(), 1, UINT64_MAX, &param);
            session.barrier();
            check_ok(session.wait(request), "receive");
        } else {
            session.barrier();
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address(), window.length(), 1, &param)),
                     "send");
        }
    }
    session.flush();
    session.barrier();
    window.verify(4, "after all rounds");
    if (arguments.plays(0) || std::getenv("UCX_RNDV_THRESH") == std::string("0")) {
        window.expect_no_copies("after all rounds");
    }
    session.close();
}

const scenario put_of_window("counts.put", [](const peer_arguments& a) { put_or_get(a, true, true); });
const scenario get_of_window("counts.get", [](const peer_arguments& a) { put_or_get(a, false, true); });
const scenario put_of_host("counts.put_host", [](const peer_arguments& a) { put_or_get(a, true, false); });
const scenario get_of_host("counts.get_host", [](const peer_arguments& a) { put_or_get(a, false, false); });
const scenario message_of_window("counts.tag", messages);

struct counted_kind {
    const char* name;
    const char* scenario;
    environment variables;
    std::map<std::string, int> per_round; // work requests
};

void PrintTo(const counted_kind& kind, std::ostream* to)
{
    *to << kind.name;
}

class counts : public testing::TestWithParam<std::tuple<counted_kind, transport_set>>
{
protected:
    static nlohmann::json run(unsigned rounds)
    {
        const auto& [kind, transports] = GetParam();
        device_fabric fabric;
        auto config = config_for({transports, "y"}, kind.scenario, rounds);
        config.variables.insert(config.variables.end(), kind.variables.begin(), kind.variables.end());
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        return fabric.end();
    }
};

int count_of(const nlohmann::json& counts, const char* group, const std::string& name)
{
    const auto& all = counts[group];
    return all.contains(name) ? all[name]["count"].get<int>() : 0;
}

TEST_P(counts, of_many_transfers_differ_by_their_work_requests_only)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "only the software device has such counts";
    }
    const auto& [kind, transports] = GetParam();
    const auto few                 = run(10);
    const auto many                = run(110);
    for (const auto& [name, number] : kind.per_round) {
        EXPECT_EQ(count_of(many, "wqes", name) - count_of(few, "wqes", name), 100 * number) << name;
    }
    EXPECT_EQ(many["commands"], few["commands"]);
    EXPECT_EQ(many["error_completions"], 0);
    EXPECT_EQ(many["keys_left"], 0);
    EXPECT_EQ(many["keys_live_max"], few["keys_live_max"]);
}

const environment get_scheme = {{"UCX_RNDV_THRESH", "0"}, {"UCX_RNDV_SCHEME", "get_zcopy"}};
const environment put_scheme = {{"UCX_RNDV_THRESH", "0"}, {"UCX_RNDV_SCHEME", "put_zcopy"}};

// The opcode of a bind is "umr", which no transfer needs.
const counted_kind kinds[] = {
    {"put", "counts.put", {}, {{"rdma_write", 1}, {"rdma_read", 0}, {"umr", 0}}},
    {"get", "counts.get", {}, {{"rdma_write", 0}, {"rdma_read", 1}, {"umr", 0}}},
    {"put_from_host", "counts.put_host", {}, {{"rdma_write", 1}, {"rdma_read", 0}, {"umr", 0}}},
    {"get_to_host", "counts.get_host", {}, {{"rdma_write", 0}, {"rdma_read", 1}, {"umr", 0}}},
    {"rendezvous_get", "counts.tag", get_scheme, {{"rdma_write", 0}, {"rdma_read", 2}, {"umr", 0}}},
    {"rendezvous_put", "counts.tag", put_scheme, {{"rdma_write", 2}, {"rdma_read", 0}, {"umr", 0}}},
};

std::string counted_name(const testing::TestParamInfo<std::tuple<counted_kind, transport_set>>& each)
{
    return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
}

INSTANTIATE_TEST_SUITE_P(matrix, counts,
                         testing::Combine(testing::ValuesIn(kinds),
                                          testing::ValuesIn(transports({}, {"rc_x", "dc_x"}))),
                         counted_name);
// Not rc_v: how often it flushes by a write of its own differs.
INSTANTIATE_TEST_SUITE_P(other_transports, counts,
                         testing::Combine(testing::Values(kinds[0], kinds[1]),
                                          testing::ValuesIn(transports({}, {"far"}))),
                         counted_name);

} // namespace

} // namespace ucxl::two_process
