// Claims of docs/needs-hardware.md about single requests that the library never posts: what a card refuses, and what it
// does with them. contrib/hw-check judges the claims by these tests.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "key_test.h"
#include "prm/umr.h"
#include "raw_binds.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

// More than a plain check takes: contrib/hw-check asks a card for 100,000.
std::size_t wanted_rounds()
{
    const char* const wanted = std::getenv("UCXL_TEST_KEY_ROUNDS");
    return wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 1000;
}

const char* name_of(prm::wqe_fence fence)
{
    return fence == prm::wqe_fence::none ? "none" : fence == prm::wqe_fence::initiator_small ? "small" : "strong";
}

prm::view<prm::wqe_umr_control_segment> umr_control_of(request_bytes& request)
{
    return prm::view<prm::wqe_umr_control_segment>(
        std::span(request.bytes)
            .subspan<prm::wqe_control_segment::size_bytes, prm::wqe_umr_control_segment::size_bytes>());
}

prm::view<prm::mkc> context_of(request_bytes& request)
{
    constexpr std::size_t begin = prm::wqe_control_segment::size_bytes + prm::wqe_umr_control_segment::size_bytes;
    return prm::view<prm::mkc>(std::span(request.bytes).subspan<begin, prm::mkc::size_bytes>());
}

class card_requests : public key_test
{
protected:
    static constexpr std::size_t piece_bytes = 8;

    // Whether a bind request of the library may move the start of a key on this device.
    bool moves_starts() const
    {
        uct_mlx5_layout_domain_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD;
        check_ok(uct_mlx5_layout_domain_query(domain, &attr), "uct_mlx5_layout_domain_query");
        return attr.address_method == UCT_MLX5_LAYOUT_ADDRESS_UMR;
    }

    // Whether the key shows the piece at that place of the memory, and nothing else. Queue pairs work afterwards.
    bool shows(const raw_key& key, const buffer& memory, std::size_t offset)
    {
        const auto packed = zeroed(piece_bytes);
        if (pair.read(packed->piece(0, piece_bytes), 0, key.number()) != IBV_WC_SUCCESS) {
            pair.reconnect();
            return false;
        }
        return std::equal(packed->bytes.begin(), packed->bytes.end(),
                          memory.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }

    std::array<resolved_entry, 1> entries_at(const buffer& memory, std::size_t offset) const
    {
        return {raw_binds::entry(memory.piece(offset, piece_bytes))};
    }

    // Of that many rounds, in how many the last of several changes of a key was not the one in force at the end.
    std::size_t rounds_with_passing(const request_flags& flags, std::size_t rounds)
    {
        constexpr std::size_t changes = 6;
        const auto memory             = patterned(4096);
        const raw_key key(pair.pd(), 4);
        std::size_t passed = 0;
        for (std::size_t round = 0; round < rounds; ++round) {
            const auto place = [&](std::size_t change) { return (round * 40 + change * 100) % 4000; };
            std::vector<request_bytes> requests;
            for (std::size_t change = 0; change < changes; ++change) {
                requests.push_back(_binds.invalidation(key, flags));
                requests.push_back(_binds.list(key, entries_at(*memory, place(change)), flags));
            }
            const bool done = _binds.execute(requests) == IBV_WC_SUCCESS;
            passed += done && shows(key, *memory, place(changes - 1)) ? 0 : 1;
        }
        return passed;
    }

    raw_binds _binds{pair};
};

TEST_F(card_requests, changes_with_the_fence_of_the_device_do_not_pass_each_other)
{
    const std::size_t rounds = wanted_rounds();
    request_flags unfenced   = _binds.flags();
    unfenced.fence           = prm::wqe_fence::none;
    // Only to know: a card need not keep this order, and may keep it nevertheless.
    const std::size_t few = std::min<std::size_t>(rounds, 10000);
    RecordProperty("fence", name_of(_binds.flags().fence));
    RecordProperty("rounds", std::to_string(rounds));
    RecordProperty("rounds_without_fence", std::to_string(few));
    RecordProperty("passed_without_fence", std::to_string(rounds_with_passing(unfenced, few)));
    EXPECT_EQ(rounds_with_passing(_binds.flags(), rounds), 0) << "with the fence that the device asks for";
}

TEST_F(card_requests, a_list_that_begins_64_bytes_further_is_not_taken)
{
    if ((domain_flags() & UCT_MLX5_LAYOUT_CAP_POINTER) == 0) {
        GTEST_SKIP() << "the device takes no lists from memory";
    }
    struct alignas(pointer_alignment) place {
        std::array<std::byte, pointer_alignment> bytes;
    };
    const auto lists         = std::make_unique<place>();
    const std::uint32_t lkey = pair.registered(lists.get(), sizeof(place))->lkey;
    const auto memory        = patterned(4096);
    const raw_key key(pair.pd(), 4);
    ASSERT_EQ(_binds.execute(_binds.list_at(lists->bytes.data(), lkey, key, entries_at(*memory, 40))), IBV_WC_SUCCESS);
    ASSERT_TRUE(shows(key, *memory, 40)) << "a list at a multiple of 2 KB";
    const auto status = _binds.execute(_binds.list_at(lists->bytes.data() + 64, lkey, key, entries_at(*memory, 1000)));
    const bool taken  = status == IBV_WC_SUCCESS && shows(key, *memory, 1000);
    RecordProperty("64_bytes_further", taken                      ? "taken"
                                       : status == IBV_WC_SUCCESS ? "read from elsewhere"
                                                                  : ibv_wc_status_str(status));
    EXPECT_FALSE(taken) << "the device takes lists at multiples of 64 bytes, too";
}

TEST_F(card_requests, a_bind_that_names_a_right_it_may_not_set_is_refused)
{
    if (_binds.said().umr_sets_atomic_right) {
        GTEST_SKIP() << "the device lets binds set the atomic right (umr_modify_atomic_disabled is 0)";
    }
    const auto memory = patterned(4096);
    const raw_key key(pair.pd(), 4);
    request_flags naming       = _binds.flags();
    naming.leaves_atomic_right = false; // though no right is asked for, and the key has none
    EXPECT_NE(_binds.execute(_binds.list(key, entries_at(*memory, 40), naming)), IBV_WC_SUCCESS);
    ASSERT_EQ(_binds.execute(_binds.list(key, entries_at(*memory, 40))), IBV_WC_SUCCESS);
    EXPECT_TRUE(shows(key, *memory, 40));
}

TEST_F(card_requests, a_bind_looks_at_the_index_of_its_key_only)
{
    const auto memory = patterned(4096);
    const raw_key key(pair.pd(), 4);
    request_bytes request = _binds.list(key, entries_at(*memory, 40));
    raw_binds::control_of(request).put(prm::wqe_control_segment::imm, key.number() ^ 0x5a);
    ASSERT_EQ(_binds.execute(request), IBV_WC_SUCCESS);
    EXPECT_TRUE(shows(key, *memory, 40));
}

// As the library does: each window that gets a key gives it another variant, start and length.
TEST_F(card_requests, a_key_that_is_bound_anew_refuses_the_number_before)
{
    struct binding {
        std::uint32_t number;
        std::size_t offset; // in the memory
        std::uint32_t length;
        std::uint64_t start;
    };
    const auto memory = patterned(4096);
    const auto packed = zeroed(128);
    const raw_key key(pair.pd(), 4);
    const std::uint32_t other = (key.number() & ~0xffU) | ((key.number() + 1) & 0xff);
    const binding before{key.number(), 40, 64, 0};
    const binding after{other, 1000, 128, moves_starts() ? 0x10000U : 0U};
    const auto bind = [&](const binding& wanted) {
        alignas(64) std::array<std::byte, 64> encoded{};
        const std::array entries{raw_binds::entry(memory->piece(wanted.offset, wanted.length))};
        EXPECT_TRUE(encode_entries(key_kind::klm, 0, entries, encoded).has_value());
        const auto start = wanted.start != 0 ? std::optional(wanted.start) : std::nullopt;
        request_bytes request;
        encode_bind(
            {.key = wanted.number, .rights = raw_binds::rights, .length = wanted.length, .start_address = start}, 0,
            _binds.flags(), encoded, request);
        return _binds.execute(request);
    };
    auto expected   = memory->bytes;
    const auto zero = [&](const binding& of) { std::fill_n(expected.begin() + of.offset, of.length, std::uint8_t{0}); };
    ASSERT_EQ(bind(before), IBV_WC_SUCCESS);
    ASSERT_EQ(pair.write(packed->piece(0, before.length), before.start, before.number), IBV_WC_SUCCESS);
    zero(before);
    ASSERT_EQ(_binds.execute(_binds.invalidation(key, _binds.flags())), IBV_WC_SUCCESS);
    ASSERT_EQ(bind(after), IBV_WC_SUCCESS);
    EXPECT_NE(pair.write(packed->piece(0, before.length), after.start, before.number), IBV_WC_SUCCESS);
    pair.reconnect();
    EXPECT_TRUE(memory->bytes == expected) << "nothing was written by the number before";
    ASSERT_EQ(pair.write(packed->piece(0, after.length), after.start, after.number), IBV_WC_SUCCESS);
    zero(after);
    EXPECT_TRUE(memory->bytes == expected);
}

TEST_F(card_requests, entries_come_in_multiples_of_64_bytes)
{
    const auto memory = patterned(4096);
    const raw_key key(pair.pd(), 4);
    request_bytes request = _binds.list(key, entries_at(*memory, 40));
    ASSERT_TRUE(umr_control_of(request).set(prm::wqe_umr_control_segment::klm_octowords, 3U));
    EXPECT_NE(_binds.execute(request), IBV_WC_SUCCESS);
}

TEST_F(card_requests, a_bind_does_not_move_a_key_to_another_protection_domain)
{
    const auto memory = patterned(4096);
    const raw_key key(pair.pd(), 4);
    ibv_pd* const other = made(ibv_alloc_pd(pair.context()), "ibv_alloc_pd");
    mlx5dv_pd described{};
    mlx5dv_obj wanted{};
    wanted.pd.in  = other;
    wanted.pd.out = &described;
    ASSERT_EQ(mlx5dv_init_obj(&wanted, MLX5DV_OBJ_PD), 0);
    request_bytes request = _binds.list(key, entries_at(*memory, 40));
    const auto control    = umr_control_of(request);
    const auto mask       = std::to_underlying(control.get(prm::wqe_umr_control_segment::mkey_mask));
    ASSERT_TRUE(control.set(prm::wqe_umr_control_segment::mkey_mask, mask | std::to_underlying(prm::umr_mask::pd)));
    ASSERT_TRUE(context_of(request).set(prm::mkc::pd, described.pdn));
    EXPECT_NE(_binds.execute(request), IBV_WC_SUCCESS);
    ibv_dealloc_pd(other);
}

TEST_F(card_requests, a_repeat_block_that_contradicts_itself_fails_when_it_is_used)
{
    if (!has_repeat_blocks()) {
        GTEST_SKIP() << "the device has no repeat blocks";
    }
    const auto memory = patterned(4096);
    const raw_key key(pair.pd(), 4);
    alignas(64) std::array<std::byte, 64> encoded{};
    const std::array entries{resolved_entry{memory->mr->lkey, memory->address(), piece_bytes, 100}};
    ASSERT_TRUE(encode_entries(key_kind::repeat, 4, entries, encoded).has_value());
    const auto bind = [&] {
        request_bytes request;
        encode_bind({.key = key.number(), .rights = raw_binds::rights, .length = 4 * piece_bytes, .start_address = {}},
                    0, _binds.flags(), encoded, request);
        return _binds.execute(request);
    };
    const auto packed = zeroed(4 * piece_bytes);
    ASSERT_EQ(bind(), IBV_WC_SUCCESS);
    ASSERT_EQ(pair.read(packed->piece(0, 4 * piece_bytes), 0, key.number()), IBV_WC_SUCCESS) << "a right one";
    const prm::view<prm::repeat_block_header> header{std::span(encoded).first<prm::repeat_block_header::size_bytes>()};
    ASSERT_TRUE(header.set(prm::repeat_block_header::byte_count, 2 * piece_bytes));
    EXPECT_EQ(bind(), IBV_WC_SUCCESS);
    EXPECT_NE(pair.read(packed->piece(0, 4 * piece_bytes), 0, key.number()), IBV_WC_SUCCESS);
    pair.reconnect();
}

TEST_F(card_requests, a_request_whose_source_ends_too_early_may_have_written_what_is_before)
{
    constexpr std::size_t good = 2048;
    const auto from            = patterned(2 * good);
    const auto to              = zeroed(2 * good);
    ibv_mr* const first_half   = pair.registered(from->bytes.data(), good);
    EXPECT_EQ(pair.write({from->address(), 2 * good, first_half->lkey}, to->address(), to->mr->rkey),
              IBV_WC_LOC_PROT_ERR);
    pair.reconnect();
    const auto end = to->bytes.begin() + good;
    RecordProperty("bytes_written", std::to_string(good - std::count(to->bytes.begin(), end, 0)));
    EXPECT_EQ(std::count(end, to->bytes.end(), 0), static_cast<std::ptrdiff_t>(good)) << "no bytes from beyond the key";
}

// Reads that are all signaled, and receives, are what a device puts into completions.
TEST_F(card_requests, short_reads_and_receives_arrive_in_a_region_without_scatter_to_cqe)
{
    verbs_pair short_answers(verbs_pair::beside{.home = pair, .signals_all = true});
    const auto memory = zeroed(4096);
    const auto source = patterned(64);
    const auto region = new_region(4, 0, IBV_ACCESS_LOCAL_WRITE);
    const std::array pieces{memory->piece(100, 4), memory->piece(1000, 60)};
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
    const auto expect_arrived = [&](std::uint32_t length) {
        std::vector<std::uint8_t> expected(memory->bytes.size());
        std::copy_n(source->bytes.begin(), 4, &expected[100]);
        std::copy_n(source->bytes.begin() + 4, length - 4, &expected[1000]);
        EXPECT_TRUE(memory->bytes == expected) << length << " bytes";
        std::ranges::fill(memory->bytes, std::uint8_t{0});
    };
    for (const std::uint32_t length : {8U, 32U, 64U}) {
        const ibv_sge into{0, length, about(region).lkey};
        ASSERT_EQ(short_answers.read(into, source->address(), source->mr->rkey), IBV_WC_SUCCESS);
        expect_arrived(length);
        ASSERT_EQ(short_answers.send(source->piece(0, length), into), IBV_WC_SUCCESS);
        expect_arrived(length);
    }
}

} // namespace
} // namespace ucxl::test
