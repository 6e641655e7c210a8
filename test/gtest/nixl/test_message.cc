#include "nixl/message.h"
#include "support/random.h"

#include <gtest/gtest.h>
#include <random>

using namespace ucxl::nixl;

namespace
{

message example()
{
    return {.kind    = message_kind::show,
            .sender  = 1,
            .window  = 2,
            .status  = -3,
            .way     = reach::neighbors,
            .address = 4,
            .length  = 5,
            .piece   = 6,
            .process = ucxl::process_identity::own(),
            .regions = {7, 8, 9},
            .name    = "agent",
            .bytes   = std::string("\0bytes", 6)};
}

} // namespace

TEST(nixl_message, is_read_as_it_was_written)
{
    const auto read = decode(encode(example()));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, message_kind::show);
    EXPECT_EQ(read->sender, 1U);
    EXPECT_EQ(read->window, 2U);
    EXPECT_EQ(read->status, -3);
    EXPECT_EQ(read->way, reach::neighbors);
    EXPECT_EQ(read->address, 4U);
    EXPECT_EQ(read->length, 5U);
    EXPECT_EQ(read->piece, 6U);
    EXPECT_EQ(read->process, ucxl::process_identity::own());
    EXPECT_EQ(read->regions, (std::vector<std::uint64_t>{7, 8, 9}));
    EXPECT_EQ(read->name, "agent");
    EXPECT_EQ(read->bytes, std::string("\0bytes", 6));
}

TEST(nixl_message, that_is_cut_within_its_fixed_part_is_refused)
{
    auto short_of_bytes = example();
    short_of_bytes.bytes.clear();
    const auto whole = encode(short_of_bytes);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_FALSE(decode(std::string_view(whole).substr(0, length))) << length;
    }
}

TEST(nixl_message, of_random_changes_is_read_or_refused)
{
    std::mt19937_64 random(ucxl::test::run_seed());
    const auto whole = encode(example());
    for (int round = 0; round < 20'000; ++round) {
        auto changed = whole;
        for (std::uint64_t i = 0; i <= random() % 4; ++i) {
            changed[random() % changed.size()] = static_cast<char>(random());
        }
        if (const auto read = decode(changed)) {
            EXPECT_LE(read->regions.size() * 8 + read->name.size() + read->bytes.size(), whole.size());
        }
    }
}

TEST(nixl_message, of_an_unknown_kind_or_way_is_refused)
{
    for (const std::uint32_t kind : {0U, 9U, 0xffffffffU}) {
        auto wrong = example();
        wrong.kind = static_cast<message_kind>(kind);
        EXPECT_FALSE(decode(encode(wrong))) << kind;
    }
    auto wrong = example();
    wrong.way  = static_cast<reach>(4);
    EXPECT_FALSE(decode(encode(wrong)));
}

TEST(nixl_region, is_read_as_it_was_written_and_no_other_bytes_are)
{
    const auto bytes = encode(region_info{.id = 1, .address = 4096, .length = 100});
    const auto read  = decode_region(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->id, 1U);
    EXPECT_EQ(read->address, 4096U);
    EXPECT_EQ(read->length, 100U);
    EXPECT_FALSE(decode_region(bytes + "x"));
    EXPECT_FALSE(decode_region(bytes.substr(1)));
    EXPECT_FALSE(decode_region(""));
    EXPECT_FALSE(decode_region(encode(connection_info{.instance = 1, .process = {}, .address = "a"})));
}

TEST(nixl_region, beyond_the_end_of_all_addresses_is_refused)
{
    EXPECT_FALSE(decode_region(encode(region_info{.id = 1, .address = ~std::uint64_t{0} - 10, .length = 100})));
}

TEST(nixl_connection, is_read_as_it_was_written_and_needs_an_address)
{
    const auto own  = ucxl::process_identity::own();
    const auto read = decode_connection(encode(connection_info{.instance = 5, .process = own, .address = "there"}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->instance, 5U);
    EXPECT_EQ(read->process, own);
    EXPECT_EQ(read->address, "there");
    EXPECT_FALSE(decode_connection(encode(connection_info{.instance = 5, .process = own, .address = ""})));
    EXPECT_FALSE(decode_connection("anything"));
}

// UCX ends the process for some addresses that are none.
TEST(nixl_connection, that_was_cut_or_changed_is_refused)
{
    const auto whole =
        encode(connection_info{.instance = 5, .process = ucxl::process_identity::own(), .address = "there"});
    ASSERT_TRUE(decode_connection(whole));
    EXPECT_FALSE(decode_connection(whole + "x"));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        EXPECT_FALSE(decode_connection(whole.substr(0, at))) << at;
        for (int bit = 0; bit < 8; ++bit) {
            auto changed = whole;
            changed[at] ^= static_cast<char>(1 << bit);
            EXPECT_FALSE(decode_connection(changed)) << at << ", " << bit;
        }
    }
}

TEST(nixl_data, header_is_read_as_it_was_written)
{
    const auto bytes = encode(data_header{.sender = 1, .window = 2, .offset = 3, .piece = 4});
    const auto read  = decode_data(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->sender, 1U);
    EXPECT_EQ(read->window, 2U);
    EXPECT_EQ(read->offset, 3U);
    EXPECT_EQ(read->piece, 4U);
    EXPECT_FALSE(decode_data(bytes.substr(1)));
    EXPECT_FALSE(decode_data(""));
}
