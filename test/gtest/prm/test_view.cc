// Fields and views, and what they refuse.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "prm/cqe.h"
#include "prm/eq.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/umr.h"

namespace ucxl::prm
{
namespace
{

template <typename View, typename Field>
concept readable = requires(View v, Field f) { v.get(f); };

template <typename View, typename Field, typename Value>
concept settable = requires(View v, Field f, Value value) { v.set(f, value); };

template <typename View, typename Field, typename Value>
concept puttable = requires(View v, Field f, Value value) { v.put(f, value); };

template <typename Field>
using plain = std::remove_cvref_t<Field>;

using klm_length = plain<decltype(klm::byte_count)>;
using mkc_pd     = plain<decltype(mkc::pd)>;
using mkc_free   = plain<decltype(mkc::free)>;
using qpc_state  = plain<decltype(qpc::state)>;

// A field belongs to its structure.
static_assert(readable<view<klm>, klm_length>);
static_assert(!readable<view<ksm>, klm_length>);
static_assert(!readable<view<mkc>, klm_length>);
static_assert(!settable<view<ksm>, klm_length, std::uint32_t>);

// A const view does not write.
static_assert(readable<const_view<klm>, klm_length>);
static_assert(!settable<const_view<klm>, klm_length, std::uint32_t>);
static_assert(!puttable<const_view<klm>, klm_length, std::uint32_t>);

// put() takes only types that always fit, and a field takes only its own enumeration.
static_assert(puttable<view<mkc>, mkc_free, bool>);
static_assert(puttable<view<mkc>, mkc_pd, std::uint16_t>);
static_assert(!puttable<view<mkc>, mkc_pd, std::uint32_t>);
static_assert(!puttable<view<mkc>, mkc_pd, std::int16_t>);
static_assert(settable<view<qpc>, qpc_state, qp_state>);
static_assert(!settable<view<qpc>, qpc_state, qp_service>);
static_assert(!settable<view<qpc>, qpc_state, double>);
static_assert(std::is_same_v<decltype(std::declval<view<qpc>>().get(qpc::state)), qp_state>);

// Everything works at compile time.
constexpr auto constant_key = [] {
    storage<mkc> bytes;
    (*bytes).put<any_qpn>(mkc::qpn);
    (*bytes).put<true>(mkc::umr_en);
    (*bytes).put(mkc::start_addr, std::uint64_t{0x1122334455667788});
    set_access_mode(*bytes, mkey_access_mode::memic);
    return bytes;
}();
static_assert((*constant_key).get(mkc::start_addr) == 0x1122334455667788);
static_assert(access_mode(*constant_key) == mkey_access_mode::memic);
static_assert(constant_key.bytes[4] == std::byte{0xff} && constant_key.bytes[7] == std::byte{0});
static_assert(constant_key.bytes[0x10] == std::byte{0x11} && constant_key.bytes[0x17] == std::byte{0x88});

TEST(prm_view, refuses_a_value_that_is_too_large_and_writes_nothing)
{
    storage<mkc> bytes;
    EXPECT_TRUE((*bytes).set(mkc::pd, 0xffffffU));
    const auto before = bytes.bytes;
    EXPECT_FALSE((*bytes).set(mkc::pd, 0x1000000U));
    EXPECT_FALSE((*bytes).set(mkc::pd, ~std::uint64_t{0}));
    EXPECT_FALSE((*bytes).set(mkc::pd, -1));
    EXPECT_FALSE((*bytes).set(mkc::free, 2));
    EXPECT_EQ(bytes.bytes, before);
}

TEST(prm_view, refuses_an_enumeration_value_wider_than_its_field)
{
    storage<qpc> bytes;
    EXPECT_FALSE((*bytes).set(qpc::state, static_cast<qp_state>(16)));
    EXPECT_TRUE((*bytes).set(qpc::state, static_cast<qp_state>(15)));
    EXPECT_EQ(std::to_underlying((*bytes).get(qpc::state)), 15);
}

TEST(prm_view, takes_64_bit_values_of_64_bit_fields)
{
    storage<klm> bytes;
    EXPECT_TRUE((*bytes).set(klm::address, ~std::uint64_t{0}));
    EXPECT_EQ((*bytes).get(klm::address), ~std::uint64_t{0});
    EXPECT_EQ((*bytes).get(klm::mkey), 0U);
}

TEST(prm_view, needs_all_bytes_of_the_structure)
{
    std::array<std::byte, klm::size_bytes> bytes{};
    EXPECT_TRUE(view<klm>::over(bytes));
    EXPECT_FALSE(view<klm>::over(std::span(bytes).first(klm::size_bytes - 1)));
    EXPECT_FALSE(view<klm>::over({}));
}

TEST(prm_view, reaches_parts_at_their_offset)
{
    storage<create_mkey_in> bytes;
    (*bytes).at(create_mkey_in::memory_key).put<true>(mkc::free);
    EXPECT_EQ(bytes.bytes[16], std::byte{0x40});
}

TEST(prm_view, reaches_elements_of_arrays)
{
    storage<compressed_cqe> cqe;
    (*cqe).at(compressed_cqe::mini, 6).put(mini_cqe::byte_cnt, std::uint32_t{0x01020304});
    EXPECT_EQ(cqe.bytes[6 * 8 + 4], std::byte{0x01});
    storage<create_eq_in> input;
    (*input).put(create_eq_in::event_bitmask, 3, 0x0102030405060708);
    EXPECT_EQ((*input).get(create_eq_in::event_bitmask, 3), 0x0102030405060708U);
    EXPECT_EQ(input.bytes[0x2c0 / 8 + 3 * 8], std::byte{0x01});
    EXPECT_EQ((*input).get(create_eq_in::event_bitmask, 2), 0U);
}

TEST(prm_view, lists_whole_elements_only)
{
    std::array<std::byte, 3 * klm::size_bytes + 5> bytes{};
    const view_list<klm, std::byte> list(bytes);
    ASSERT_EQ(list.size(), 3U);
    list[2].put(klm::mkey, std::uint32_t{0xaabbccdd});
    EXPECT_EQ(bytes[2 * 16 + 4], std::byte{0xaa});
}

TEST(prm_view, leaves_bytes_outside_the_smallest_word_alone)
{
    storage<cqe64> bytes;
    for (auto& b : bytes.bytes) {
        b = std::byte{0x5a};
    }
    (*bytes).put<cqe_opcode::requester>(cqe64::opcode);
    (*bytes).put<true>(cqe64::owner);
    for (std::size_t i = 0; i < 63; i++) {
        EXPECT_EQ(bytes.bytes[i], std::byte{0x5a}) << i;
    }
    EXPECT_EQ(bytes.bytes[63], std::byte{0x0b});
    static_assert(decltype(cqe64::owner)::bits::word_bits == 8);
}

TEST(prm_names, come_from_the_declarations)
{
    EXPECT_EQ(name_of(command::create_mkey), "create_mkey");
    EXPECT_EQ(name_of(qp_state::rtr), "rtr");
    EXPECT_EQ(name_of(static_cast<qp_state>(14)), "");
    EXPECT_EQ(detail::field_name<mkc::start_addr>(), "start_addr");
    EXPECT_EQ(detail::field_name<create_mkey_in::opcode>(), "opcode");
    EXPECT_EQ(detail::type_name<mkc>(), "mkc");
}

} // namespace
} // namespace ucxl::prm
