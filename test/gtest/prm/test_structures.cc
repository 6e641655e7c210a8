// All structures: random values are written to all fields and read back, values that do not fit are refused, and a
// field changes only its own bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "registry.h"
#include "support/random.h"

namespace ucxl::prm
{
namespace
{

std::uint64_t largest(const field_info& field)
{
    return ~std::uint64_t{0} >> (64 - field.width);
}

// The slow and obvious way: bit by bit, as declared.
std::uint64_t bits_of(const std::vector<std::byte>& bytes, const field_info& field)
{
    std::uint64_t value = 0;
    for (unsigned i = field.offset; i < field.offset + field.width; i++) {
        value = value * 2 + (std::to_integer<unsigned>(bytes[i / 8]) >> (7 - i % 8)) % 2;
    }
    return value;
}

void clear_bits(std::vector<std::byte>& bytes, const field_info& field)
{
    for (unsigned i = field.offset; i < field.offset + field.width; i++) {
        bytes[i / 8] &= ~(std::byte{128} >> (i % 8));
    }
}

std::vector<std::byte> random_bytes(test::random& from, std::size_t size)
{
    std::vector<std::byte> bytes(size);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(from.next()); });
    return bytes;
}

TEST(prm_structures, are_many)
{
    EXPECT_GE(registry().size(), 137U);
}

TEST(prm_structures, read_what_was_written)
{
    test::random from(test::run_seed());
    RecordProperty("seed", std::to_string(test::run_seed()));
    for (const auto& [name, structure] : registry()) {
        for (const field_access& field : structure.numbers) {
            for (int i = 0; i < 20; i++) {
                const auto before         = random_bytes(from, structure.info->size_bytes);
                auto after                = before;
                const std::uint64_t value = from.next() & largest(*field.info);
                ASSERT_TRUE(field.set(after.data(), value)) << name << '.' << field.info->name;
                ASSERT_EQ(field.get(after.data()), value) << name << '.' << field.info->name;
                ASSERT_EQ(bits_of(after, *field.info), value) << name << '.' << field.info->name;
                auto rest = before;
                clear_bits(rest, *field.info);
                clear_bits(after, *field.info);
                ASSERT_EQ(after, rest) << name << '.' << field.info->name << " changed bits outside";
            }
        }
    }
}

TEST(prm_structures, take_the_largest_value_and_refuse_the_next)
{
    for (const auto& [name, structure] : registry()) {
        for (const field_access& field : structure.numbers) {
            std::vector<std::byte> bytes(structure.info->size_bytes);
            EXPECT_TRUE(field.set(bytes.data(), largest(*field.info))) << name << '.' << field.info->name;
            const auto before = bytes;
            if (field.info->width < 64) {
                EXPECT_FALSE(field.set(bytes.data(), largest(*field.info) + 1)) << name << '.' << field.info->name;
                EXPECT_FALSE(field.set(bytes.data(), ~std::uint64_t{0})) << name << '.' << field.info->name;
            }
            EXPECT_EQ(bytes, before) << name << '.' << field.info->name;
        }
    }
}

TEST(prm_structures, have_fields_of_different_names)
{
    for (const auto& [name, structure] : registry()) {
        std::vector<std::string_view> names;
        for (const field_info& field : structure.info->fields) {
            names.push_back(field.name);
        }
        std::ranges::sort(names);
        EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end()) << name;
    }
}

} // namespace
} // namespace ucxl::prm
