// Windows over memory of a network card, alone or mixed with host memory: remote and local use of every kind.
#include "device_fabric.h"
#include "layouts.h"
#include "remote_words.h"
#include "scenario.h"
#include "transports.h"

#include "support/random_spec.h"
#include "support/spec_memory.h"

#include <ucp_layout.h>
#include <ucp_layout.hpp>

#include <cstdlib>
#include <string_view>
#include <vector>

#include <uct/api/uct.h>

namespace ucxl::two_process
{

namespace
{

struct unmap_window {
    void operator()(ucp_layout_window_h window) const { ucp_layout_unmap(window); }
};

using window_owner = std::unique_ptr<std::remove_pointer_t<ucp_layout_window_h>, unmap_window>;

ucs_status_t try_allocate(ucp_context_h context, ucp_layout_h layout, unsigned flags, ucp_layout_window_h* window)
{
    ucp_layout_map_params_t params{};
    params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS |
                        UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE;
    params.layout           = layout;
    params.flags            = UCP_LAYOUT_MAP_FLAG_ALLOCATE | flags;
    params.base_memory_type = UCS_MEMORY_TYPE_RDMA;
    return ucp_layout_map(context, &params, window);
}

window_owner allocate(const session& session, ucp_layout_h layout, unsigned flags = 0)
{
    ucp_layout_window_h window = nullptr;
    check_ok(try_allocate(session.context(), layout, flags, &window), "ucp_layout_map on a card");
    return window_owner(window);
}

ucp_layout_window_attr_t attributes(const window_owner& window)
{
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH |
                      UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH | UCP_LAYOUT_WINDOW_ATTR_FIELD_BASE_MEMORY_TYPE |
                      UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES;
    check_ok(ucp_layout_window_query(window.get(), &attr), "ucp_layout_window_query");
    return attr;
}

std::vector<void*> bases_of(const window_owner& window)
{
    std::vector<void*> bases(attributes(window).num_sources);
    check_ok(ucp_layout_window_bases(window.get(), bases.data(), static_cast<std::uint32_t>(bases.size())), "bases");
    return bases;
}

// The layout of the test: random, and short with its gaps, because cards have little memory.
test::spec_ptr random_layout(std::uint64_t seed)
{
    constexpr std::uint64_t enough = 96 << 10;
    test::random random(seed);
    for (;;) {
        auto found          = spec_of_length(random, 1 + random.below(3000));
        std::uint64_t spans = 0;
        for (const auto& [source, bounds] : bounds_of(*found)) {
            spans += bounds.true_length();
        }
        if (spans <= enough) {
            return found;
        }
    }
}

// The peer puts, gets and compares; then it receives what the owner sends from its window, and sends into it.
void use_remote_window(session& session, std::uint64_t seed)
{
    const bytes key                    = session.exchange({});
    std::span<const std::byte> payload = key;
    const remote_key remote(session.endpoint(), payload);
    std::uint64_t length = 0;
    std::memcpy(&length, payload.data(), sizeof(length));
    auto content = test::random_bytes(seed, length);
    bytes got(length);
    const ucp_request_param_t none{};
    const auto put = [&](std::uint64_t at, std::uint64_t size) {
        check_ok(session.wait(ucp_put_nbx(session.endpoint(), content.data() + at, size, remote.address() + at,
                                          remote.get(), &none)),
                 "ucp_put_nbx");
        session.flush();
    };
    const auto get_and_compare = [&](const char* moment) {
        std::ranges::fill(got, std::byte{0});
        check_ok(
            session.wait(ucp_get_nbx(session.endpoint(), got.data(), length, remote.address(), remote.get(), &none)),
            "ucp_get_nbx");
        check(got == content, "{}: the window holds other bytes", moment);
    };
    put(0, length);
    get_and_compare("after a put");
    test::random random(seed);
    const std::uint64_t at   = random.below(length);
    const std::uint64_t size = random.below(length - at + 1);
    const auto changed       = test::random_bytes(seed + 1, size);
    std::ranges::copy(changed, content.begin() + static_cast<std::ptrdiff_t>(at));
    put(at, size);
    get_and_compare("after a put of a part");
    session.barrier();
    check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), got.data(), length, 1, UINT64_MAX, &none)), "receive");
    check(got == content, "the owner sent other bytes");
    content = test::random_bytes(seed + 2, length);
    check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), content.data(), length, 2, &none)), "send");
    session.barrier();
    get_and_compare("after a receive");
    session.barrier();
}

void own_window(session& session, const ucp_layout_window_attr_t& window)
{
    bytes key;
    append_key(key, session.context(), window.memh, window.address);
    const auto length = std::as_bytes(std::span(&window.length, 1));
    key.insert(key.end(), length.begin(), length.end());
    session.exchange(key);
    session.barrier();
    const ucp_request_param_t none{};
    check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address, window.length, 1, &none)), "send");
    check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), window.address, window.length, 2, UINT64_MAX, &none)),
             "receive");
    session.barrier();
    session.barrier();
}

const scenario on_card("card_memory.window", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const auto seed = test::derive_seed(arguments.seed, round);
        if (arguments.role == 0) {
            const auto window = allocate(session, create_layout(*random_layout(seed)).get());
            check(attributes(window).base_memory_type == UCS_MEMORY_TYPE_RDMA, "it is not memory of the card");
            own_window(session, attributes(window));
        } else {
            use_remote_window(session, seed);
        }
    }
    session.close();
});

// Blocks on the card and in host memory take turns.
const scenario mixed("card_memory.mixed", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    constexpr std::uint64_t block = 24, count = 50;
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        const auto seed = test::derive_seed(arguments.seed, round);
        if (arguments.role == 1) {
            use_remote_window(session, seed);
            continue;
        }
        const auto card = allocate(session, ucx_layout::layout::create_contig(1, {block * count, nullptr})->get());
        std::vector<std::byte> host(2 * block * count, std::byte{0x5a});
        std::vector<void*> bases = {bases_of(card)[0], host.data()};
        const auto shape         = test::spec::interleaved({{0, 0, test::spec::block(block), 1, {{count, block}}},
                                                            {1, 0, test::spec::block(block), 1, {{count, 2 * block}}}});
        const auto window        = ucx_layout::window::map(session.context(), create_layout(*shape), bases);
        check(window.has_value(), "no window");
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_BASE_MEMORY_TYPE;
        check_ok(ucp_layout_window_query(window->get(), &attr), "query");
        check(attr.base_memory_type == UCS_MEMORY_TYPE_RDMA, "the window has memory of the card");
        attr.address = window->address();
        attr.length  = window->length();
        attr.memh    = window->memh();
        own_window(session, attr);
        const auto wanted = test::random_bytes(seed + 2, window->length());
        for (std::uint64_t i = 0; i < count; ++i) {
            check(std::memcmp(&host[2 * i * block], &wanted[(2 * i + 1) * block], block) == 0, "a host block differs");
            check(host[(2 * i + 1) * block] == std::byte{0x5a} && host[2 * (i + 1) * block - 1] == std::byte{0x5a},
                  "a byte between the blocks was touched");
        }
    }
    session.close();
});

const scenario atomics("card_memory.atomics", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    auto words = initial_words();
    if (arguments.role == 0) {
        const auto window = allocate(session, ucx_layout::layout::create_contig(1, {sizeof(words), nullptr})->get());
        bytes key;
        append_key(key, session.context(), attributes(window).memh, attributes(window).address);
        session.exchange(key);
        session.barrier();
        session.close();
        return;
    }
    const bytes key                    = session.exchange({});
    std::span<const std::byte> payload = key;
    {
        const remote_key remote(session.endpoint(), payload);
        const ucp_request_param_t none{};
        check_ok(session.wait(ucp_put_nbx(session.endpoint(), words.data(), sizeof(words), remote.address(),
                                          remote.get(), &none)),
                 "ucp_put_nbx");
        session.flush();
        apply(session, remote, words);
        auto got = initial_words();
        check_ok(session.wait(
                     ucp_get_nbx(session.endpoint(), got.data(), sizeof(got), remote.address(), remote.get(), &none)),
                 "ucp_get_nbx");
        check(got == words, "the words are not what the operations make of them");
    }
    session.barrier();
    session.close();
});

// Until the card is full, and then host memory or an error, as asked for.
const scenario exhausted("card_memory.exhausted", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.role == 0) {
        const auto layout = ucx_layout::layout::create_contig(1, {50000, nullptr});
        std::vector<window_owner> windows;
        ucp_layout_window_h last = nullptr;
        ucs_status_t status      = UCS_OK;
        while (windows.size() < 1000 && status == UCS_OK) {
            status = try_allocate(session.context(), layout->get(), UCP_LAYOUT_MAP_FLAG_OR_HOST, &last);
            if (status == UCS_OK) {
                windows.emplace_back(last);
                if (attributes(windows.back()).base_memory_type == UCS_MEMORY_TYPE_HOST) {
                    break;
                }
            }
        }
        check_ok(status, "ucp_layout_map with OR_HOST");
        check(windows.size() > 2 && windows.size() < 1000, "{} windows until the card was full", windows.size());
        std::memset(bases_of(windows.back())[0], 1, 50000);
        const auto before = windows.size();
        check(try_allocate(session.context(), layout->get(), 0, &last) == UCS_ERR_NO_MEMORY,
              "without OR_HOST it is not UCS_ERR_NO_MEMORY");
        check(windows.size() == before && attributes(windows.front()).base_memory_type == UCS_MEMORY_TYPE_RDMA,
              "a refused allocation changed an earlier one");
        windows.clear();
        const auto again = allocate(session, layout->get());
        check(attributes(again).base_memory_type == UCS_MEMORY_TYPE_RDMA,
              "released memory of the card is not had again");
    }
    session.barrier();
    session.close();
});

// Memory as ucp_mem_map gives it, on the card or of the host.
struct mapped_memory {
    ucp_context_h context;
    ucp_mem_h memh = nullptr;
    ucp_mem_attr_t attr{};

    mapped_memory(ucp_context_h in_context, std::uint64_t length, ucs_memory_type_t type) : context(in_context)
    {
        ucp_mem_map_params_t params{};
        params.field_mask =
            UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
        params.length      = length;
        params.flags       = UCP_MEM_MAP_ALLOCATE;
        params.memory_type = type;
        check_ok(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
        attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_MEM_TYPE;
        check_ok(ucp_mem_query(memh, &attr), "ucp_mem_query");
        check(attr.mem_type == type, "it is memory of another type");
    }
    mapped_memory(const mapped_memory&)            = delete;
    mapped_memory& operator=(const mapped_memory&) = delete;
    ~mapped_memory() { ucp_mem_unmap(context, memh); }

    ucp_request_param_t param(bool with_handle) const
    {
        ucp_request_param_t param{};
        param.op_attr_mask = with_handle ? static_cast<std::uint32_t>(UCP_OP_ATTR_FIELD_MEMH) : 0;
        param.memh         = memh;
        return param;
    }
};

// Role 0 receives into memory of its card, sends, puts and gets from there; role 1 has host memory and compares.
const scenario used_locally("card_memory.local", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    constexpr std::uint64_t length = 20000;
    const mapped_memory own(context.get(), length, arguments.role == 0 ? UCS_MEMORY_TYPE_RDMA : UCS_MEMORY_TYPE_HOST);
    bytes key;
    append_key(key, context.get(), own.memh, own.attr.address);
    const bytes other               = session.exchange(key);
    std::span<const std::byte> rest = other;
    {
        const remote_key remote(session.endpoint(), rest);
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            const auto param = own.param(round % 2 == 0);
            const auto first = test::random_bytes(test::derive_seed(arguments.seed, 2 * round), length);
            const auto last  = test::random_bytes(test::derive_seed(arguments.seed, 2 * round + 1), length);
            const std::span host(static_cast<std::byte*>(own.attr.address), length);
            if (arguments.role == 0) {
                const auto complete = [&](ucs_status_ptr_t request, const char* name) {
                    check_ok(session.wait(request), name);
                };
                complete(ucp_tag_recv_nbx(session.worker(), own.attr.address, length, 1, UINT64_MAX, &param),
                         "receive");
                complete(ucp_tag_send_nbx(session.endpoint(), own.attr.address, length, 2, &param), "send");
                session.barrier();
                complete(
                    ucp_put_nbx(session.endpoint(), own.attr.address, length, remote.address(), remote.get(), &param),
                    "put");
                session.flush();
                session.barrier();
                session.barrier();
                complete(
                    ucp_get_nbx(session.endpoint(), own.attr.address, length, remote.address(), remote.get(), &param),
                    "get");
                complete(ucp_tag_send_nbx(session.endpoint(), own.attr.address, length, 3, &param), "send");
                session.barrier();
            } else {
                const ucp_request_param_t none{};
                bytes got(length);
                check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), first.data(), length, 1, &none)), "send");
                check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), got.data(), length, 2, UINT64_MAX, &none)),
                         "receive");
                check(got == first, "round {}: the card's memory was sent with other bytes", round);
                session.barrier();
                session.barrier();
                check(std::ranges::equal(host, first), "round {}: other bytes were put", round);
                std::ranges::copy(last, host.begin());
                session.barrier();
                check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), got.data(), length, 3, UINT64_MAX, &none)),
                         "receive");
                check(got == last, "round {}: other bytes were got", round);
                session.barrier();
            }
        }
    }
    session.barrier();
    session.close();
});

// Two allocations in one chunk, of which UCP may register more than it was asked to. Role 0 also sends more than it
// has.
const scenario neighbours("card_memory.neighbours", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    constexpr std::uint64_t length = 8;
    const ucp_request_param_t none{};
    if (arguments.role == 0) {
        std::vector<std::unique_ptr<mapped_memory>> all;
        for (int i = 0; i < 4; ++i) {
            all.push_back(std::make_unique<mapped_memory>(context.get(), length, UCS_MEMORY_TYPE_RDMA));
        }
        for (const auto& each : all) {
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), each->attr.address, length, 1, UINT64_MAX, &none)),
                     "receive");
        }
        for (const auto& each : all) {
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), each->attr.address, length, 2, &none)), "send");
        }
        session.barrier();
        const auto status =
            session.wait(ucp_tag_send_nbx(session.endpoint(), all[0]->attr.address, length + 1, 3, &none));
        check(UCS_STATUS_IS_ERR(status), "more than the allocation was sent");
        session.barrier();
    } else {
        for (std::uint64_t i = 0; i < 4; ++i) {
            const auto sent = test::random_bytes(arguments.seed + i, length);
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), sent.data(), length, 1, &none)), "send");
        }
        for (std::uint64_t i = 0; i < 4; ++i) {
            bytes got(length);
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), got.data(), length, 2, UINT64_MAX, &none)),
                     "receive");
            check(got == test::random_bytes(arguments.seed + i, length), "allocation {} was sent with other bytes", i);
        }
        session.barrier();
        session.barrier();
    }
    session.abandon();
});

// Of every size: pieces of a chunk, chunks of their own, by both calls. In the end the card has all its memory again.
const scenario cycles("card_memory.cycles", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.role == 0) {
        test::random random(arguments.seed);
        const auto large = [&] { return std::make_unique<mapped_memory>(context.get(), 180000, UCS_MEMORY_TYPE_RDMA); };
        large().reset();
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            const std::uint64_t length = random.one_in(50) ? 66000 + random.below(20000) : 1 + random.below(3000);
            const mapped_memory stock(context.get(), length, UCS_MEMORY_TYPE_RDMA);
            if (round % 4 == 0) {
                const auto layout = ucx_layout::layout::create_contig(1, {1 + random.below(300), nullptr});
                allocate(session, layout->get());
            }
        }
        large().reset();
    }
    session.barrier();
    session.close();
});

// Whether ucp_mem_map gives memory of the card: UCX offers it where it can make a key for atomic operations over it.
bool ucx_offers_card_memory()
{
    uct_component_h* components = nullptr;
    unsigned count              = 0;
    bool is_offered             = false;
    check_ok(uct_query_components(&components, &count), "uct_query_components");
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t component{};
        component.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        check_ok(uct_component_query(components[i], &component), "uct_component_query");
        uct_md_config_t* config = nullptr;
        uct_md_h domain         = nullptr;
        if (std::string_view(component.name) != "ib" ||
            uct_md_config_read(components[i], nullptr, nullptr, &config) != UCS_OK) {
            continue;
        }
        if (uct_md_open(components[i], std::getenv("UCXL_TEST_DEVICE"), config, &domain) == UCS_OK) {
            uct_md_attr_t attr{};
            check_ok(uct_md_query(domain, &attr), "uct_md_query");
            is_offered = (attr.cap.alloc_mem_types & UCS_BIT(UCS_MEMORY_TYPE_RDMA)) != 0;
            uct_md_close(domain);
        }
        uct_config_release(config);
    }
    uct_release_component_list(components);
    return is_offered;
}

class card_memory : public testing::TestWithParam<setting>
{
};

TEST_P(card_memory, windows_are_used_by_both_sides)
{
    EXPECT_PAIR(config_for(GetParam(), "card_memory.window", 10));
}

TEST_P(card_memory, windows_show_blocks_of_card_and_host_in_turn)
{
    EXPECT_PAIR(config_for(GetParam(), "card_memory.mixed", 3));
}

// rc_verbs has no atomics of the device on these domains, in stock UCX too.
TEST_P(card_memory, atomics_are_done_by_the_card)
{
    if (std::string_view(std::get<0>(GetParam()).name) == "rc_v") {
        GTEST_SKIP() << "rc_verbs does no atomics on the device";
    }
    EXPECT_PAIR(config_for(GetParam(), "card_memory.atomics", 1));
}

TEST_P(card_memory, gives_way_to_host_memory_when_the_card_is_full)
{
    auto config               = config_for(GetParam(), "card_memory.exhausted", 1);
    config.expected[0].output = "ERROR ucp_layout_map: out of memory: 50000 bytes of device memory: .*";
    EXPECT_PAIR(config);
}

// The card reads and writes it, where UCP's thresholds let it.
TEST_P(card_memory, that_lies_beside_other_memory_is_used_alone)
{
    if (!ucx_offers_card_memory()) {
        GTEST_SKIP() << "UCX does not offer the memory of this card: it can make no key for atomic operations over it";
    }
    auto config = config_for(GetParam(), "card_memory.neighbours", 1);
    config.variables.emplace_back("UCX_ZCOPY_THRESH", "0");
    config.variables.emplace_back("UCX_RNDV_THRESH", "inf");
    config.expected[0].any_output = true; // what was refused is logged
    config.expected[1].any_output = true;
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, card_memory,
                         testing::Combine(testing::ValuesIn(transports({}, {"rc_x", "rc_v", "dc_x"})),
                                          testing::Values("y")),
                         setting_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(card_memory); // without a device

TEST(card_memory_cycles, need_no_more_of_the_device_the_more_there_are)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "only the software device counts its keys";
    }
    const auto most_keys = [](unsigned rounds) {
        device_fabric fabric;
        auto config = config_for({transports({}, {"rc_x"}).front(), "y"}, "card_memory.cycles", rounds);
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        auto counts = fabric.end();
        EXPECT_EQ(counts["keys_left"], 0);
        return counts["keys_live_max"].get<int>();
    };
    EXPECT_LE(most_keys(10000), most_keys(1000) + 4);
}

// UCP then uses the memory of one card through both.
class several_cards : public testing::TestWithParam<transport_set>
{
};

TEST_P(several_cards, use_the_memory_of_one)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "another number of software devices";
    }
    device_fabric fabric({"--devices", "2"});
    for (const auto& [zcopy, rndv] : {std::pair("0", "inf"), std::pair("0", "0"), std::pair("auto", "auto")}) {
        SCOPED_TRACE(rndv);
        auto config = config_for({GetParam(), "y"}, "card_memory.local", 4);
        for (const auto& [name, value] : test::environment{{"UCX_MAX_RNDV_RAILS", "2"},
                                                           {"UCX_MAX_EAGER_RAILS", "2"},
                                                           {"UCX_MAX_RMA_RAILS", "2"},
                                                           {"UCX_ZCOPY_THRESH", zcopy},
                                                           {"UCX_RNDV_THRESH", rndv}}) {
            config.variables.emplace_back(name, value);
        }
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
    }
    EXPECT_EQ(fabric.end()["keys_left"], 0);
}

INSTANTIATE_TEST_SUITE_P(matrix, several_cards, testing::ValuesIn(transports({}, {"rc_x", "rc_v", "dc_x", "ud_x"})),
                         [](const auto& each) { return std::string(each.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(several_cards); // without a device

} // namespace

} // namespace ucxl::two_process
