#include "cost.h"

#include <array>

namespace ucxl::softhca
{

namespace
{

struct point {
    std::uint64_t bytes;
    std::uint64_t time_ns;
};

using curve = std::array<point, 4>;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

// Published for BlueField-3.
constexpr curve bf3_registration{{{16 * kib, 10'125}, {mib, 22'296}, {64 * mib, 232'007}, {1024 * mib, 5'823'605}}};
constexpr curve bf3_deregistration{{{16 * kib, 8'230}, {mib, 14'073}, {64 * mib, 28'635}, {1024 * mib, 2'585'700}}};
constexpr curve bf3_umem{{{16 * kib, 165'139}, {mib, 320'991}, {64 * mib, 5'833'211}, {1024 * mib, 114'294'081}}};

// Linear between the points, constant before the first, and extrapolated after the last two.
std::uint64_t read_off(const curve& measured, std::uint64_t bytes)
{
    if (bytes <= measured[0].bytes) {
        return measured[0].time_ns;
    }
    std::size_t i = 1;
    while (i + 1 < measured.size() && bytes > measured[i].bytes) {
        ++i;
    }
    const double share = static_cast<double>(bytes - measured[i - 1].bytes) /
                         static_cast<double>(measured[i].bytes - measured[i - 1].bytes);
    const double time = static_cast<double>(measured[i].time_ns - measured[i - 1].time_ns) * share;
    // A registration is capped at a minute, whatever length a program claims.
    constexpr double longest = 60e9;
    return measured[i - 1].time_ns + static_cast<std::uint64_t>(time < longest ? time : longest);
}

std::uint64_t pick(card_times costs, std::uint64_t cx6, std::uint64_t bf3)
{
    switch (costs) {
    case card_times::none:
        return 0;
    case card_times::cx6:
        return cx6;
    case card_times::bf3:
        return bf3;
    }
    return 0;
}

// cx6 costs half of bf3, whose processor is slower.
std::uint64_t pick_curve(card_times costs, const curve& bf3, std::uint64_t bytes)
{
    const std::uint64_t time_ns = read_off(bf3, bytes);
    return pick(costs, time_ns / 2, time_ns);
}

} // namespace

std::uint64_t command_cost(card_times costs, prm::command opcode)
{
    switch (opcode) {
    case prm::command::allow_other_vhca_access:
        return pick(costs, 70'000, 147'000);
    case prm::command::create_general_object:
        return pick(costs, 90'000, 177'000);
    case prm::command::destroy_general_object:
    case prm::command::create_qp:
    case prm::command::create_cq:
    case prm::command::create_rmp:
    case prm::command::destroy_qp:
    case prm::command::destroy_cq:
    case prm::command::destroy_rmp:
        return pick(costs, 75'000, 150'000);
    case prm::command::rst2init_qp:
    case prm::command::init2init_qp:
    case prm::command::init2rtr_qp:
    case prm::command::rtr2rts_qp:
    case prm::command::rts2rts_qp:
    case prm::command::to_err_qp:
    case prm::command::to_rst_qp:
        return pick(costs, 50'000, 100'000);
    default:
        return pick(costs, 10'000, 20'000);
    }
}

std::uint64_t registration_cost(card_times costs, std::uint64_t bytes)
{
    return pick_curve(costs, bf3_registration, bytes);
}

std::uint64_t deregistration_cost(card_times costs, std::uint64_t bytes)
{
    return pick_curve(costs, bf3_deregistration, bytes);
}

std::uint64_t umem_cost(card_times costs, std::uint64_t bytes)
{
    return pick_curve(costs, bf3_umem, bytes);
}

std::uint64_t umem_key_cost(card_times costs)
{
    return pick(costs, 80'000, 159'000);
}

std::uint64_t indirect_key_cost(card_times costs)
{
    return pick(costs, 110'000, 217'500);
}

std::uint64_t key_end_cost(card_times costs)
{
    return pick(costs, 75'000, 151'500);
}

} // namespace ucxl::softhca
