// Counts of failed operations, and the callback, by kinds.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace
{

using ucx_layout::datatype;
using ucx_layout::layout;
using ucxl::test::contiguous;
using ucxl::test::must;
using ucxl::test::ucp_pair;
using ucxl::test::ucx_test;

ucp_layout_failure_attr_t counts(ucp_layout_failure_kind_t kind)
{
    ucp_layout_failure_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL | UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
    EXPECT_EQ(ucp_layout_failure_query(0, kind, &attr), UCS_OK);
    return attr;
}

class failures : public ucx_test
{
protected:
    // UCP has no way to refuse the start of a send, so it is a silent failure.
    void send_without_a_buffer()
    {
        logs().expect("buffer is NULL");
        std::vector<unsigned char> memory(16);
        EXPECT_EQ(_loop.transfer({nullptr, 1, _columns.get()}, contiguous(memory.data(), memory.size())), UCS_OK);
    }

private:
    ucp_pair _loop{{.self = true}};
    datatype _columns = must(datatype::create(must(layout::create_strided(8, {{2, 16}}))));
};

TEST_F(failures, are_counted_by_kind_and_together)
{
    const auto any      = counts(UCP_LAYOUT_FAILURE_ANY);
    const auto own      = counts(UCP_LAYOUT_FAILURE_DATATYPE);
    const auto previous = counts(UCP_LAYOUT_FAILURE_REMOTE_ATOMIC);
    send_without_a_buffer();
    EXPECT_EQ(counts(UCP_LAYOUT_FAILURE_ANY).all, any.all + 1);
    EXPECT_EQ(counts(UCP_LAYOUT_FAILURE_ANY).silent, any.silent + 1);
    EXPECT_EQ(counts(UCP_LAYOUT_FAILURE_DATATYPE).all, own.all + 1);
    EXPECT_EQ(counts(UCP_LAYOUT_FAILURE_DATATYPE).silent, own.silent + 1);
    EXPECT_EQ(counts(UCP_LAYOUT_FAILURE_REMOTE_ATOMIC).all, previous.all) << "of another kind";
}

TEST_F(failures, of_unknown_kinds_or_fields_are_refused)
{
    ucp_layout_failure_attr_t attr{};
    attr.all = attr.silent = 77;
    logs().expect("ucp_layout_failure_query: kind 10 is unknown");
    logs().expect("ucp_layout_failure_query: kind -1 is unknown");
    logs().expect("ucp_layout_failure_query: field_mask 0x4 has unknown bits 0x4");
    attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL;
    for (const int number : {UCP_LAYOUT_FAILURE_DATATYPE + 1, -1}) {
        ucp_layout_failure_kind_t kind;
        std::memcpy(&kind, &number, sizeof(kind));
        EXPECT_EQ(ucp_layout_failure_query(0, kind, &attr), UCS_ERR_INVALID_PARAM);
    }
    attr.field_mask = 4;
    EXPECT_EQ(ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(attr.all, 77u);
    EXPECT_EQ(attr.silent, 77u);
}

TEST_F(failures, that_are_not_asked_for_are_left_alone)
{
    ucp_layout_failure_attr_t attr{};
    attr.all = attr.silent = UINT64_MAX;
    attr.field_mask        = UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
    ASSERT_EQ(ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_ANY, &attr), UCS_OK);
    EXPECT_EQ(attr.all, UINT64_MAX);
    EXPECT_NE(attr.silent, UINT64_MAX);
}

TEST_F(failures, reach_the_callback_with_every_field)
{
    std::vector<ucp_layout_failure_t> seen;
    const auto note = [](const ucp_layout_failure_t* failure, void* arg) {
        static_cast<std::vector<ucp_layout_failure_t>*>(arg)->push_back(*failure);
    };
    ASSERT_EQ(ucp_layout_failure_watch(note, &seen), UCS_OK);
    send_without_a_buffer();
    EXPECT_EQ(ucp_layout_failure_watch(nullptr, nullptr), UCS_OK);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].field_mask, UCP_LAYOUT_FAILURE_FIELD_KIND | UCP_LAYOUT_FAILURE_FIELD_SILENT |
                                      UCP_LAYOUT_FAILURE_FIELD_ADDRESS | UCP_LAYOUT_FAILURE_FIELD_LENGTH |
                                      UCP_LAYOUT_FAILURE_FIELD_OPERATION | UCP_LAYOUT_FAILURE_FIELD_REASON);
    EXPECT_EQ(seen[0].kind, UCP_LAYOUT_FAILURE_DATATYPE);
    EXPECT_TRUE(seen[0].silent);
    EXPECT_NE(std::string(seen[0].reason).find("buffer is NULL"), std::string::npos) << seen[0].reason;
}

} // namespace
