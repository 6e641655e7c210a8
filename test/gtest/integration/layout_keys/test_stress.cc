// Threads make, set, bind, use, invalidate and destroy regions of one domain. Each compares with its own reference: a
// list of offsets in the thread's own memory.
#include <array>
#include <cstdio>
#include <thread>

#include "key_test.h"
#include "support/random.h"

namespace ucxl::test
{
namespace
{

constexpr std::size_t num_threads     = 4;
constexpr std::size_t regions_of_each = 6;
constexpr int steps_of_each           = 15000;
constexpr std::size_t memory_bytes    = 32768;
constexpr std::size_t most_bytes      = 4096; // of a layout

enum action : std::size_t { make, set, prepare, post, bind, use, invalidate, destroy, num_actions };

constexpr std::array<const char*, num_actions> names{"make", "set", "prepare",    "post",
                                                     "bind", "use", "invalidate", "destroy"};

class worker
{
public:
    worker(uct_mlx5_layout_domain_h domain, const verbs_pair& home, std::uint64_t seed)
        : _domain(domain), _pair(verbs_pair::beside{home}), _from(seed)
    {
        for (std::size_t i = 0; i < memory_bytes; ++i) {
            _memory[i] = static_cast<std::uint8_t>(i * 31 + seed);
        }
        _mr     = _pair.registered(_memory.data(), _memory.size());
        _packed = _pair.registered(_bytes.data(), _bytes.size());
    }

    ~worker()
    {
        for (slot& one : _slots) {
            uct_mlx5_layout_region_destroy(one.region);
        }
    }

    void run()
    {
        // By hand: threads that disturb one another, which no smaller case repeats.
        for (int step = 0; step < steps_of_each && !testing::Test::HasFailure(); ++step) {
            one_step(_slots[_from.below(_slots.size())]);
        }
    }

    const std::array<int, num_actions>& counts() const { return _counts; }

private:
    struct slot {
        uct_mlx5_layout_region_h region = nullptr;
        std::vector<std::size_t> shown;    // offsets in the memory, byte by byte; none: no layout
        std::vector<std::size_t> prepared; // the same, not yet bound
    };

    void expect_ok(ucs_status_t status, action action)
    {
        EXPECT_EQ(status, UCS_OK) << names[action];
        ++_counts[action];
    }

    void one_step(slot& entry)
    {
        if (entry.region == nullptr) {
            uct_mlx5_layout_region_params_t params{};
            params.field_mask =
                UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS | UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES;
            params.access      = every_access & ~IBV_ACCESS_REMOTE_ATOMIC; // not every card has it
            params.max_entries = _from.one_in(2) ? 8 : 128;
            return expect_ok(uct_mlx5_layout_region_create(_domain, &params, &entry.region), make);
        }
        switch (_from.below(16)) {
        case 0:
            uct_mlx5_layout_region_destroy(entry.region);
            entry = {};
            ++_counts[destroy];
            return;
        case 1:
            expect_ok(uct_mlx5_layout_invalidate(&entry.region, 1), invalidate);
            entry.shown.clear();
            entry.prepared.clear();
            return;
        case 2:
        case 3:
        case 4:
            return give_layout(entry, 0);
        case 5:
        case 6:
        case 7:
            return give_layout(entry, UCT_MLX5_LAYOUT_SET_WITH_POST_WR);
        case 8:
            return bind_prepared();
        case 9:
            return post_prepared(entry);
        default:
            return move_bytes(entry);
        }
    }

    void give_layout(slot& entry, unsigned flags)
    {
        std::vector<std::size_t> offsets;
        const bool strided  = _from.one_in(2);
        ucs_status_t status = strided ? set_strided(entry, flags, offsets) : set_list(entry, flags, offsets);
        if (flags != 0) {
            expect_ok(status, prepare);
            entry.prepared = std::move(offsets);
        } else {
            expect_ok(status, set);
            entry.shown = std::move(offsets);
            entry.prepared.clear();
        }
    }

    ucs_status_t set_strided(slot& entry, unsigned flags, std::vector<std::size_t>& offsets)
    {
        const std::size_t length = 1 + _from.below(32);
        const std::size_t stride = length + _from.below(64);
        const std::size_t count  = 1 + _from.below(64);
        const std::size_t first  = _from.below(memory_bytes - stride * count);
        uct_mlx5_layout_dim_t dim{count, static_cast<std::ptrdiff_t>(stride)};
        uct_mlx5_layout_item_t item{place(first, length), 1, &dim, 1};
        for (std::size_t i = 0; i < count * length; ++i) {
            offsets.push_back(first + i / length * stride + i % length);
        }
        return uct_mlx5_layout_set_interleaved(entry.region, flags, 1, &item);
    }

    // Pieces in ascending order, so that no byte is shown twice.
    ucs_status_t set_list(slot& entry, unsigned flags, std::vector<std::size_t>& offsets)
    {
        std::vector<ibv_sge> pieces;
        std::size_t at_byte = _from.below(64);
        for (std::size_t i = 1 + _from.below(100); i > 0; --i) {
            const std::size_t length = 1 + _from.below(40);
            pieces.push_back(place(at_byte, length));
            for (std::size_t byte = 0; byte < length; ++byte) {
                offsets.push_back(at_byte + byte);
            }
            at_byte += length + _from.below(200);
        }
        return uct_mlx5_layout_set_sg(entry.region, flags, pieces.size(), pieces.data());
    }

    // Binds all regions with a prepared layout, in one batch.
    void bind_prepared()
    {
        std::vector<uct_mlx5_layout_region_h> regions;
        for (slot& one : _slots) {
            if (!one.prepared.empty()) {
                regions.push_back(one.region);
                one.shown = std::exchange(one.prepared, {});
            }
        }
        if (!regions.empty()) {
            expect_ok(uct_mlx5_layout_bind(regions.data(), regions.size()), bind);
        }
    }

    void post_prepared(slot& entry)
    {
        if (!entry.prepared.empty()) {
            expect_ok(uct_mlx5_layout_post_bind(_pair.qp(), &entry.region, 1, 1, 1), post);
            EXPECT_EQ(_pair.wait().status, IBV_WC_SUCCESS);
            entry.shown = std::exchange(entry.prepared, {});
        }
    }

    // Writes or reads a part of the bytes that a region shows.
    void move_bytes(slot& entry)
    {
        if (entry.shown.empty()) {
            return;
        }
        ++_counts[use];
        uct_mlx5_layout_region_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY |
                          UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS;
        ASSERT_EQ(uct_mlx5_layout_region_query(entry.region, &attr), UCS_OK);
        ASSERT_EQ(attr.length, entry.shown.size());
        const std::size_t first  = _from.below(entry.shown.size());
        const std::size_t length = 1 + _from.below(std::min(entry.shown.size() - first, most_bytes));
        const ibv_sge packed{reinterpret_cast<std::uintptr_t>(_bytes.data()), static_cast<std::uint32_t>(length),
                             _packed->lkey};
        if (_from.one_in(2)) {
            ASSERT_EQ(_pair.read(packed, first, attr.rkey), IBV_WC_SUCCESS);
            for (std::size_t i = 0; i < length; ++i) {
                ASSERT_EQ(_bytes[i], _memory[entry.shown[first + i]]);
            }
            return;
        }
        std::vector<std::uint8_t> expected = _memory;
        for (std::size_t i = 0; i < length; ++i) {
            _bytes[i]                        = static_cast<std::uint8_t>(_from.below(256));
            expected[entry.shown[first + i]] = _bytes[i];
        }
        ASSERT_EQ(_pair.write(packed, first, attr.rkey), IBV_WC_SUCCESS);
        ASSERT_TRUE(_memory == expected);
    }

    ibv_sge place(std::size_t offset, std::size_t length) const
    {
        return {reinterpret_cast<std::uintptr_t>(_memory.data()) + offset, static_cast<std::uint32_t>(length),
                _mr->lkey};
    }

    uct_mlx5_layout_domain_h _domain;
    verbs_pair _pair;
    random _from;
    std::vector<std::uint8_t> _memory = std::vector<std::uint8_t>(memory_bytes);
    std::vector<std::uint8_t> _bytes  = std::vector<std::uint8_t>(most_bytes);
    ibv_mr* _mr                       = nullptr;
    ibv_mr* _packed                   = nullptr;
    std::array<slot, regions_of_each> _slots;
    std::array<int, num_actions> _counts{};
};

class key_stress : public key_test
{
};

TEST_F(key_stress, threads_make_use_and_end_regions_of_one_domain)
{
    std::vector<std::unique_ptr<worker>> workers;
    for (std::size_t i = 0; i < num_threads; ++i) {
        workers.push_back(std::make_unique<worker>(domain, pair, run_seed() + i));
    }
    {
        std::vector<std::jthread> running;
        for (const auto& one : workers) {
            running.emplace_back([&one] { one->run(); });
        }
    }
    for (std::size_t index = 0; index < num_actions; ++index) {
        int total = 0;
        for (const auto& one : workers) {
            total += one->counts()[index];
        }
        std::printf("%-12s%d\n", names[index], total);
        EXPECT_GT(total, 500) << names[index];
    }
}

} // namespace
} // namespace ucxl::test
