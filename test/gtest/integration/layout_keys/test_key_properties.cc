// For random loop nests, reads and writes of a peer through the key, and sends and receives, move the bytes that the
// slow reference walker predicts, and no others. The test requires plans of every kind.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "key_test.h"
#include "support/property.h"
#include "support/random_spec.h"
#include "support/spec_memory.h"
#include "ucs/layout/wire.h"

namespace ucxl::test
{
namespace
{

constexpr int num_layouts = 3000;

class key_properties : public key_test
{
protected:
    struct tally {
        std::array<int, 5> by_depth{};
        int short_lists  = 0; // one list of four entries at most
        int lists        = 0; // one key, in the bind request
        int fetched      = 0; // some key's entries come from memory
        int repeats      = 0; // one repeat block
        int nested_lists = 0;
        int nested_mixed = 0; // lists and repeat blocks
        int nested_loops = 0; // repeat blocks only

        void count(const uct_mlx5_layout_region_attr_t& plan)
        {
            ++by_depth[std::min<std::size_t>(plan.depth, 4)];
            fetched += plan.num_fetched > 0 ? 1 : 0;
            if (plan.num_keys == 1) {
                ++(plan.num_repeats == 1 ? repeats : plan.num_entries > 4 ? lists : short_lists);
            } else {
                ++(plan.num_repeats == 0               ? nested_lists
                   : plan.num_repeats == plan.num_keys ? nested_loops
                                                       : nested_mixed);
            }
        }

        // Every kind must occur.
        std::vector<std::pair<const char*, int>> kinds() const
        {
            return {{"list of 1 to 4", short_lists}, {"longer list", lists},
                    {"entries fetched", fetched},    {"repeat block", repeats},
                    {"nested lists", nested_lists},  {"nested repeat blocks", nested_loops},
                    {"nested, both", nested_mixed},  {"depth 1", by_depth[1]},
                    {"depth 2", by_depth[2]},        {"depth 3", by_depth[3]}};
        }
    };

    // Registers the described bytes of each source, as a base for it.
    std::vector<uct_mlx5_layout_base_t> bases_of(const layout& layout, const spec_memory& memory)
    {
        std::vector<uct_mlx5_layout_base_t> bases;
        for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
            const layout_bounds& bounds = layout.bounds(source);
            std::byte* const base       = source < memory.bases().size() ? memory.bases()[source] : nullptr;
            std::uint32_t lkey          = 0;
            if (bounds.true_ub > bounds.true_lb) {
                _registered.push_back(ibv_reg_mr(pair.pd(), base + bounds.true_lb,
                                                 static_cast<std::size_t>(bounds.true_ub - bounds.true_lb),
                                                 static_cast<int>(every_access)));
                lkey = _registered.back()->lkey;
            }
            bases.push_back({reinterpret_cast<std::uintptr_t>(base), lkey});
        }
        return bases;
    }

    // Loops with so many blocks that keys that follow them cost less than a list; alone or in a list.
    static spec_ptr many_blocks(random& from)
    {
        const std::size_t num_dims = 2 + from.below(2);
        const std::uint64_t length = 1 + from.below(16);
        std::vector<dim> dims(num_dims);
        std::int64_t reach = static_cast<std::int64_t>(length);
        for (std::size_t i = num_dims; i-- > 0;) {
            dims[i] = {(num_dims == 2 ? 30 : 11) + from.below(4), reach + 1 + static_cast<std::int64_t>(from.below(8))};
            reach   = dims[i].stride * static_cast<std::int64_t>(dims[i].count);
        }
        const spec_ptr strided = spec::strided(spec::block(length), dims);
        if (from.one_in(2)) {
            return strided;
        }
        std::vector<spec_part> parts{{.source = 0, .offset = 0, .item = strided, .dims = {}}};
        for (std::int64_t i = 1; i < 12; ++i) {
            parts.push_back(
                {.source = 0, .offset = reach + i * i * 40, .item = spec::block(1 + from.below(16)), .dims = {}});
        }
        return spec::iov(parts);
    }

    static spec_ptr few_blocks(random& from)
    {
        random_options options;
        options.max_blocks  = 1 + from.below(from.one_in(6) ? 400 : 40);
        options.max_bytes   = options.max_blocks * (1 + from.below(64));
        options.num_sources = from.one_in(2) ? 1 : 4;
        options.overlapping = overlapping::never;
        return random_spec(from, options);
    }

    static spec_ptr draw(random& from) { return from.one_in(8) ? many_blocks(from) : few_blocks(from); }

    void check_one(random& from, const spec& described, uct_mlx5_layout_region_h region, tally& counts)
    {
        release_all();
        const std::uint64_t seed = from.next();
        const auto built         = build(described);
        ASSERT_TRUE(built.has_value());
        if ((*built)->is_empty()) {
            return;
        }
        spec_memory actual(described, seed);
        spec_memory expected(described, seed);
        const auto bases = bases_of(**built, actual);
        std::vector<std::byte> wire(wire_length(**built));
        ASSERT_TRUE(pack_wire(**built, wire).has_value());
        ASSERT_EQ(uct_mlx5_layout_set_wire(region, 0, wire.data(), wire.size(), bases.data(), bases.size()), UCS_OK);
        const auto attr = about(region);
        ASSERT_EQ(attr.length, expected.packed_length());
        counts.count(attr);

        const std::uint64_t offset = from.below(attr.length);
        const std::uint64_t length = 1 + from.below(attr.length - offset);
        auto packed                = random_bytes(seed, length);
        ibv_mr* const mr           = ibv_reg_mr(pair.pd(), packed.data(), length, IBV_ACCESS_LOCAL_WRITE);
        _registered.push_back(mr);
        const ibv_sge local{reinterpret_cast<std::uintptr_t>(packed.data()), static_cast<std::uint32_t>(length),
                            mr->lkey};
        const ibv_sge key{attr.address + offset, static_cast<std::uint32_t>(length), attr.lkey};
        expected.scatter(offset, packed);
        ASSERT_EQ(from.one_in(2) ? pair.write(local, key.addr, attr.rkey) : pair.send(local, key), IBV_WC_SUCCESS);
        EXPECT_EQ(actual.first_difference(expected), "");
        const auto now = expected.gather(offset, length);
        std::fill(packed.begin(), packed.end(), std::byte{0});
        ASSERT_EQ(from.one_in(2) ? pair.read(local, key.addr, attr.rkey) : pair.send(key, local), IBV_WC_SUCCESS);
        EXPECT_TRUE(packed == now);
    }

    // Of the layout before, whatever became of it.
    void release_all()
    {
        for (ibv_mr* registered : _registered) {
            ibv_dereg_mr(registered);
        }
        _registered.clear();
    }

private:
    std::vector<ibv_mr*> _registered;
};

TEST_F(key_properties, keys_show_what_the_reference_walker_says)
{
    tally counts;
    // A small root forces plans with nested keys.
    const std::array<uct_mlx5_layout_region_h, 2> regions{new_region(4096), new_region(8)};
    const auto check = [&](random& from, const spec& described) {
        check_one(from, described, regions[from.below(2)], counts);
    };
    for_random_layouts(num_layouts, draw, check, [](const spec& described) { return !has_overlap(described); });
    release_all();
    for (const auto& [kind, count] : counts.kinds()) {
        std::printf("%-22s%d\n", kind, count);
        // A device without repeat blocks has fewer kinds of plans.
        EXPECT_TRUE(count > 0 || !has_repeat_blocks()) << kind;
    }
}

} // namespace
} // namespace ucxl::test
