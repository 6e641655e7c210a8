// The Nth allocation fails, for every N: the result is no_memory, and nothing is left behind (leaks: contrib/dev asan).
#include "support/alloc_failure.h"
#include "support/must.h"
#include "support/property.h"
#include "support/random_spec.h"

#include "ucs/layout/text.h"
#include "ucs/layout/wire.h"

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

// A result that is right, or the error the failed allocation must give.
bool is_right(const result<layout_ptr>& made)
{
    return made.has_value() || made.error().code == errc::no_memory;
}

layout_ptr record()
{
    const iov_part parts[] = {{0, 0, {12, nullptr}}, {1, 16, {8, nullptr}}, {0, 40, {4, nullptr}}};
    return must(resize(*must(make_iov(parts)), 0, 64));
}

template <typename Fn>
void expect_survives(Fn&& make)
{
    EXPECT_GT(fail_every_allocation([&] { return is_right(make()); }), 3);
}

TEST(alloc_failure, contig)
{
    expect_survives([item = record()] { return make_contig(5, {0, item}); });
}

TEST(alloc_failure, strided)
{
    const dim dims[] = {{3, 1000}, {4, 100}};
    expect_survives([&, item = record()] { return make_strided({0, item}, dims); });
}

TEST(alloc_failure, iov)
{
    std::vector<iov_part> parts;
    const layout_ptr item = record();
    for (int i = 0; i < 60; ++i) {
        parts.push_back({0, i * i * 70, {static_cast<std::uint64_t>(i), i % 4 == 0 ? item : nullptr}});
    }
    expect_survives([&] { return make_iov(parts); });
}

TEST(alloc_failure, interleaved)
{
    const dim a[] = {{3, 1000}, {4, 16}}, b[] = {{7, 40}};
    const interleaved_part parts[] = {{0, 0, {8, nullptr}, 2, a}, {1, 0, {0, record()}, 3, b}};
    expect_survives([&] { return make_interleaved(parts); });
}

TEST(alloc_failure, resize)
{
    expect_survives([item = record()] { return resize(*item, -4, 200, 3); });
}

TEST(alloc_failure, unpack_wire)
{
    const layout_ptr item = record();
    std::vector<std::byte> bytes(wire_length(*item));
    ASSERT_TRUE(pack_wire(*item, bytes).has_value());
    expect_survives([&] { return unpack_wire(bytes); });
}

TEST(alloc_failure, parse_text)
{
    expect_survives([] { return parse_text("resized(strided([2,3]xiov(8@0,1:16@24,4@99),[900,300]),0,5000)"); });
    expect_survives([] { return parse_text("interleaved(3*12@0,10,32;1:contig(2,9)@4,[3,2],[100,32])"); });
}

TEST(alloc_failure, random_layouts)
{
    const auto draw = [](random& from) { return random_spec(from, {.max_blocks = 40}); };
    for_random_layouts(60, draw, [](random&, const spec& described) {
        EXPECT_GE(fail_every_allocation([&] {
                      try {
                          return is_right(build(described));
                      } catch (const std::bad_alloc&) {
                          return true; // of the helper, outside the builders
                      }
                  }),
                  0);
    });
}

} // namespace
} // namespace ucxl::test
