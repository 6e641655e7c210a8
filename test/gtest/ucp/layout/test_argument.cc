// Every public function with a NULL for each pointer that must not be one: a status, a message that names the function
// and the parameter, and no output written. Then values of enumerations and flags that there are not.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace
{

using ucx_layout::layout;
using ucx_layout::plan;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::must;
using ucxl::test::ucx_test;

// What every function can be called with.
struct arguments {
    layout described         = must(layout::create_strided(8, {{2, 16}}));
    std::vector<char> memory = std::vector<char>(64);
    void* base               = memory.data();
    window shown             = must(window::map(nullptr, described, memory.data()));
    plan compiled            = must(plan::create(described));
    context used;
    FILE* stream = std::tmpfile();

    arguments()                            = default;
    arguments(const arguments&)            = delete;
    arguments& operator=(const arguments&) = delete;
    ~arguments() { std::fclose(stream); }
};

struct null_argument {
    const char* function;
    const char* parameter;
    std::function<ucs_status_t(arguments&)> call;
};

void PrintTo(const null_argument& shown, std::ostream* to)
{
    *to << shown.function << " " << shown.parameter;
}

class null : public ucx_test, public testing::WithParamInterface<null_argument>
{
};

TEST_P(null, is_refused_by_name)
{
    arguments given;
    const auto& [function, parameter, call] = GetParam();
    logs().expect(std::string(function) + ": " + parameter + " is NULL");
    EXPECT_EQ(call(given), UCS_ERR_INVALID_PARAM);
}

ucs_status_t never(void*, std::uint32_t, std::ptrdiff_t, std::size_t)
{
    ADD_FAILURE() << "called";
    return UCS_OK;
}

// An output that has to stay as it is.
template <typename Handle>
struct untouched {
    Handle value = reinterpret_cast<Handle>(std::uintptr_t{0x5a5a});
    ~untouched() { EXPECT_EQ(value, reinterpret_cast<Handle>(std::uintptr_t{0x5a5a})); }
    Handle* operator&() { return &value; }
};

const std::vector<null_argument> nulls{
    {"ucp_layout_create", "params",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_create(nullptr, &made);
     }},
    {"ucp_layout_create", "layout_p",
     [](auto&) {
         const ucp_layout_params_t params{};
         return ucp_layout_create(&params, nullptr);
     }},
    {"ucp_layout_create", "layout_p", [](auto&) { return ucp_layout_contig(8, nullptr); }},
    {"ucp_layout_create", "layout_p", [](auto&) { return ucp_layout_strided(8, 1, 8, nullptr); }},
    {"ucp_layout_create", "dims",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_strided_nd(8, nullptr, 2, &made);
     }},
    {"ucp_layout_create", "iov",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_concatenate(nullptr, 1, &made);
     }},
    {"ucp_layout_create", "interleaved",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_interleave(nullptr, 1, &made);
     }},
    {"ucp_layout_create", "interleaved[0]: interleaved[].dims",
     [](auto&) {
         untouched<ucp_layout_h> made;
         const ucp_layout_interleaved_t source{0, 0, {8, nullptr}, 1, nullptr, 1};
         return ucp_layout_interleave(&source, 1, &made);
     }},
    {"ucp_layout_parse", "text",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_parse(nullptr, &made);
     }},
    {"ucp_layout_parse", "layout_p", [](auto&) { return ucp_layout_parse("8", nullptr); }},
    {"ucp_layout_query", "layout",
     [](auto&) {
         ucp_layout_attr_t attr{};
         return ucp_layout_query(nullptr, &attr);
     }},
    {"ucp_layout_query", "attr", [](auto& with) { return ucp_layout_query(with.described.get(), nullptr); }},
    {"ucp_layout_query_bounds", "layout",
     [](auto&) {
         ucp_layout_bounds_t bounds{};
         return ucp_layout_query_bounds(nullptr, 0, &bounds);
     }},
    {"ucp_layout_query_bounds", "bounds",
     [](auto& with) { return ucp_layout_query_bounds(with.described.get(), 0, nullptr); }},
    {"ucp_layout_print", "layout",
     [](auto& with) { return ucp_layout_print(nullptr, with.stream, UCP_LAYOUT_PRINT_TEXT); }},
    {"ucp_layout_print", "stream",
     [](auto& with) { return ucp_layout_print(with.described.get(), nullptr, UCP_LAYOUT_PRINT_TEXT); }},
    {"ucp_layout_print_device", "stream",
     [](auto& with) { return ucp_layout_print_device(with.described.get(), "published", nullptr); }},
    {"ucp_layout_print_memory", "stream", [](auto&) { return ucp_layout_print_memory(0, nullptr); }},
    {"ucp_layout_print_windows", "stream", [](auto&) { return ucp_layout_print_windows(0, nullptr); }},
    {"ucp_layout_walk", "layout", [](auto&) { return ucp_layout_walk(nullptr, 0, 0, never, nullptr); }},
    {"ucp_layout_walk", "cb",
     [](auto& with) { return ucp_layout_walk(with.described.get(), 0, 16, nullptr, nullptr); }},
    {"ucp_layout_serialize", "layout",
     [](auto& with) {
         std::size_t length = with.memory.size();
         return ucp_layout_serialize(nullptr, with.memory.data(), &length);
     }},
    {"ucp_layout_serialize", "buffer",
     [](auto& with) {
         std::size_t length = 1000;
         return ucp_layout_serialize(with.described.get(), nullptr, &length);
     }},
    {"ucp_layout_serialize", "length_p",
     [](auto& with) { return ucp_layout_serialize(with.described.get(), with.memory.data(), nullptr); }},
    {"ucp_layout_deserialize", "buffer",
     [](auto&) {
         untouched<ucp_layout_h> made;
         return ucp_layout_deserialize(nullptr, 8, &made);
     }},
    {"ucp_layout_deserialize", "layout_p",
     [](auto& with) { return ucp_layout_deserialize(with.memory.data(), 8, nullptr); }},
    {"ucp_layout_map", "params",
     [](auto&) {
         untouched<ucp_layout_window_h> made;
         return ucp_layout_map(nullptr, nullptr, &made);
     }},
    {"ucp_layout_map", "window_p",
     [](auto&) {
         const ucp_layout_map_params_t params{};
         return ucp_layout_map(nullptr, &params, nullptr);
     }},
    {"ucp_layout_map_base", "layout",
     [](auto& with) {
         untouched<ucp_layout_window_h> made;
         untouched<void*> address;
         return ucp_layout_map_base(nullptr, nullptr, with.base, &made, &address);
     }},
    {"ucp_layout_map_base", "window_p",
     [](auto& with) {
         untouched<void*> address;
         return ucp_layout_map_base(nullptr, with.described.get(), with.base, nullptr, &address);
     }},
    {"ucp_layout_map_base", "address_p",
     [](auto& with) {
         untouched<ucp_layout_window_h> made;
         return ucp_layout_map_base(nullptr, with.described.get(), with.base, &made, nullptr);
     }},
    {"ucp_layout_from_iov", "layout_p",
     [](auto& with) {
         const ucp_dt_iov_t list{with.base, 1};
         return ucp_layout_from_iov(&list, 1, with.base, nullptr);
     }},
    {"ucp_layout_failure_query", "attr",
     [](auto&) { return ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, nullptr); }},
    {"ucp_layout_window_carrier_reason", "window",
     [](auto& with) { return ucp_layout_window_carrier_reason(nullptr, with.memory.data(), with.memory.size()); }},
    {"ucp_layout_window_carrier_reason", "text",
     [](auto& with) { return ucp_layout_window_carrier_reason(with.shown.get(), nullptr, 8); }},
    {"ucp_layout_window_find", "window_p",
     [](auto& with) { return ucp_layout_window_find(with.shown.address(), 1, nullptr); }},
    {"ucp_layout_unmap", "window", [](auto&) { return ucp_layout_unmap(nullptr); }},
    {"ucp_layout_rebind", "window", [](auto& with) { return ucp_layout_rebind(nullptr, &with.base, 1); }},
    {"ucp_layout_rebind", "bases", [](auto& with) { return ucp_layout_rebind(with.shown.get(), nullptr, 1); }},
    {"ucp_layout_window_query", "window",
     [](auto&) {
         ucp_layout_window_attr_t attr{};
         return ucp_layout_window_query(nullptr, &attr);
     }},
    {"ucp_layout_window_query", "attr", [](auto& with) { return ucp_layout_window_query(with.shown.get(), nullptr); }},
    {"ucp_layout_window_bases", "window", [](auto& with) { return ucp_layout_window_bases(nullptr, &with.base, 1); }},
    {"ucp_layout_window_bases", "bases",
     [](auto& with) { return ucp_layout_window_bases(with.shown.get(), nullptr, 1); }},
    {"ucp_layout_window_memh", "window",
     [](auto& with) {
         untouched<ucp_mem_h> made;
         return ucp_layout_window_memh(nullptr, with.used.get(), &made);
     }},
    {"ucp_layout_window_memh", "context",
     [](auto& with) {
         untouched<ucp_mem_h> made;
         return ucp_layout_window_memh(with.shown.get(), nullptr, &made);
     }},
    {"ucp_layout_window_memh", "memh_p",
     [](auto& with) { return ucp_layout_window_memh(with.shown.get(), with.used.get(), nullptr); }},
    {"ucp_layout_window_detach", "window",
     [](auto& with) { return ucp_layout_window_detach(nullptr, with.used.get()); }},
    {"ucp_layout_window_detach", "context",
     [](auto& with) { return ucp_layout_window_detach(with.shown.get(), nullptr); }},
    {"ucp_layout_plan_create", "layout",
     [](auto&) {
         untouched<ucp_layout_plan_h> made;
         return ucp_layout_plan_create(nullptr, nullptr, &made);
     }},
    {"ucp_layout_plan_create", "plan_p",
     [](auto& with) { return ucp_layout_plan_create(with.described.get(), nullptr, nullptr); }},
    {"ucp_layout_plan_query", "plan",
     [](auto&) {
         ucp_layout_plan_attr_t attr{};
         return ucp_layout_plan_query(nullptr, &attr);
     }},
    {"ucp_layout_plan_query", "attr", [](auto& with) { return ucp_layout_plan_query(with.compiled.get(), nullptr); }},
    {"ucp_layout_plan_gather", "plan",
     [](auto& with) { return ucp_layout_plan_gather(nullptr, &with.base, 1, 0, 1, with.memory.data()); }},
    {"ucp_layout_plan_scatter", "plan",
     [](auto& with) { return ucp_layout_plan_scatter(nullptr, &with.base, 1, 0, 1, with.memory.data()); }},
    {"ucp_layout_plan_copy", "dst_plan",
     [](auto& with) {
         return ucp_layout_plan_copy(nullptr, &with.base, 1, 0, with.compiled.get(), &with.base, 1, 0, 1);
     }},
    {"ucp_layout_plan_copy", "src_plan",
     [](auto& with) {
         return ucp_layout_plan_copy(with.compiled.get(), &with.base, 1, 0, nullptr, &with.base, 1, 0, 1);
     }},
    {"ucp_layout_plan_copy", "dst_bases",
     [](auto& with) {
         return ucp_layout_plan_copy(with.compiled.get(), nullptr, 1, 0, with.compiled.get(), &with.base, 1, 0, 1);
     }},
    {"ucp_layout_plan_copy", "src_bases",
     [](auto& with) {
         return ucp_layout_plan_copy(with.compiled.get(), &with.base, 1, 0, with.compiled.get(), nullptr, 1, 0, 1);
     }},
    {"ucp_layout_gather", "layout",
     [](auto& with) { return ucp_layout_gather(nullptr, &with.base, 1, 0, 1, with.memory.data()); }},
    {"ucp_layout_gather", "dst",
     [](auto& with) { return ucp_layout_gather(with.described.get(), &with.base, 1, 0, 1, nullptr); }},
    {"ucp_layout_scatter", "layout",
     [](auto& with) { return ucp_layout_scatter(nullptr, &with.base, 1, 0, 1, with.memory.data()); }},
    {"ucp_layout_scatter", "src",
     [](auto& with) { return ucp_layout_scatter(with.described.get(), &with.base, 1, 0, 1, nullptr); }},
    {"ucp_layout_copy", "dst_layout",
     [](auto& with) { return ucp_layout_copy(nullptr, &with.base, 1, 0, with.described.get(), &with.base, 1, 0, 1); }},
    {"ucp_layout_copy", "src_layout",
     [](auto& with) { return ucp_layout_copy(with.described.get(), &with.base, 1, 0, nullptr, &with.base, 1, 0, 1); }},
    {"ucp_layout_copy", "dst_bases",
     [](auto& with) {
         return ucp_layout_copy(with.described.get(), nullptr, 1, 0, with.described.get(), &with.base, 1, 0, 1);
     }},
    {"ucp_layout_copy", "src_bases",
     [](auto& with) {
         return ucp_layout_copy(with.described.get(), &with.base, 1, 0, with.described.get(), nullptr, 1, 0, 1);
     }},
    {"ucp_layout_datatype_create", "layout",
     [](auto&) {
         untouched<void*> made;
         return ucp_layout_datatype_create(nullptr, reinterpret_cast<ucp_datatype_t*>(&made));
     }},
    {"ucp_layout_datatype_create", "datatype_p",
     [](auto& with) { return ucp_layout_datatype_create(with.described.get(), nullptr); }},
    {"ucp_layout_datatype_query", "attr", [](auto&) { return ucp_layout_datatype_query(0, nullptr); }},
};

INSTANTIATE_TEST_SUITE_P(arguments, null, testing::ValuesIn(nulls), [](const auto& test) {
    std::string name = std::to_string(test.index) + "_" + test.param.function + "_" + test.param.parameter;
    std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; });
    return name;
});

class argument : public ucx_test
{
};

TEST_F(argument, rebind_names_a_source_without_a_base)
{
    const auto records = must(layout::parse("iov(0:4@0,1:4@0)"));
    char memory[64];
    std::array<void*, 2> bases{memory, memory + 32};
    auto shown = must(window::map(nullptr, records, bases));
    bases[1]   = nullptr;
    logs().expect("ucp_layout_rebind: bases[1] is NULL, and the layout describes bytes of source 1");
    EXPECT_EQ(shown.rebind(bases), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(shown.bases(bases), UCS_OK);
    EXPECT_EQ(bases[1], memory + 32);
}

TEST_F(argument, a_garbage_kind_is_refused)
{
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND;
    const int garbage = -7;
    std::memcpy(&params.kind, &garbage, sizeof(garbage));
    ucp_layout_h made = nullptr;
    logs().expect("kind -7 is unknown");
    EXPECT_EQ(ucp_layout_create(&params, &made), UCS_ERR_INVALID_PARAM);
}

TEST_F(argument, a_stream_that_takes_nothing_is_an_error)
{
    const auto made    = must(layout::create_contig(8));
    FILE* const stream = std::fopen("/dev/full", "w");
    ASSERT_NE(stream, nullptr);
    const auto expect_failure = [&](const char* function, ucs_status_t status) {
        EXPECT_EQ(status, UCS_ERR_IO_ERROR) << function;
    };
    for (const char* function :
         {"ucp_layout_print", "ucp_layout_print_hooks", "ucp_layout_print_memory", "ucp_layout_print_windows"}) {
        logs().expect(std::string(function) + ": writing failed");
    }
    expect_failure("ucp_layout_print", ucp_layout_print(made.get(), stream, UCP_LAYOUT_PRINT_TEXT));
    expect_failure("ucp_layout_print_hooks", ucp_layout_print_hooks(stream));
    expect_failure("ucp_layout_print_memory", ucp_layout_print_memory(0, stream));
    expect_failure("ucp_layout_print_windows", ucp_layout_print_windows(0, stream));
    std::fclose(stream);
}

TEST_F(argument, garbage_print_flags_are_refused)
{
    const auto made    = must(layout::create_contig(8));
    FILE* const stream = std::tmpfile();
    logs().expect("ucp_layout_print: flags 0x9 has unknown bits 0x8");
    EXPECT_EQ(ucp_layout_print(made.get(), stream, 9), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(std::ftell(stream), 0);
    std::fclose(stream);
}

TEST_F(argument, unknown_bounds_fields_are_refused)
{
    const auto made = must(layout::create_contig(8));
    ucp_layout_bounds_t bounds{};
    bounds.field_mask = 16;
    logs().expect("ucp_layout_query_bounds: field_mask");
    EXPECT_EQ(ucp_layout_query_bounds(made.get(), 0, &bounds), UCS_ERR_INVALID_PARAM);
}

TEST_F(argument, fields_not_asked_for_are_left_alone)
{
    const auto made = must(layout::create_contig(8));
    ucp_layout_bounds_t bounds{UCP_LAYOUT_BOUNDS_FIELD_UB, 1, 2, 3, 4};
    EXPECT_EQ(ucp_layout_query_bounds(made.get(), 0, &bounds), UCS_OK);
    EXPECT_EQ(bounds.true_lb, 1);
    EXPECT_EQ(bounds.true_ub, 2);
    EXPECT_EQ(bounds.lb, 3);
    EXPECT_EQ(bounds.ub, 8);
}

class version : public ucx_test
{
};

TEST_F(version, of_header_and_library_are_the_same)
{
    unsigned major = 0, minor = 99, release = 99;
    ucp_layout_get_version(&major, &minor, &release);
    EXPECT_EQ(major, unsigned{UCP_LAYOUT_API_MAJOR});
    EXPECT_EQ(minor, unsigned{UCP_LAYOUT_API_MINOR});
    EXPECT_EQ(std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release),
              ucp_layout_get_version_string());
    ucp_layout_get_version(nullptr, nullptr, nullptr);
}

class captured_errors : public ucx_test
{
};

TEST_F(captured_errors, of_a_thread_go_into_a_text_line_by_line)
{
    char text[64] = "before";
    ASSERT_EQ(ucp_layout_capture_errors(text, sizeof(text)), UCS_OK);
    EXPECT_STREQ(text, "");
    ucp_layout_h layout = nullptr;
    EXPECT_EQ(ucp_layout_parse("9@", &layout), UCS_ERR_INVALID_PARAM);
    EXPECT_STREQ(text, "ucp_layout_parse: column 2: expected the end, found '@'");
    EXPECT_EQ(ucp_layout_parse(nullptr, &layout), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(std::strlen(text), sizeof(text) - 1) << "the second line is cut";
    EXPECT_TRUE(std::string_view(text).starts_with("ucp_layout_parse: column 2: expected the end, found '@'\nucp_lay"));

    EXPECT_EQ(ucp_layout_capture_errors(nullptr, 0), UCS_OK);
    logs().expect("ucp_layout_capture_errors: length is 0");
    EXPECT_EQ(ucp_layout_capture_errors(text, 0), UCS_ERR_INVALID_PARAM);
}

TEST_F(version, numbers_compare_as_versions_do)
{
    static_assert(UCP_LAYOUT_API_VERSION(1, 0) < UCP_LAYOUT_API_VERSION(1, 1));
    static_assert(UCP_LAYOUT_API_VERSION(1, 99) < UCP_LAYOUT_API_VERSION(2, 0));
    EXPECT_EQ(UCP_LAYOUT_API_VERSION(UCP_LAYOUT_API_MAJOR, UCP_LAYOUT_API_MINOR), UCP_LAYOUT_API_VERSION(1, 0));
}

} // namespace
