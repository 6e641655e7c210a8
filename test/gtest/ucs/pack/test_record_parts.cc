#include "support/random.h"

#include "ucs/pack/record_parts.h"

#include <gtest/gtest.h>

#include <array>

namespace
{

using namespace ucxl;

// By definition: whether a block of one part overlaps one of the other part, within `batch` iterations.
bool do_meet(const record_part& one, const record_part& other, std::int64_t batch)
{
    for (std::int64_t i = 0; i < batch; ++i) {
        for (std::int64_t k = 0; k < batch; ++k) {
            const std::int64_t from = one.offset + i * one.stride, to = other.offset + k * other.stride;
            if (from < to + static_cast<std::int64_t>(other.length) &&
                to < from + static_cast<std::int64_t>(one.length)) {
                return true;
            }
        }
    }
    return false;
}

TEST(record_parts, parts_of_one_stride_move_many_iterations_at_a_time_unless_they_overlap)
{
    // As many iterations as fit: 8192 bytes.
    constexpr std::int64_t batch = 16;
    test::random random(test::run_seed());
    unsigned meeting = 0, apart = 0;
    for (int i = 0; i < 100'000; ++i) {
        std::array<record_part, 2> parts{};
        const std::int64_t stride = random.between(-40, 40);
        for (record_part& part : parts) {
            part.offset = random.between(-700, 700);
            part.stride = stride;
            part.length = static_cast<std::uint64_t>(random.between(1, 40));
        }
        const bool expected = do_meet(parts[0], parts[1], batch);
        ++(expected ? meeting : apart);
        ASSERT_EQ(batch_of(parts, 8192 / batch, 2), expected ? 1 : batch)
            << parts[0].offset << ' ' << parts[0].length << ", " << parts[1].offset << ' ' << parts[1].length
            << ", stride " << stride;
    }
    EXPECT_GT(meeting, 1000);
    EXPECT_GT(apart, 1000);
}

} // namespace
