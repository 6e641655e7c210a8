// Windows that no network card may register: every operation, also between a process with such windows and one with
// windows of the usual kind.
#include "plain_peer.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ucp/api/ucp.h>
#include <ucp_layout.hpp>

namespace ucxl::two_process
{

namespace
{

constexpr auto option = "UCX_LAYOUT_KEYS_WINDOWS";

ucs_memory_type_t type_of(const ucx_layout::window& window)
{
    ucp_mem_attr_t attr{};
    attr.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    check_ok(ucp_mem_query(window.memh(), &attr), "ucp_mem_query");
    return attr.mem_type;
}

// What one pass is good for: 512 KB and more of memory that the peer can map, unless one number of each cache line is
// sent, and 8 MB and more of long blocks in other memory.
struct shape {
    const char* name;
    std::uint64_t length, count;
    std::int64_t stride;
    bool of_library;
    bool is_direct; // otherwise, in memory of the library: staged
};

constexpr std::array shapes = {
    shape{"blocks", 64, 10000, 128, false, false},
    shape{"long blocks", 3000000, 3, 4000000, false, true},
    shape{"few long blocks", 200000, 3, 300000, false, false},
    shape{"one block", 9000000, 1, 9000000, false, true},
    shape{"one short block", 600000, 1, 600000, false, false},
    shape{"blocks of the library", 64, 10000, 128, true, true},
    shape{"few blocks of the library", 64, 1000, 128, true, false},
    shape{"numbers of the library, several in a line", 8, 80000, 32, true, true},
    shape{"numbers of the library", 8, 80000, 128, true, false},
};

ucx_layout::window make(const context_handle& context, const shape& shape, std::vector<std::byte>& memory)
{
    const auto layout = ucx_layout::layout::create_strided(shape.length, {{shape.count, shape.stride}});
    check(layout.has_value(), "ucp_layout_create failed");
    memory.resize(shape.count * static_cast<std::size_t>(shape.stride));
    auto made = shape.of_library ? ucx_layout::window::allocate(context.get(), *layout)
                                 : ucx_layout::window::map(context.get(), *layout, memory.data());
    check(made.has_value(), "no window of {}", shape.name);
    return std::move(*made);
}

// Without this, the tests below could pass with windows of the usual kind.
void types(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const char* const asked = std::getenv(option);
    const bool is_staged    = asked != nullptr && std::string_view(asked) == "copies" && protocols_know_memory_types();
    const bool may_differ   = (asked == nullptr || std::string_view(asked) == "auto") && protocols_know_memory_types();
    for (const shape& each : shapes) {
        std::vector<std::byte> memory;
        const auto type     = type_of(make(context, each, memory));
        const auto expected = is_staged || (may_differ && each.of_library && !each.is_direct) ? UCS_MEMORY_TYPE_ROCM
                                                                                              : UCS_MEMORY_TYPE_RDMA;
        if (may_differ && each.is_direct) {
            check(type != UCS_MEMORY_TYPE_RDMA && type != UCS_MEMORY_TYPE_ROCM && type != UCS_MEMORY_TYPE_HOST,
                  "{}: memory type {} is not one of its own", each.name, static_cast<int>(type));
        } else {
            check(type == expected, "{}: memory type {}", each.name, static_cast<int>(type));
        }
    }
    session.close();
}

void fill(const ucx_layout::window& window, const shape& shape, const bytes& packed)
{
    void* base = nullptr;
    check_ok(window.bases({&base, 1}), "ucp_layout_window_bases");
    for (std::size_t i = 0; i < shape.count; ++i) {
        std::memcpy(static_cast<std::byte*>(base) + i * static_cast<std::size_t>(shape.stride),
                    packed.data() + i * shape.length, shape.length);
    }
}

// A message of 640 KB: the receiver of a direct one copies it in the memory of the sender, whose processor then reads
// nothing. It arrives in host memory.
void one_pass(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const ucp_request_param_t param{};
    for (const shape& each :
         {shape{"blocks", 64, 10240, 128, true, true}, shape{"numbers", 8, 81920, 128, true, false},
          shape{"one block", 655360, 1, 655360, true, true}, shape{"short", 64, 1024, 128, true, false},
          shape{"blocks of the application", 64, 10240, 128, false, false}}) {
        const std::size_t length = each.length * each.count;
        const bytes sent         = test_pattern(length, 1);
        std::vector<std::byte> memory, received(length);
        if (arguments.role == 0) {
            const auto window = make(context, each, memory);
            fill(window, each, sent);
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address(), length, 1, &param)), "send");
            session.barrier();
            ucp_layout_window_attr_t attr{};
            attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
            check_ok(ucp_layout_window_query(window.get(), &attr), "ucp_layout_window_query");
            check((attr.statistics.bytes_read == 0) == each.is_direct, "{}: the sender read {} bytes", each.name,
                  attr.statistics.bytes_read);
        } else {
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), received.data(), length, 1, ~ucp_tag_t{}, &param)),
                     "receive");
            check(received == sent, "{}: something else arrived", each.name);
            session.barrier();
        }
    }
    session.close();
}

const scenario types_of_windows("staged.types", types);
const scenario messages_in_one_pass("staged.one_pass", one_pass);

// What the two peers set the option to.
struct peer_carriers {
    const char* name;
    std::array<const char*, 2> values;
};

constexpr peer_carriers both   = {"both", {"copies", "copies"}};
constexpr peer_carriers first  = {"first", {"copies", "auto"}};
constexpr peer_carriers second = {"second", {"keys", "copies"}};

using staged_setting = std::tuple<peer_carriers, transport_set, const char*>;

class staged_windows : public testing::TestWithParam<staged_setting>
{
protected:
    static pair_config config(const char* scenario_name, unsigned rounds)
    {
        const auto& [carriers, transports, protocols] = GetParam();
        auto config                                   = config_for({transports, protocols}, scenario_name, rounds);
        config.variables.emplace_back("UCX_LAY_CMA_MIN_BLOCK", "1");
        for (std::size_t role = 0; role < 2; ++role) {
            config.own_variables[role].emplace_back(option, carriers.values[role]);
        }
        return config;
    }
};

std::string staged_name(const testing::TestParamInfo<staged_setting>& info)
{
    const auto& [carriers, transports, protocols] = info.param;
    return std::string(carriers.name) + "_" + setting_name({{transports, protocols}, info.index});
}

TEST_P(staged_windows, have_another_type)
{
    EXPECT_PAIR(config("staged.types", 1));
}

TEST_P(staged_windows, transfers_of_every_kind)
{
    EXPECT_PAIR(config("mixed", 20));
}

TEST_P(staged_windows, rendezvous_for_every_length)
{
    auto pair = config("mixed", 6);
    pair.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_PAIR(pair);
}

TEST_P(staged_windows, without_the_memory_type_cache)
{
    auto pair = config("mixed", 4);
    pair.variables.emplace_back("UCX_MEMTYPE_CACHE", "n");
    EXPECT_PAIR(pair);
}

TEST_P(staged_windows, atomics)
{
    EXPECT_PAIR(config("atomics", 1));
    EXPECT_PAIR(config("atomics_of_blocks.every_operation", 1));
}

const std::vector<transport_set> some_transports = {
    {"default", nullptr, false},
    {"posix", "posix,lay_copy", false},
    {"posix_shm", "posix,lay_copy,lay_shm", false},
    {"posix_cma", "posix,lay_copy,lay_cma", false},
    {"tcp", "tcp,lay_copy", false},
};

INSTANTIATE_TEST_SUITE_P(matrix, staged_windows,
                         testing::Combine(testing::Values(both, first, second), testing::ValuesIn(some_transports),
                                          testing::Values("y")),
                         staged_name);
// With the older protocols there are no such windows, and nothing else changes.
INSTANTIATE_TEST_SUITE_P(old_protocols, staged_windows,
                         testing::Combine(testing::Values(both, first, second),
                                          testing::ValuesIn(transports({"posix", "tcp"})),
                                          testing::ValuesIn(only_old_protocols())),
                         staged_name);

TEST(direct_windows, are_sent_in_one_pass)
{
    const pair_config config{.scenario  = "staged.one_pass",
                             .variables = {{"UCX_TLS", "posix,lay_copy,lay_shm,lay_cma"}}};
    EXPECT_PAIR(config);
}

TEST(staged_windows_alone, transfers_of_every_kind_within_a_process)
{
    pair_config config{
        .scenario = "mixed", .variables = {{"UCX_TLS", "self,lay_copy"}, {option, "copies"}}, .rounds = 20};
    config.programs[1] = peer_program::none;
    EXPECT_PAIR(config);
}

// Transfers that leave the target alone show that the transports for the host's windows are used at all.
class staged_passive_target : public testing::TestWithParam<std::tuple<const char*, transport_set>>
{
};

TEST_P(staged_passive_target, puts_and_gets_need_nothing_of_the_target)
{
    const auto& [scenario_name, transports] = GetParam();
    auto config                             = config_for({transports, "y"}, scenario_name, 60);
    config.variables.emplace_back("UCX_LAY_CMA_MIN_BLOCK", "1");
    config.variables.emplace_back(option, "copies");
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(
    matrix, staged_passive_target,
    testing::Values(std::tuple("lay_shm.passive_target", transport_set{"tcp", "tcp,lay_copy,lay_shm", false}),
                    std::tuple("lay_shm.passive_atomics", transport_set{"posix", "posix,lay_copy,lay_shm", false}),
                    std::tuple("lay_cma.passive_target", transport_set{"tcp", "tcp,lay_copy,lay_cma", false})));

} // namespace

} // namespace ucxl::two_process
