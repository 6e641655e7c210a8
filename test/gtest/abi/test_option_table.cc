// Tables of options, read by the UCX of this process.
#include "abi/ucx.h"
#include "support/log_guard.h"
#include "ucs/sys/option_table.h"

#include <cstdlib>
#include <string>

namespace
{

using ucxl::option_table;
using ucxl::abi::option_type;

struct values {
    std::size_t bytes;
    unsigned count;
    unsigned mask;
    double time;
};

constexpr const char* names[] = {"one", "two", "three", nullptr};

constexpr ucxl::abi::option options[] = {
    {"BYTES", "4k", "Length", offsetof(values, bytes), option_type::memory_units},
    {"COUNT", "5", "Number", offsetof(values, count), option_type::unsigned_integer},
    {"MASK", "one,three", "Names", offsetof(values, mask), option_type::names, names},
    {"TIME", "2s", "Time", offsetof(values, time), option_type::time},
};

constinit option_table<values> table("table of a test", "TABLE_TEST_", options);

class option_tables : public ucxl::test::ucx_test
{
protected:
    void SetUp() override { ASSERT_TRUE(ucxl::abi::attach(nullptr)); }
    void TearDown() override
    {
        for (const char* const name :
             {"UCX_TABLE_TEST_BYTES", "UCX_TABLE_TEST_COUNT", "UCX_TABLE_TEST_MASK", "UCX_TABLE_TEST_TIME"}) {
            unsetenv(name);
        }
    }
};

TEST_F(option_tables, a_bad_value_changes_no_other_option)
{
    setenv("UCX_TABLE_TEST_BYTES", "many", 1);
    setenv("UCX_TABLE_TEST_COUNT", "77", 1);
    setenv("UCX_TABLE_TEST_MASK", "one,two,four", 1); // two names that exist before one that does not
    logs().expect("UCX_TABLE_TEST_BYTES is 'many', expected: ");
    logs().expect("UCX_TABLE_TEST_MASK is 'one,two,four', expected: ");
    const values read = table.read_or({});
    EXPECT_EQ(read.bytes, 4096u);
    EXPECT_EQ(read.count, 77u);
    EXPECT_EQ(read.mask, 5u);
    EXPECT_EQ(logs().count("UCX_TABLE_TEST_BYTES is 'many', expected: "), 1u);
}

TEST_F(option_tables, a_bad_value_is_an_error_where_no_default_is_to_be_taken)
{
    setenv("UCX_TABLE_TEST_BYTES", "", 1);
    const auto read = table.read();
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("UCX_TABLE_TEST_BYTES is '', expected: "), std::string::npos);
}

TEST_F(option_tables, a_time_that_is_negative_or_no_number_is_bad)
{
    for (const std::string text : {"-1s", "nan", "-inf"}) {
        setenv("UCX_TABLE_TEST_TIME", text.c_str(), 1);
        const auto message = "UCX_TABLE_TEST_TIME is '" + text + "', expected: ";
        logs().expect(message.c_str());
        EXPECT_EQ(table.read_or({}).time, 2.0) << text;
    }
    setenv("UCX_TABLE_TEST_TIME", "0", 1);
    EXPECT_EQ(table.read_or({}).time, 0.0);
}

TEST_F(option_tables, an_empty_list_of_names_is_not_the_default)
{
    setenv("UCX_TABLE_TEST_MASK", "", 1);
    setenv("UCX_TABLE_TEST_COUNT", "few", 1);
    logs().expect("UCX_TABLE_TEST_COUNT is 'few'");
    const values read = table.read_or({});
    EXPECT_EQ(read.mask, 0u);
    EXPECT_EQ(read.count, 5u);
}

} // namespace
