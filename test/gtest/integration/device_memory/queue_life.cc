#include "queue_life.h"

#include <array>
#include <exception>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/bind_queue.h"
#include "uct/ib/mlx5/layout/domain.h"

namespace ucxl::test
{

int queue_life()
{
    constexpr std::size_t length    = 8;
    constexpr std::uint32_t no_key  = 0xffffff00;
    constexpr std::uint32_t a_depth = 2;
    try {
        verbs_pair pair;
        std::array<std::byte, 2 * length> memory{};
        const ibv_mr* const mr = pair.registered(memory.data(), memory.size());
        auto queue             = mlx5::bind_queue::open(pair.pd(), mlx5::domain::default_port, a_depth, false);
        if (!queue) {
            return queue_life_no_setup;
        }
        const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
        const ibv_sge from{.addr = first, .length = length, .lkey = mr->lkey};
        const auto bad  = queue->attempt_write(from, first + length, no_key);
        const auto good = queue->attempt_write(from, first + length, mr->rkey);
        if (bad.value_or(false) || !good.value_or(false)) {
            return queue_life_wrong;
        }
        return bad ? queue_life_complete : queue_life_lost;
    } catch (const std::exception&) {
        return queue_life_no_setup;
    }
}

} // namespace ucxl::test
