// Which contexts have windows, and what contexts get for programs that know nothing of them.
#include "support/check.h"
#include "support/leak_checks.h"
#include "support/log_guard.h"
#include "support/printed_text.h"
#include "support/ucp.h"

#include <ucp_layout.hpp>

#include <array>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ucxl::test
{

namespace
{

ucs_status_t query(ucp_context_h context, ucp_layout_carrier_t* carrier = nullptr)
{
    ucp_layout_context_attr_t attr{};
    attr.field_mask           = carrier != nullptr ? UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER : 0;
    const ucs_status_t status = ucp_layout_context_query(context, &attr);
    if (status == UCS_OK && carrier != nullptr) {
        *carrier = attr.carrier;
    }
    return status;
}

// How many windows there are, and who carries them.
std::string printed_windows()
{
    return printed_text(
        [](FILE* stream) { check_ok(ucp_layout_print_windows(0, stream), "ucp_layout_print_windows"); });
}

// Of UCX's second format.
bool tells_windows(ucp_context_h context)
{
    const ucp_worker_h worker = open_worker(context);
    const auto address        = address_of(worker);
    ucp_worker_destroy(worker);
    return (std::to_integer<unsigned>(address.at(0)) & 0xf) == 1;
}

struct made_context {
    ucp_context_h context;
    unsigned flags;
};

// Gives the contexts of this process flags while it exists.
class watch
{
public:
    explicit watch(unsigned flags) : _flags(flags)
    {
        ucp_layout_context_watch_params_t params{};
        params.field_mask = UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE | UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE |
                            UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_ARG;
        params.choose = [](const void* caller, void* arg) {
            EXPECT_NE(caller, nullptr);
            return static_cast<watch*>(arg)->_flags;
        };
        params.made = [](ucp_context_h context, unsigned flags_of_context, void* arg) {
            static_cast<watch*>(arg)->made.push_back({context, flags_of_context});
        };
        params.arg = this;
        check_ok(ucp_layout_context_watch(&params), "ucp_layout_context_watch");
    }
    ~watch() { ucp_layout_context_watch(nullptr); }
    watch(const watch&)            = delete;
    watch& operator=(const watch&) = delete;

    std::vector<made_context> made;

private:
    unsigned _flags;
};

using context_windows = ucx_test;
using context_watch   = ucx_test;
using option_query    = ucx_test;

// The name of a price without UCX_LAY_.
class transport_price : public ucx_test, public testing::WithParamInterface<const char*>
{
};

constexpr unsigned all_flags = UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT | UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS;

TEST_F(context_windows, with_our_transport_has_windows)
{
    for (const char* const tls : {"self,lay_copy", "all", "^tcp"}) {
        const context used(tls);
        ucp_layout_carrier_t carrier = UCP_LAYOUT_CARRIER_KEYS;
        EXPECT_EQ(query(used.get()), UCS_OK) << tls;
        EXPECT_EQ(query(used.get(), &carrier), UCS_OK) << tls;
        EXPECT_EQ(carrier, UCP_LAYOUT_CARRIER_COPIES) << tls;
        EXPECT_EQ(ucx_layout::carrier_in(used.get()), UCP_LAYOUT_CARRIER_COPIES) << tls;
    }
}

TEST_F(context_windows, are_asked_for_without_making_one)
{
    const context used("self,lay_copy");
    const auto before = printed_windows();
    EXPECT_EQ(query(used.get()), UCS_OK);
    EXPECT_TRUE(ucx_layout::carrier_in(used.get()));
    EXPECT_EQ(printed_windows(), before);
}

TEST_F(context_windows, without_our_transport_has_none_and_that_is_no_error)
{
    for (const char* const tls : {"self", "^lay_copy"}) {
        const context used(tls);
        ucp_layout_carrier_t carrier = UCP_LAYOUT_CARRIER_KEYS;
        EXPECT_EQ(query(used.get(), &carrier), UCS_ERR_NO_DEVICE) << tls;
        EXPECT_EQ(carrier, UCP_LAYOUT_CARRIER_KEYS) << tls;
        EXPECT_EQ(ucx_layout::carrier_in(used.get()), std::unexpected(UCS_ERR_NO_DEVICE)) << tls;
    }
}

// A new context may be where an ended one was.
TEST_F(context_windows, is_asked_anew_after_another_one_at_its_address)
{
    for (int i = 0; i < 4; ++i) {
        {
            const context with("self,lay_copy");
            EXPECT_EQ(query(with.get()), UCS_OK);
        }
        const context without("self");
        EXPECT_EQ(query(without.get()), UCS_ERR_NO_DEVICE);
    }
}

TEST_F(context_windows, lie_where_nothing_else_does)
{
    const context used("self,lay_copy");
    ucp_layout_context_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES | UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES;
    attr.carrier    = UCP_LAYOUT_CARRIER_DIRECT; // stays, because nobody asks for it
    ASSERT_EQ(ucp_layout_context_query(used.get(), &attr), UCS_OK);
    EXPECT_EQ(attr.carrier, UCP_LAYOUT_CARRIER_DIRECT);
    EXPECT_EQ(attr.memory_types, 0u); // this machine has no GPU
    std::vector<std::byte> memory(1 << 20);
    const auto layout = ucx_layout::layout::create_strided(64, {{.count = 100, .stride = 128}});
    const auto window = ucx_layout::window::map(used.get(), layout.value(), memory.data());
    ASSERT_TRUE(window);
    const auto distance = [&](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(attr.address);
    };
    EXPECT_LE(distance(window->address()) + window->length(), attr.length);
    EXPECT_GE(distance(memory.data()), attr.length);
    EXPECT_GE(distance(&attr), attr.length);
}

TEST_F(context_windows, query_names_what_is_wrong)
{
    const context used("self,lay_copy");
    ucp_layout_context_attr_t attr{};
    logs().expect("attr is NULL");
    logs().expect("context is NULL");
    logs().expect("field_mask 0x8 has unknown bits 0x8");
    EXPECT_EQ(ucp_layout_context_query(used.get(), nullptr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_layout_context_query(nullptr, &attr), UCS_ERR_INVALID_PARAM);
    attr.field_mask = 8;
    EXPECT_EQ(ucp_layout_context_query(used.get(), &attr), UCS_ERR_INVALID_PARAM);
}

TEST_F(context_watch, completes_a_list_of_transports)
{
    watch watched(all_flags);
    const context used("self");
    EXPECT_EQ(query(used.get()), UCS_OK);
    EXPECT_TRUE(tells_windows(used.get()));
    ASSERT_EQ(watched.made.size(), 1u);
    EXPECT_EQ(watched.made[0].context, used.get());
    EXPECT_EQ(watched.made[0].flags, all_flags);
}

TEST_F(context_watch, promises_no_windows_that_are_not_there)
{
    watch watched(all_flags);
    const context used("^lay_copy");
    EXPECT_EQ(query(used.get()), UCS_ERR_NO_DEVICE);
    EXPECT_FALSE(tells_windows(used.get()));
    ASSERT_EQ(watched.made.size(), 1u);
    EXPECT_EQ(watched.made[0].context, used.get());
    EXPECT_EQ(watched.made[0].flags, UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT);
}

TEST_F(context_watch, gives_each_flag_alone)
{
    {
        const watch watched(UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT);
        const context used("self");
        EXPECT_EQ(query(used.get()), UCS_OK);
        EXPECT_FALSE(tells_windows(used.get()));
    }
    const watch watched(UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS);
    const context without("self");
    EXPECT_EQ(query(without.get()), UCS_ERR_NO_DEVICE);
    EXPECT_FALSE(tells_windows(without.get()));
    const context with("self,lay_copy");
    EXPECT_TRUE(tells_windows(with.get()));
}

TEST_F(context_watch, leaves_other_contexts_alone)
{
    {
        watch watched(0);
        const context used("self");
        EXPECT_EQ(query(used.get()), UCS_ERR_NO_DEVICE);
        EXPECT_TRUE(watched.made.empty());
    }
    const context after("self");
    EXPECT_EQ(query(after.get()), UCS_ERR_NO_DEVICE);
    EXPECT_FALSE(tells_windows(after.get()));
}

TEST_F(context_watch, works_for_a_program_without_a_configuration)
{
    watch watched(all_flags);
    ucp_params_t params{};
    params.field_mask     = UCP_PARAM_FIELD_FEATURES;
    params.features       = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    ASSERT_EQ(init_any_ucx(params, nullptr, context), UCS_OK);
    EXPECT_EQ(query(context), UCS_OK);
    EXPECT_TRUE(tells_windows(context));
    ucp_cleanup(context);
}

constexpr unsigned flags_for_cards = all_flags | UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS;

TEST_F(context_watch, gives_no_windows_for_cards_without_a_card)
{
    for (const char* const tls : {"all", "self", "^tcp", "^lay_copy"}) {
        watch watched(flags_for_cards);
        const context used(tls);
        EXPECT_EQ(query(used.get()), UCS_ERR_NO_DEVICE) << tls;
        EXPECT_FALSE(tells_windows(used.get())) << tls;
        ASSERT_EQ(watched.made.size(), 1u);
        EXPECT_EQ(watched.made[0].context, used.get()) << tls;
        EXPECT_EQ(watched.made[0].flags, flags_for_cards & ~UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS) << tls;
    }
}

TEST_F(context_watch, gives_no_windows_where_none_are_wanted)
{
    for (const char* const tls : {"all", "self", "^tcp"}) {
        watch watched(UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS);
        const context used(tls);
        EXPECT_EQ(query(used.get()), UCS_ERR_NO_DEVICE) << tls;
        EXPECT_FALSE(tells_windows(used.get())) << tls;
        ASSERT_EQ(watched.made.size(), 1u);
        EXPECT_EQ(watched.made[0].flags, UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS) << tls;
    }
}

TEST_F(context_watch, gives_windows_for_cards_to_a_list_that_asks_for_them)
{
    watch watched(flags_for_cards);
    const context used("self,lay_copy");
    EXPECT_EQ(query(used.get()), UCS_OK);
    EXPECT_TRUE(tells_windows(used.get()));
    ASSERT_EQ(watched.made.size(), 1u);
    EXPECT_EQ(watched.made[0].flags, all_flags);
}

std::string printed(const ucp_config_t* config)
{
    return printed_text([&](FILE* stream) { ucp_config_print(config, stream, nullptr, UCS_CONFIG_PRINT_CONFIG); });
}

TEST_F(context_watch, gives_the_configuration_back_as_it_was)
{
    struct watched_context {
        const char* tls;
        unsigned flags;
        const char* format;
    };
    const watched_context contexts[] = {
        {"self", all_flags, "v1"},       {"^lay_copy", all_flags, "v1"},
        {"^lay_copy", all_flags, "v2"},  {"all", flags_for_cards, "v2"},
        {"^tcp", flags_for_cards, "v1"}, {"all", UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS, "v2"}};
    for (const auto& [tls, flags, format] : contexts) {
        watch watched(flags);
        ucp_config_t* config = nullptr;
        ASSERT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
        ASSERT_EQ(ucp_config_modify(config, "TLS", tls), UCS_OK);
        ASSERT_EQ(ucp_config_modify(config, "ADDRESS_VERSION", format), UCS_OK);
        const std::string before = printed(config);
        ucp_params_t params{};
        params.field_mask     = UCP_PARAM_FIELD_FEATURES;
        params.features       = UCP_FEATURE_TAG;
        ucp_context_h context = nullptr;
        ASSERT_EQ(init_any_ucx(params, config, context), UCS_OK);
        EXPECT_EQ(printed(config), before) << tls << ' ' << flags << ' ' << format;
        ucp_cleanup(context);
        ucp_config_release(config);
    }
}

TEST_F(context_watch, passes_on_a_failure_of_ucx)
{
    watch watched(UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS);
    ucp_config_t* config = nullptr;
    ASSERT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
    ASSERT_EQ(ucp_config_modify(config, "TLS", "nothing"), UCS_OK);
    ucp_params_t params{};
    params.field_mask     = UCP_PARAM_FIELD_FEATURES;
    params.features       = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    logs().expect("no usable transports");
    logs().allow("transport 'nothing' is not available");
    EXPECT_EQ(init_any_ucx(params, config, context), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(context, nullptr);
    EXPECT_TRUE(watched.made.empty());
    ucp_config_release(config);
}

TEST_F(context_watch, refuses_what_it_does_not_know)
{
    ucp_layout_context_watch_params_t params{};
    logs().expect("choose is required");
    logs().expect("field_mask 0x8 has unknown bits 0x8");
    EXPECT_EQ(ucp_layout_context_watch(&params), UCS_ERR_INVALID_PARAM);
    params.field_mask = UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE;
    EXPECT_EQ(ucp_layout_context_watch(&params), UCS_ERR_INVALID_PARAM);
    params.field_mask = 8;
    EXPECT_EQ(ucp_layout_context_watch(&params), UCS_ERR_INVALID_PARAM);
}

TEST_P(transport_price, that_ucp_cannot_plan_with_is_refused_with_the_worker)
{
    const std::string name     = GetParam();
    const std::string field    = name.substr(name.find('_') + 1);
    const std::string variable = "UCX_LAY_" + name;
    const bool is_bandwidth    = name.ends_with("BW");
    logs().expect("Failed to read iface config");
    for (const char* const value :
         is_bandwidth ? std::vector{"-1GBs", "nanGBs", "infGBs", "auto", "1Bs"} : std::vector{"-1us", "nan", "inf"}) {
        setenv(variable.c_str(), value, 1);
        const context used("self,posix,lay_copy,lay_shm,lay_cma");
        logs().expect("Invalid value for " + field + ": '" + value + "'");
        const ucp_worker_params_t params{};
        ucp_worker_h worker = nullptr;
        const leaks_of_others interface; // UCP forgets the one that it could not open
        EXPECT_EQ(ucp_worker_create(used.get(), &params, &worker), UCS_ERR_INVALID_PARAM) << value;
        if (worker != nullptr) {
            ucp_worker_destroy(worker);
        }
    }
    unsetenv(variable.c_str());
}

INSTANTIATE_TEST_SUITE_P(prices, transport_price,
                         testing::Values("COPY_SHORT_BW", "COPY_ZCOPY_BW", "COPY_DIRECT_BW", "COPY_OVERHEAD",
                                         "COPY_LATENCY", "SHM_BW", "SHM_OVERHEAD", "SHM_LATENCY", "CMA_BW",
                                         "CMA_OVERHEAD", "CMA_LATENCY"),
                         [](const auto& test) { return test.param; });

TEST_F(option_query, reads_the_environment_and_keeps_what_it_has_no_room_for)
{
    std::array<char, 8> text{'o', 'l', 'd'};
    EXPECT_EQ(ucp_layout_option_query("LAYOUT_TEST_OPTION", text.data(), text.size()), UCS_ERR_NO_ELEM);
    setenv("UCX_LAYOUT_TEST_OPTION", "", 1);
    EXPECT_EQ(ucp_layout_option_query("LAYOUT_TEST_OPTION", text.data(), text.size()), UCS_ERR_NO_ELEM);
    setenv("UCX_LAYOUT_TEST_OPTION", "12345678", 1);
    EXPECT_EQ(ucp_layout_option_query("LAYOUT_TEST_OPTION", text.data(), text.size()), UCS_ERR_BUFFER_TOO_SMALL);
    EXPECT_STREQ(text.data(), "old");
    EXPECT_EQ(ucp_layout_option_query("LAYOUT_TEST_OPTION", text.data(), 0), UCS_ERR_BUFFER_TOO_SMALL);
    setenv("UCX_LAYOUT_TEST_OPTION", "1234567", 1);
    EXPECT_EQ(ucp_layout_option_query("LAYOUT_TEST_OPTION", text.data(), text.size()), UCS_OK);
    EXPECT_STREQ(text.data(), "1234567");
    unsetenv("UCX_LAYOUT_TEST_OPTION");
    logs().expect("name is NULL");
    logs().expect("value is NULL");
    EXPECT_EQ(ucp_layout_option_query(nullptr, text.data(), text.size()), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_layout_option_query("TLS", nullptr, 0), UCS_ERR_INVALID_PARAM);
}

} // namespace

} // namespace ucxl::test
