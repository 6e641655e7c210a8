// Errors that the library detects itself, with the field named, and errors that only the device can detect.
#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "key_test.h"
#include "support/verbs.h"
#include "ucs/layout/build.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/log_limit.h"
#include "uct/ib/mlx5/layout/api_support.h"

namespace ucxl::test
{
namespace
{

class key_errors : public key_test
{
protected:
    // A region over one piece of memory.
    uct_mlx5_layout_region_h region_over(const ibv_sge& piece, unsigned access = every_access)
    {
        uct_mlx5_layout_region_h region = new_region(64, 0, access);
        EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
        return region;
    }

    ibv_wc_status write_to(uct_mlx5_layout_region_h region, std::uint64_t offset, std::size_t length)
    {
        const auto packed = zeroed(length);
        const auto status = pair.write(packed->piece(0, length), offset, about(region).rkey);
        if (status != IBV_WC_SUCCESS) {
            pair.reconnect();
        }
        return status;
    }
};

TEST_F(key_errors, access_past_the_end_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000));
    EXPECT_EQ(write_to(region, 900, 100), IBV_WC_SUCCESS);
    EXPECT_EQ(write_to(region, 900, 101), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(write_to(region, std::numeric_limits<std::uint64_t>::max() - 3, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, region_without_the_right_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
    const auto packed = zeroed(8);
    EXPECT_EQ(pair.read(packed->piece(0, 8), 0, about(region).rkey), IBV_WC_SUCCESS);
}

TEST_F(key_errors, a_key_that_never_was_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over({memory->address(), 1000, 0xabcdef00});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, memory_of_another_protection_domain_is_refused_by_the_device)
{
    verbs_pair other;
    std::vector<std::uint8_t> memory(4096);
    ibv_mr* const foreign = other.registered(memory.data(), memory.size());
    const auto region     = region_over({reinterpret_cast<std::uintptr_t>(memory.data()), 1000, foreign->lkey});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, memory_deregistered_under_a_region_is_refused_by_the_device_and_the_region_lives_on)
{
    std::vector<std::uint8_t> memory(4096);
    ibv_mr* const short_lived = ibv_reg_mr(pair.pd(), memory.data(), memory.size(), static_cast<int>(every_access));
    const auto region         = region_over({reinterpret_cast<std::uintptr_t>(memory.data()), 1000, short_lived->lkey});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS);
    ibv_dereg_mr(short_lived);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
    const auto lasting  = zeroed(100);
    const ibv_sge piece = lasting->piece(0, 100);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
    EXPECT_EQ(write_to(region, 0, 100), IBV_WC_SUCCESS);
}

TEST_F(key_errors, regions_nest_as_deep_as_the_device_says_and_no_deeper)
{
    const uct_mlx5_layout_attr_t caps = capabilities();
    const auto memory                 = patterned(4096);
    ibv_sge piece                     = memory->piece(0, 1000);
    for (std::uint32_t level = 1; level <= caps.max_depth; ++level) {
        const auto region = region_over(piece);
        EXPECT_EQ(about(region).depth, level);
        EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS) << "level " << level;
        piece = {0, 1000, about(region).lkey};
    }
    logs().expect("over the limit");
    EXPECT_EQ(uct_mlx5_layout_set_sg(new_region(), 0, 1, &piece), UCS_ERR_EXCEEDS_LIMIT);
}

TEST_F(key_errors, regions_that_are_only_prepared_count_as_deep_as_they_will_be)
{
    const uct_mlx5_layout_attr_t caps = capabilities();
    const auto memory                 = patterned(4096);
    ibv_sge piece                     = memory->piece(0, 1000);
    for (std::uint32_t level = 1; level <= caps.max_depth; ++level) {
        const auto region = new_region();
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK) << level;
        piece = {0, 1000, about(region).lkey};
    }
    logs().expect("over the limit");
    EXPECT_EQ(uct_mlx5_layout_set_sg(new_region(), UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_ERR_EXCEEDS_LIMIT);
}

TEST_F(key_errors, a_failed_set_leaves_the_layout_there_was)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000));
    logs().expect("no bytes");
    const ibv_sge nothing = memory->piece(0, 0);
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &nothing), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(about(region).length, 1000);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS);
}

TEST_F(key_errors, bad_parameters_are_named)
{
    const auto memory = zeroed(64);
    const auto region = new_region();
    uct_mlx5_layout_dim_t dim{0, 8};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, &dim, 1};
    logs().expect("items[0].dims[0].count is 0");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    item.dims = nullptr;
    logs().expect("items[0].dims is NULL");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    item.repeat = 0;
    logs().expect("items[0].repeat is 0");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    item.repeat   = 1;
    item.dims     = &dim;
    item.num_dims = 17;
    logs().expect("items[0].num_dims 17 is over the limit of 16");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_EXCEEDS_LIMIT);
    const ibv_sge piece = memory->piece(0, 8);
    logs().expect("flags 0x80 have unknown bits 0x80");
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0x80, 1, &piece), UCS_ERR_INVALID_PARAM);
    logs().expect("regions[0] has no layout set with");
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_ERR_INVALID_PARAM);
    logs().expect("num_regions is 0");
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 0), UCS_ERR_INVALID_PARAM);
    logs().expect("num_sge is 0");
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, 0, &piece), UCS_ERR_INVALID_PARAM);
    logs().expect("num_items is 0");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 0, &item), UCS_ERR_INVALID_PARAM);

    uct_mlx5_layout_region_params_t params{};
    params.field_mask               = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES;
    uct_mlx5_layout_region_h unmade = nullptr;
    for (const std::uint32_t entries : {0U, 65533U}) {
        params.max_entries = entries;
        logs().expect("max_entries " + std::to_string(entries) + " is not from 1 to");
        EXPECT_EQ(uct_mlx5_layout_region_create(domain, &params, &unmade), UCS_ERR_INVALID_PARAM);
    }
    params.field_mask = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS;
    params.access     = IBV_ACCESS_MW_BIND;
    logs().expect("access 0x10 has bits 0x10");
    EXPECT_EQ(uct_mlx5_layout_region_create(domain, &params, &unmade), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(unmade, nullptr);
}

// Each call has one wrong parameter.
TEST_F(key_errors, null_is_refused_by_name_and_changes_nothing)
{
    const auto memory                     = patterned(64);
    const ibv_sge piece                   = memory->piece(0, 64);
    const uct_mlx5_layout_region_h region = region_over(piece);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK);
    uct_mlx5_layout_domain_params_t domain_params{};
    uct_mlx5_layout_region_params_t region_params{};
    uct_mlx5_layout_attr_t attr{};
    uct_mlx5_layout_domain_attr_t domain_attr{};
    uct_mlx5_layout_region_attr_t region_attr{};
    uct_mlx5_layout_domain_h new_domain = nullptr;
    uct_mlx5_layout_region_h created    = nullptr;
    const ibv_async_event event{};
    const std::byte wire{};
    const uct_mlx5_layout_item_t item{piece, 1, nullptr, 0};
    const uct_mlx5_layout_base_t base{memory->address(), memory->mr->lkey};
    const std::array<uct_mlx5_layout_region_h, 2> second_null{region, nullptr};
    const uct_mlx5_layout_region_h first_null = nullptr;
    struct wrong_call {
        const char* message;
        std::function<ucs_status_t()> call;
    };
    const std::vector<wrong_call> wrong_calls{
        {"uct_mlx5_layout_query: context is NULL", [&] { return uct_mlx5_layout_query(nullptr, &attr); }},
        {"uct_mlx5_layout_query: attr is NULL", [&] { return uct_mlx5_layout_query(pair.context(), nullptr); }},
        {"uct_mlx5_layout_domain_open: params is NULL",
         [&] { return uct_mlx5_layout_domain_open(nullptr, &new_domain); }},
        {"uct_mlx5_layout_domain_open: domain_p is NULL",
         [&] { return uct_mlx5_layout_domain_open(&domain_params, nullptr); }},
        {"uct_mlx5_layout_domain_query: domain is NULL",
         [&] { return uct_mlx5_layout_domain_query(nullptr, &domain_attr); }},
        {"uct_mlx5_layout_domain_query: attr is NULL", [&] { return uct_mlx5_layout_domain_query(domain, nullptr); }},
        {"uct_mlx5_layout_domain_handle_event: domain is NULL",
         [&] { return uct_mlx5_layout_domain_handle_event(nullptr, &event); }},
        {"uct_mlx5_layout_domain_handle_event: event is NULL",
         [&] { return uct_mlx5_layout_domain_handle_event(domain, nullptr); }},
        {"uct_mlx5_layout_explain: wire is NULL",
         [&] { return uct_mlx5_layout_explain("published", nullptr, 0, stdout); }},
        {"uct_mlx5_layout_explain: stream is NULL",
         [&] { return uct_mlx5_layout_explain("published", &wire, 1, nullptr); }},
        {"uct_mlx5_layout_region_create: domain is NULL",
         [&] { return uct_mlx5_layout_region_create(nullptr, &region_params, &created); }},
        {"uct_mlx5_layout_region_create: params is NULL",
         [&] { return uct_mlx5_layout_region_create(domain, nullptr, &created); }},
        {"uct_mlx5_layout_region_create: region_p is NULL",
         [&] { return uct_mlx5_layout_region_create(domain, &region_params, nullptr); }},
        {"uct_mlx5_layout_region_query: region is NULL",
         [&] { return uct_mlx5_layout_region_query(nullptr, &region_attr); }},
        {"uct_mlx5_layout_region_query: attr is NULL", [&] { return uct_mlx5_layout_region_query(region, nullptr); }},
        {"uct_mlx5_layout_region_check_atomic: region is NULL",
         [&] { return uct_mlx5_layout_region_check_atomic(nullptr, 0); }},
        {"uct_mlx5_layout_set_sg: region is NULL", [&] { return uct_mlx5_layout_set_sg(nullptr, 0, 1, &piece); }},
        {"uct_mlx5_layout_set_sg: sg_list is NULL", [&] { return uct_mlx5_layout_set_sg(region, 0, 1, nullptr); }},
        {"uct_mlx5_layout_set_interleaved: region is NULL",
         [&] { return uct_mlx5_layout_set_interleaved(nullptr, 0, 1, &item); }},
        {"uct_mlx5_layout_set_interleaved: items is NULL",
         [&] { return uct_mlx5_layout_set_interleaved(region, 0, 1, nullptr); }},
        {"uct_mlx5_layout_set_wire: region is NULL",
         [&] { return uct_mlx5_layout_set_wire(nullptr, 0, &wire, 1, &base, 1); }},
        {"uct_mlx5_layout_set_wire: wire is NULL",
         [&] { return uct_mlx5_layout_set_wire(region, 0, nullptr, 1, &base, 1); }},
        {"uct_mlx5_layout_set_wire: bases is NULL",
         [&] { return uct_mlx5_layout_set_wire(region, 0, &wire, 1, nullptr, 1); }},
        {"uct_mlx5_layout_post_bind: qp is NULL", [&] { return uct_mlx5_layout_post_bind(nullptr, &region, 1, 0, 1); }},
        {"uct_mlx5_layout_post_bind: regions is NULL",
         [&] { return uct_mlx5_layout_post_bind(pair.qp(), nullptr, 1, 0, 1); }},
        {"uct_mlx5_layout_bind: regions is NULL", [&] { return uct_mlx5_layout_bind(nullptr, 1); }},
        {"uct_mlx5_layout_bind: regions[1] is NULL", [&] { return uct_mlx5_layout_bind(second_null.data(), 2); }},
        {"uct_mlx5_layout_invalidate: regions is NULL", [&] { return uct_mlx5_layout_invalidate(nullptr, 1); }},
        {"uct_mlx5_layout_invalidate: regions[0] is NULL", [&] { return uct_mlx5_layout_invalidate(&first_null, 1); }},
    };
    for (const auto& [message, call] : wrong_calls) {
        logs().expect(message);
        EXPECT_EQ(call(), UCS_ERR_INVALID_PARAM) << message;
        EXPECT_EQ(logs().count(message), 1) << message;
    }
    uct_mlx5_layout_domain_close(nullptr);
    uct_mlx5_layout_region_destroy(nullptr);
    uct_mlx5_layout_get_version(nullptr, nullptr, nullptr);
    EXPECT_EQ(new_domain, nullptr);
    EXPECT_EQ(created, nullptr);
    EXPECT_EQ(about(region).length, 64);
    EXPECT_EQ(write_to(region, 0, 64), IBV_WC_SUCCESS);
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_OK) << "what was prepared still is";
}

TEST_F(key_errors, unknown_field_bits_are_refused_and_only_what_is_asked_for_is_written)
{
    const auto region = new_region();
    uct_mlx5_layout_attr_t attr{};
    uct_mlx5_layout_domain_attr_t domain_attr{};
    uct_mlx5_layout_region_attr_t region_attr{};
    attr.field_mask = domain_attr.field_mask = region_attr.field_mask = 1ULL << 40;
    logs().expect("field_mask 0x10000000000 has unknown bits 0x10000000000");
    EXPECT_EQ(uct_mlx5_layout_query(pair.context(), &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_mlx5_layout_domain_query(domain, &domain_attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_mlx5_layout_region_query(region, &region_attr), UCS_ERR_INVALID_PARAM);
    attr.field_mask        = UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_DEPTH;
    domain_attr.field_mask = UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH;
    region_attr.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY;
    EXPECT_EQ(uct_mlx5_layout_query(pair.context(), &attr), UCS_OK);
    EXPECT_EQ(uct_mlx5_layout_domain_query(domain, &domain_attr), UCS_OK);
    EXPECT_EQ(uct_mlx5_layout_region_query(region, &region_attr), UCS_OK);
    EXPECT_GE(attr.max_depth, domain_attr.max_depth);
    EXPECT_GE(domain_attr.max_depth, 1);
    EXPECT_NE(region_attr.rkey, 0);
    EXPECT_EQ(attr.flags | domain_attr.flags | region_attr.lkey, 0);
}

// The second call would find nothing prepared and remove the layout.
TEST_F(key_errors, a_region_that_is_there_twice_is_refused)
{
    const auto memory   = patterned(64);
    const ibv_sge piece = memory->piece(0, 64);
    const auto region   = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK);
    const std::array<uct_mlx5_layout_region_h, 2> twice{region, region};
    logs().expect("regions[1] appears twice");
    EXPECT_EQ(uct_mlx5_layout_bind(twice.data(), twice.size()), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_OK);
    EXPECT_EQ(about(region).length, 64);
}

TEST_F(key_errors, the_library_says_the_version_of_its_header)
{
    unsigned major = 99, minor = 99, release = 99;
    uct_mlx5_layout_get_version(&major, &minor, &release);
    EXPECT_EQ(major, UCT_MLX5_LAYOUT_API_MAJOR);
    EXPECT_EQ(minor, UCT_MLX5_LAYOUT_API_MINOR);
    EXPECT_NE(release, 99);
}

// The limit of the log counts anew in each of these.
std::time_t monotonic_second()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

TEST_F(key_errors, hostile_wire_forms_are_refused)
{
    const auto region = new_region();
    const auto layout = make_strided({8, nullptr}, std::array{dim{4, 64}});
    std::vector<std::byte> wire(wire_length(**layout));
    ASSERT_TRUE(pack_wire(**layout, wire).has_value());
    const auto memory = zeroed(4096);
    const uct_mlx5_layout_base_t base{memory->address(), memory->mr->lkey};
    logs().expect("0 bases for a layout of 1 sources");
    EXPECT_EQ(uct_mlx5_layout_set_wire(region, 0, wire.data(), wire.size(), &base, 0), UCS_ERR_INVALID_PARAM);
    logs().allow("uct_mlx5_layout_set_wire");
    const std::time_t begin = monotonic_second();
    for (std::size_t i = 0; i < wire.size(); ++i) {
        for (const std::byte other : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
            std::vector<std::byte> changed = wire;
            changed[i]                     = other;
            // Any status, but never a crash; accepted bytes must be a layout.
            (void)uct_mlx5_layout_set_wire(region, 0, changed.data(), changed.size(), &base, 1);
        }
    }
    for (std::size_t size = 0; size < wire.size(); ++size) {
        EXPECT_NE(uct_mlx5_layout_set_wire(region, 0, wire.data(), size, &base, 1), UCS_OK) << size;
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_NE(uct_mlx5_layout_set_wire(region, 0, wire.data(), 1, &base, 1), UCS_OK);
    }
    const auto seconds = static_cast<std::size_t>(monotonic_second() - begin + 1);
    EXPECT_LE(logs().count("uct_mlx5_layout_set_wire"), seconds * log_limit::messages_per_second);
}

// Queue pairs of the caller that cannot bind. Nothing is lost: the layout can still be bound.
class key_errors_of_queue_pairs : public key_errors
{
protected:
    template <typename Create>
    void expect_refused(Create&& create, const char* message)
    {
        const auto memory   = zeroed(64);
        const auto region   = new_region();
        const ibv_sge piece = memory->piece(0, 64);
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK);
        ibv_cq* const cq = ibv_create_cq(pair.context(), 4, nullptr, nullptr, 0);
        ibv_qp* const qp = create(cq);
        ASSERT_NE(qp, nullptr);
        logs().expect(message);
        EXPECT_EQ(uct_mlx5_layout_post_bind(qp, &region, 1, 0, 1), UCS_ERR_UNSUPPORTED);
        ibv_destroy_qp(qp);
        ibv_destroy_cq(cq);
        EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_OK);
        EXPECT_EQ(write_to(region, 0, 64), IBV_WC_SUCCESS);
    }
};

TEST_F(key_errors_of_queue_pairs, that_take_no_raw_requests_are_refused)
{
    const auto create = [&](ibv_cq* cq) {
        ibv_qp_init_attr plain{};
        plain.qp_type = IBV_QPT_RC;
        plain.send_cq = plain.recv_cq = cq;
        plain.cap                     = {4, 4, 1, 1, 0};
        return ibv_create_qp(pair.pd(), &plain);
    };
    expect_refused(create, "not created for raw work requests");
}

// libmlx5 would write the first request that has no room over one that waits, or to address 0 if there was none before.
TEST_F(key_errors_of_queue_pairs, that_are_full_keep_what_was_posted)
{
    const auto memory   = zeroed(64);
    const auto from     = patterned(64);
    const auto region   = new_region();
    const ibv_sge piece = memory->piece(0, 64);
    logs().expect("no room for 2 requests");
    for (const bool has_bound : {false, true}) {
        SCOPED_TRACE(has_bound);
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK);
        std::ranges::fill(memory->bytes, std::uint8_t{0});
        std::size_t posted = 0;
        try {
            for (;; ++posted) {
                pair.post_write(from->piece(posted % 64, 1), memory->address() + posted % 64, memory->mr->rkey);
            }
        } catch (const std::runtime_error&) { // no room
        }
        ASSERT_GE(posted, 64u);
        EXPECT_EQ(uct_mlx5_layout_post_bind(pair.qp(), &region, 1, 77, 1), UCS_ERR_NO_RESOURCE);
        for (std::size_t i = 0; i < posted; ++i) {
            ASSERT_EQ(pair.wait().status, IBV_WC_SUCCESS) << i;
        }
        EXPECT_EQ(memory->bytes, from->bytes);
        ASSERT_EQ(uct_mlx5_layout_post_bind(pair.qp(), &region, 1, 78, 1), UCS_OK) << "it was still prepared";
        EXPECT_EQ(pair.wait().wr_id, 78u);
        EXPECT_EQ(write_to(region, 0, 64), IBV_WC_SUCCESS);
    }
}

// Layouts that need a key below the region's own.
class key_errors_of_posted_layouts : public key_errors
{
protected:
    static constexpr std::size_t pieces = 100;

    ucs_status_t set_pieces(uct_mlx5_layout_region_h region, const buffer& memory, unsigned flags)
    {
        std::vector<ibv_sge> list;
        for (std::size_t i = 0; i < pieces; ++i) {
            list.push_back(memory.piece(16 * i + i * i % 7, 8));
        }
        return uct_mlx5_layout_set_sg(region, flags, list.size(), list.data());
    }

    void fail_queue_pair()
    {
        ibv_qp_attr failed{};
        failed.qp_state = IBV_QPS_ERR;
        worked(ibv_modify_qp(pair.qp(), &failed, IBV_QP_STATE), "ERR");
    }

    const std::unique_ptr<buffer> first = zeroed(16 * pieces + 16), second = zeroed(16 * pieces + 16),
                                  other = zeroed(16 * pieces + 16);
};

TEST_F(key_errors_of_posted_layouts, that_were_never_bound_leave_the_keys_of_the_one_before_to_its_region)
{
    const auto region = new_region(4);
    ASSERT_EQ(set_pieces(region, *first, 0), UCS_OK);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(set_pieces(region, *second, UCT_MLX5_LAYOUT_SET_WITH_POST_WR), UCS_OK);
        fail_queue_pair();
        ASSERT_EQ(uct_mlx5_layout_post_bind(pair.qp(), &region, 1, 1, 1), UCS_OK);
        EXPECT_EQ(pair.wait().status, IBV_WC_WR_FLUSH_ERR);
        pair.reconnect();
        ASSERT_EQ(set_pieces(region, *second, UCT_MLX5_LAYOUT_SET_WITH_POST_WR), UCS_OK);
        ASSERT_EQ(set_pieces(region, *second, UCT_MLX5_LAYOUT_SET_WITH_POST_WR), UCS_OK) << "instead of the last one";
        ASSERT_EQ(set_pieces(new_region(4), *other, 0), UCS_OK);
        const auto ones = zeroed(8 * pieces);
        std::ranges::fill(ones->bytes, std::uint8_t{1});
        (void)pair.write(ones->piece(0, 8 * pieces), 0, about(region).rkey);
        EXPECT_EQ(std::ranges::count(other->bytes, 1), 0) << i;
        pair.reconnect();
    }
    ASSERT_EQ(set_pieces(region, *second, 0), UCS_OK);
    EXPECT_EQ(write_to(region, 0, 8 * pieces), IBV_WC_SUCCESS);
}

TEST_F(key_errors_of_posted_layouts, use_the_same_keys_again)
{
    const auto region = new_region(4);
    std::size_t keys  = 0;
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(set_pieces(region, *first, UCT_MLX5_LAYOUT_SET_WITH_POST_WR), UCS_OK);
        ASSERT_EQ(uct_mlx5_layout_post_bind(pair.qp(), &region, 1, 1, 1), UCS_OK);
        ASSERT_EQ(pair.wait().status, IBV_WC_SUCCESS);
        EXPECT_EQ(write_to(region, 0, 8 * pieces), IBV_WC_SUCCESS);
        keys = i == 2 ? domain->value.keys.num_existing() : keys;
    }
    EXPECT_EQ(domain->value.keys.num_existing(), keys);
    EXPECT_GT(keys, 0u);
}

TEST_F(key_errors_of_queue_pairs, without_room_for_the_longest_request_are_refused)
{
    const auto create = [&](ibv_cq* cq) {
        ibv_qp_init_attr_ex small{};
        small.qp_type = IBV_QPT_RC;
        small.send_cq = small.recv_cq = cq;
        small.cap                     = {4, 4, 1, 1, 64};
        small.pd                      = pair.pd();
        small.comp_mask               = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        small.send_ops_flags          = IBV_QP_EX_WITH_RDMA_WRITE;
        mlx5dv_qp_init_attr raw{};
        raw.comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
        raw.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE;
        return mlx5dv_create_qp(pair.context(), &small, &raw);
    };
    expect_refused(create, "the least is 832");
}

} // namespace
} // namespace ucxl::test
