// The UCX of this process: it is found, named, and bound to.
#include "abi/config.h"
#include "abi/library.h"
#include "abi/memory_types.h"
#include "abi/ucx.h"
#include "sys/search_order.h"

#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace
{

using namespace ucxl::abi;
using ucxl::file_of;

const void* here()
{
    return reinterpret_cast<const void*>(&here);
}

TEST(attached_ucx, is_the_one_that_the_program_calls)
{
    const auto found = attach(nullptr);
    ASSERT_TRUE(found) << found.error().message;
    unsigned major   = 0;
    unsigned minor   = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    EXPECT_EQ((*found)->minor, minor);
    EXPECT_EQ(attached(), *found);
    EXPECT_EQ(attached_file(), file_of(reinterpret_cast<const void*>(&ucp_get_version)));
    EXPECT_NE(attached_file().find("libucp"), std::string::npos);
}

TEST(attached_ucx, is_the_same_for_every_later_caller)
{
    const auto first = attach(nullptr);
    ASSERT_TRUE(first);
    EXPECT_EQ(*attach(here()), *first);
}

TEST(attached_ucx, gives_its_symbols_and_null_for_others)
{
    ASSERT_TRUE(attach(nullptr));
    EXPECT_EQ(find_symbol("ucp_get_version"), dlsym(RTLD_DEFAULT, "ucp_get_version"));
    EXPECT_NE(find_symbol("ucs_log_dispatch"), nullptr); // of a library that libucp needs
    EXPECT_EQ(find_symbol("ucp_no_such_function"), nullptr);
}

TEST(libraries_with, finds_each_library_once_by_what_it_exports_itself)
{
    const auto libucp = libraries_with("ucp_get_version", "libucp");
    ASSERT_EQ(libucp.size(), 1u);
    EXPECT_EQ(libucp.front().file, file_of(reinterpret_cast<const void*>(&ucp_get_version)));
    // libucp needs libucs, but does not export its functions itself.
    EXPECT_TRUE(libraries_with("ucs_log_dispatch", "libucp").empty());
    EXPECT_TRUE(libraries_with("ucp_no_such_function", "libucp").empty());
}

TEST(next_function, skips_the_object_that_asks)
{
    EXPECT_EQ(next_function("ucp_get_version", here(), here()), dlsym(RTLD_DEFAULT, "ucp_get_version"));
    EXPECT_EQ(next_function("ucp_no_such_function", here(), here()), nullptr);
}

struct values {
    double bandwidth;
    double seconds;
    std::size_t bytes;
    unsigned count;
    unsigned mask;
    int choice;
};

constexpr const char* names[] = {"one", "two", "three", nullptr};

constexpr option options[] = {
    {"BANDWIDTH", "2GBs", "Bytes per second", offsetof(values, bandwidth), option_type::bandwidth},
    {"SECONDS", "3us", "Time", offsetof(values, seconds), option_type::time},
    {"BYTES", "4k", "Length", offsetof(values, bytes), option_type::memory_units},
    {"COUNT", "5", "Number", offsetof(values, count), option_type::unsigned_integer},
    {"MASK", "one,three", "Names", offsetof(values, mask), option_type::names, names},
    {"CHOICE", "two", "Name", offsetof(values, choice), option_type::name, names},
};

TEST(options, of_every_type_are_read_by_the_attached_ucx)
{
    ASSERT_TRUE(attach(nullptr));
    static auto entry = make_entry("table of a test", "ABI_TEST_", make_fields(options), sizeof(values));
    setenv("UCX_ABI_TEST_COUNT", "77", 1);
    values read{};
    ASSERT_EQ(ucs_config_parser_fill_opts(&read, &entry, UCS_DEFAULT_ENV_PREFIX, 0), UCS_OK);
    unsetenv("UCX_ABI_TEST_COUNT");
    EXPECT_DOUBLE_EQ(read.bandwidth, 2.0 * (1 << 30));
    EXPECT_DOUBLE_EQ(read.seconds, 3e-6);
    EXPECT_EQ(read.bytes, 4096u);
    EXPECT_EQ(read.count, 77u);
    EXPECT_EQ(read.mask, 5u);
    EXPECT_EQ(read.choice, 1);
}

TEST(options, of_bandwidths_and_prices_have_only_values_to_plan_with)
{
    ASSERT_TRUE(attach(nullptr));
    constexpr option price{"PRICE", "3us", "Time", 0, option_type::price};
    for (const char* const good : {"0", "50ns", "1e9s"}) {
        EXPECT_TRUE(is_valid(price, good)) << good;
    }
    for (const char* const bad : {"-1us", "nan", "inf", "1e10s", "soon"}) {
        EXPECT_FALSE(is_valid(price, bad)) << bad;
    }
    for (const char* const good : {"2Bs", "5GBs", "100Gbps"}) {
        EXPECT_TRUE(is_valid(options[0], good)) << good;
    }
    for (const char* const bad : {"-1GBs", "0", "1Bs", "nanGBs", "infGBs", "auto", "fast"}) {
        EXPECT_FALSE(is_valid(options[0], bad)) << bad;
    }
}

TEST(options, know_valid_values_and_say_what_is_expected)
{
    ASSERT_TRUE(attach(nullptr));
    EXPECT_TRUE(is_valid(options[1], "20ms"));
    EXPECT_TRUE(is_valid(options[1], "inf"));
    EXPECT_FALSE(is_valid(options[1], "soon"));
    EXPECT_FALSE(is_valid(options[1], "-1s"));
    EXPECT_TRUE(is_valid(options[4], "two"));
    EXPECT_FALSE(is_valid(options[4], "two,four"));
    EXPECT_FALSE(is_valid(options[5], "four"));
    EXPECT_NE(expected_value(options[1]).find("time value"), std::string::npos);
    EXPECT_NE(expected_value(options[5]).find("three"), std::string::npos);
}

TEST(memory_types, are_as_many_as_the_attached_ucx_has_names_for)
{
    ASSERT_TRUE(attach(nullptr));
    const auto* const type_names = find_object<const char* const>("ucs_memory_type_names");
    ASSERT_NE(type_names, nullptr);
    EXPECT_STREQ(type_names[attached()->num_memory_types], "unknown");
}

TEST(memory_types, are_known_to_the_cache_of_the_attached_ucx)
{
    ASSERT_TRUE(attach(nullptr));
    alignas(4096) static std::byte memory[3 * 4096];
    ASSERT_FALSE(is_known_as(UCS_MEMORY_TYPE_RDMA, memory + 4096));
    announce_memory(memory + 4096, 4096, UCS_MEMORY_TYPE_RDMA);
    EXPECT_TRUE(is_known_as(UCS_MEMORY_TYPE_RDMA, memory + 4096));
    EXPECT_FALSE(is_known_as(UCS_MEMORY_TYPE_RDMA, memory + 2 * 4096));
    forget_memory(memory + 4096, 4096);
    EXPECT_FALSE(is_known_as(UCS_MEMORY_TYPE_RDMA, memory + 4096));
}

} // namespace
