// Parts of ucx_layout_perftest by themselves: above all, that its checks can fail.
#include "support/rapid_check.h"
#include "tools/common/number.h"
#include "tools/common/value_of.h"
#include "tools/perf/contention.h"
#include "tools/perf/layout_image.h"
#include "tools/perf/pack_loops.h"
#include "tools/perf/settings.h"
#include "tools/perf/statistics.h"
#include "tools/perf/word_account.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>

namespace ucxl::perf
{

namespace
{

using testing::HasSubstr;

ucx_layout::layout parse(const std::string& text)
{
    const tools::held_log log;
    return tools::value_of(ucx_layout::layout::parse(text.c_str()), log, text);
}

layout_image image_of(const std::string& text)
{
    return layout_image::create(nullptr, parse(text), image_place::own);
}

TEST(layout_image, what_was_filled_is_right_once)
{
    layout_image image = image_of("strided(10,8,24)");
    image.fill(7);
    EXPECT_EQ("", image.check(7));
    EXPECT_THAT(image.check(7), HasSubstr("packed byte 0"));
}

TEST(layout_image, lines_are_those_of_the_layout_once)
{
    const layout_image image = image_of("strided(100,8,200)");
    std::set<std::uintptr_t> expected, listed;
    for (const memory_block& block : image.blocks()) {
        for (std::size_t i = 0; i < block.length; ++i) {
            expected.insert(reinterpret_cast<std::uintptr_t>(block.address + i) / 64);
        }
    }
    for (const std::byte* const place : image.lines()) {
        EXPECT_TRUE(listed.insert(reinterpret_cast<std::uintptr_t>(place) / 64).second) << "twice";
    }
    EXPECT_EQ(listed, expected);
}

TEST(layout_image, another_message_is_not_this_one)
{
    layout_image image = image_of("strided(10,8,24)");
    image.fill(8);
    EXPECT_NE("", image.check(7));
}

TEST(layout_image, every_wrong_byte_is_found)
{
    layout_image image = image_of("strided(3,4,9)");
    for (std::size_t block = 0; block < 3; ++block) {
        for (std::size_t byte = 0; byte < 4; ++byte) {
            image.fill(1);
            image.blocks()[block].address[byte] ^= std::byte{1};
            EXPECT_THAT(image.check(1),
                        HasSubstr("byte " + std::to_string(byte) + " of block " + std::to_string(block)));
        }
    }
}

TEST(layout_image, byte_written_between_or_around_blocks_is_found)
{
    layout_image image     = image_of("strided(3,4,9)");
    std::byte* const first = image.blocks()[0].address;
    for (const std::ptrdiff_t offset : {-1, 4, 8, 13, 22, 30}) {
        image.fill(1);
        first[offset] = std::byte{0};
        EXPECT_THAT(image.check(1), HasSubstr("outside the layout"));
    }
}

TEST(layout_image, last_byte_can_be_a_signal)
{
    layout_image image = image_of("strided(3,4,9)");
    image.fill(1);
    *image.last_byte() = std::byte{42};
    EXPECT_EQ("", image.check(1, std::byte{42}));
}

TEST(layout_image, sources_do_not_share_memory)
{
    layout_image image = image_of("iov(8@0,1:8@-100,2:8@1000)");
    image.fill(3);
    EXPECT_EQ("", image.check(3));
    EXPECT_EQ(3U, image.bases().size());
}

RC_GTEST_PROP(pack_loops, pack_and_unpack_agree_with_copying_bytes_in_order, ())
{
    const auto count       = *rc::gen::inRange(1, 50);
    const auto length      = *rc::gen::inRange(1, 70);
    const auto kind        = *rc::gen::inRange(0, 3);
    const std::string text = kind == 0   ? fmt::format("strided({},{},{})", count, length, length + 5)
                             : kind == 1 ? fmt::format("iov({},{}..{},seed=1,shuffle)", count, length, length)
                                         : fmt::format("iov({},1..{},seed=1)", count, length);
    layout_image image     = image_of(text);
    image.fill(1);
    std::vector<std::byte> expected;
    for (const memory_block& block : image.blocks()) {
        expected.insert(expected.end(), block.address, block.address + block.length);
    }
    const pack_loops loops(image.blocks());
    std::vector<std::byte> packed(expected.size());
    loops.pack(packed.data());
    RC_ASSERT(packed == expected);
    image.clear();
    loops.unpack(packed.data());
    RC_ASSERT(image.check(1) == "");
}

TEST(statistics, percentile_is_within_its_class)
{
    tick_histogram histogram;
    EXPECT_EQ(0U, histogram.percentile(50));
    for (std::uint64_t i = 1; i <= 100000; ++i) {
        histogram.add(i);
    }
    for (const double rank : {1.0, 50.0, 99.0, 100.0}) {
        EXPECT_NEAR(rank * 1000, static_cast<double>(histogram.percentile(rank)), rank * 1000 * 0.004 + 1);
    }
    histogram.add(UINT64_MAX);
    EXPECT_EQ(UINT64_MAX, histogram.percentile(100));
}

TEST(statistics, median)
{
    EXPECT_EQ(0, median({}));
    EXPECT_EQ(3, median({3}));
    EXPECT_EQ(2.5, median({4, 1, 2, 3}));
    EXPECT_EQ(2, median({9, 1, 2}));
}

TEST(numbers, sizes_with_units)
{
    EXPECT_EQ(4096U, tools::parse_size("4096"));
    EXPECT_EQ(4096U, tools::parse_size("4K"));
    EXPECT_EQ(std::uint64_t{3} << 30, tools::parse_size("3G"));
    for (const char* wrong : {"", "K", "-1", "1KB", "0x10", "99999999999999999999", "18446744073709551615K", " 1"}) {
        EXPECT_EQ(std::nullopt, tools::parse_size(wrong)) << wrong;
    }
    EXPECT_EQ("64K", tools::format_size(65536));
    EXPECT_EQ("65537", tools::format_size(65537));
    EXPECT_EQ("0", tools::format_size(0));
}

// A word, and operations that are executed on it in any order.
struct played_word {
    std::uint64_t value = 0;
    word_account account{};

    void play(test_kind kind, std::uint64_t number, std::uint64_t mask)
    {
        const word_operands operands = operands_of(kind, number);
        const std::uint64_t before   = value;
        switch (kind) {
        case test_kind::swap:
            value = operands.operand;
            break;
        case test_kind::cswap:
            value = before == operands.operand ? operands.replacement : before;
            break;
        default:
            value += operands.operand;
        }
        value &= mask;
        account.fetched(kind, number, mask, before);
    }
};

constexpr std::array atomic_kinds{test_kind::add, test_kind::fadd, test_kind::swap, test_kind::cswap};

RC_GTEST_PROP(word_account, any_order_is_right_and_any_other_final_value_is_wrong, ())
{
    const test_kind kind     = *rc::gen::elementOf(atomic_kinds);
    const std::uint64_t mask = word_mask(*rc::gen::element<std::size_t>(4, 8));
    std::vector<std::uint64_t> numbers(*rc::gen::inRange<std::size_t>(1, 40));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), std::minstd_rand(*rc::gen::inRange(1U, 1000U)));
    played_word word;
    for (const std::uint64_t number : numbers) {
        word.play(kind, number, mask);
    }
    RC_ASSERT(word.account.error(kind, numbers.size(), mask, word.value).empty());
    const std::uint64_t other = (word.value + *rc::gen::inRange(1U, 100U)) & mask;
    RC_ASSERT(!word.account.error(kind, numbers.size(), mask, other).empty());
    RC_ASSERT(kind == test_kind::cswap || !word.account.error(kind, numbers.size() + 1, mask, word.value).empty());
}

TEST(word_account, a_value_fetched_twice_is_wrong)
{
    for (const test_kind kind : {test_kind::fadd, test_kind::swap}) {
        word_account account;
        for (const std::uint64_t value : {0, 1, 1, 3}) {
            account.fetched(kind, value, word_mask(8), value);
        }
        EXPECT_NE("", account.error(kind, 4, word_mask(8), 4)) << static_cast<int>(kind);
    }
}

TEST(word_account, a_swap_that_did_not_store_is_wrong)
{
    word_account account;
    account.fetched(test_kind::cswap, 0, word_mask(8), 0);
    account.fetched(test_kind::cswap, 1, word_mask(8), 1);
    EXPECT_EQ("", account.error(test_kind::cswap, 2, word_mask(8), 2));
    EXPECT_NE("", account.error(test_kind::cswap, 2, word_mask(8), 1));
    EXPECT_THAT(word_account().error(test_kind::cswap, 2, word_mask(8), 0), HasSubstr("no operation found"));
}

TEST(contention, is_right_only_if_the_sum_and_every_fetched_value_are)
{
    const std::vector<contention_share> shares{
        {.operations = 2, .fingerprints = fingerprint(0) + fingerprint(3), .seconds = 1},
        {.operations = 2, .fingerprints = fingerprint(2) + fingerprint(1), .seconds = 1}};
    EXPECT_TRUE(judge(shares, 8, 4).is_right());
    EXPECT_FALSE(judge(shares, 8, 3).is_right());
    EXPECT_FALSE(judge(shares, 8, (std::uint64_t{1} << 32) + 4).is_right());
    EXPECT_TRUE(judge(shares, 4, (std::uint64_t{1} << 32) + 4).is_right()); // the word has 4 bytes
    std::vector<contention_share> lost = shares;
    lost[1].fingerprints               = fingerprint(2) + fingerprint(2);
    EXPECT_FALSE(judge(lost, 8, 4).is_right());
    EXPECT_FALSE(judge(lost, 8, 4).once_each);
}

agreed_run sample()
{
    return {.test_settings = {.test         = test_kind::am_bw,
                              .chosen       = {method_kind::pack, method_kind::window},
                              .message_size = 32,
                              .outstanding  = 5,
                              .allocate     = true,
                              .pass_memh    = false,
                              .live_data    = true,
                              .validate     = true,
                              .word_bytes   = 0,
                              .memory       = {.local = memory_kind::host, .remote = memory_kind::rdma}},
            .layouts       = {.send = parse("strided(4,8,16)"), .receive = parse("32")}};
}

TEST(settings, survive_the_socket)
{
    const agreed_run sent     = sample();
    const agreed_run received = decode(encode(sent.test_settings, sent.layouts));
    EXPECT_EQ(sent.test_settings.test, received.test_settings.test);
    EXPECT_EQ(sent.test_settings.chosen, received.test_settings.chosen);
    EXPECT_EQ(sent.test_settings.message_size, received.test_settings.message_size);
    EXPECT_EQ(sent.test_settings.outstanding, received.test_settings.outstanding);
    EXPECT_EQ(sent.test_settings.allocate, received.test_settings.allocate);
    EXPECT_EQ(sent.test_settings.pass_memh, received.test_settings.pass_memh);
    EXPECT_EQ(sent.test_settings.live_data, received.test_settings.live_data);
    EXPECT_EQ(sent.test_settings.validate, received.test_settings.validate);
    EXPECT_EQ(sent.test_settings.memory.local, received.test_settings.memory.local);
    EXPECT_EQ(sent.test_settings.memory.remote, received.test_settings.memory.remote);
    EXPECT_EQ(tools::attributes(sent.layouts.send).hash, tools::attributes(received.layouts.send).hash);
    EXPECT_EQ(tools::attributes(sent.layouts.receive).hash, tools::attributes(received.layouts.receive).hash);
}

TEST(settings, words_of_other_sizes_are_refused)
{
    agreed_run sent         = sample();
    sent.test_settings.test = test_kind::fadd;
    for (const std::uint32_t bytes : {0, 1, 2, 3, 5, 16}) {
        sent.test_settings.word_bytes = bytes;
        EXPECT_THROW(decode(encode(sent.test_settings, sent.layouts)), tools::failure) << bytes;
    }
    sent.test_settings.word_bytes = 4;
    EXPECT_EQ(4U, decode(encode(sent.test_settings, sent.layouts)).test_settings.word_bytes);
    sent.test_settings.test = test_kind::tag_lat;
    EXPECT_THROW(decode(encode(sent.test_settings, sent.layouts)), tools::failure);
}

TEST(settings, cut_anywhere_are_refused)
{
    const agreed_run sent              = sample();
    const std::vector<std::byte> bytes = encode(sent.test_settings, sent.layouts);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_THROW(decode(std::span(bytes).first(length)), tools::failure) << length;
    }
}

TEST(settings, with_any_byte_changed_are_refused_or_in_range)
{
    const agreed_run sent              = sample();
    const std::vector<std::byte> bytes = encode(sent.test_settings, sent.layouts);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            std::vector<std::byte> changed = bytes;
            changed[i]                     = std::byte(value);
            try {
                const agreed_run received = decode(changed);
                EXPECT_LE(received.test_settings.chosen.size(), methods.size());
                EXPECT_GE(received.test_settings.outstanding, 1U);
                EXPECT_LE(received.test_settings.outstanding, max_outstanding);
                EXPECT_LE(received.test_settings.message_size, UCP_LAYOUT_MAX_LENGTH);
            } catch (const tools::failure&) {
                continue;
            }
        }
    }
}

} // namespace

} // namespace ucxl::perf
