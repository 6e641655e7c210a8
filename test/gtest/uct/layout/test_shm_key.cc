// Remote keys of lay_shm and their records as bytes: what is packed comes back, and what contradicts itself does not.
#include "support/forked_process.h"
#include "support/must.h"
#include "support/property.h"
#include "support/random.h"
#include "support/random_spec.h"
#include "support/spec.h"
#include "sys/memory_file.h"
#include "uct/layout/peer/key.h"
#include "uct/layout/peer/record_file.h"

#include <cstring>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

layout_ptr column()
{
    const dim rows[] = {{10, 64}};
    return must(make_strided({.length = 16}, rows));
}

struct packed_window {
    shm_key key{};
    std::vector<std::byte> record;
};

shm_place place_at(std::int64_t base, std::uint64_t memory_length)
{
    return {.base = base, .inode = 78, .file_offset = 0, .length = memory_length, .fd = 4, .device = 27};
}

packed_window pack(const layout_ptr& of, std::span<const shm_place> places)
{
    packed_window made;
    made.key = {.magic         = shm_key::form,
                .access        = shm_access::mapping,
                .owner         = process_identity::own(),
                .address       = 0x100000,
                .length        = of->packed_length(),
                .generation    = 5,
                .records_inode = 77,
                .record_offset = 64,
                .record_length = static_cast<std::uint32_t>(record_length(*of)),
                .records_fd    = 3};
    made.record.resize(record_length(*of));
    const shm_record_header header{5, 0, of->num_sources(), 0};
    EXPECT_TRUE(pack_record(header, places, *of, made.record).has_value());
    return made;
}

packed_window pack(const layout_ptr& of, std::uint64_t memory_length, std::int64_t base)
{
    const shm_place place = place_at(base, memory_length);
    return pack(of, {&place, 1});
}

TEST(shm_key, comes_back_with_its_record)
{
    const auto draw = [](test::random& from) { return random_spec(from, {.num_sources = 3}); };
    for_random_layouts(300, draw, [](test::random&, const spec& described) {
        const auto of = must(build(described));
        std::vector<shm_place> places;
        for (std::uint32_t source = 0; source < of->num_sources(); ++source) {
            const auto& bounds = of->bounds(source);
            places.push_back(bounds.true_ub > bounds.true_lb
                                 ? place_at(100 - bounds.true_lb, std::uint64_t{1} << (40 + source))
                                 : shm_place{});
        }
        const auto packed = pack(of, places);
        ASSERT_TRUE(check_key(packed.key).has_value());
        const auto record = unpack_record(packed.record, packed.key);
        ASSERT_TRUE(record.has_value()) << record.error().message;
        EXPECT_TRUE(*record->layout == *of);
        ASSERT_EQ(record->places.size(), places.size());
        EXPECT_EQ(0, std::memcmp(record->places.data(), places.data(), places.size() * sizeof(shm_place)));
    });
}

TEST(shm_key, numbers_out_of_range_are_refused)
{
    const auto right = pack(column(), 4096, 0).key;
    ASSERT_TRUE(check_key(right).has_value());
    const std::function<void(shm_key&)> changes[] = {
        [](shm_key& key) { key.magic = 0; },
        [](shm_key& key) { ++key.magic; },
        [](shm_key& key) { key.access = shm_access::none; },
        [](shm_key& key) { key.length = limits::max_length + 1; },
        [](shm_key& key) { key.address = UINT64_MAX; },
        [](shm_key& key) { key.generation = 0; },
        [](shm_key& key) { key.record_length = 8; },
        [](shm_key& key) { key.record_length = max_record_length + 1; },
        [](shm_key& key) { key.record_offset = UINT64_MAX; },
        [](shm_key& key) { key.records_fd = -1; },
    };
    for (const auto& change : changes) {
        auto wrong = right;
        change(wrong);
        EXPECT_FALSE(check_key(wrong).has_value()) << "change " << &change - changes;
    }
}

// The last byte of a source decides, on both sides of the limit.
TEST(shm_key, layouts_must_stay_inside_the_memory)
{
    const auto of       = column(); // 9 * 64 + 16 bytes
    const auto accepted = [&](std::uint64_t memory_length, std::int64_t offset) {
        const auto packed = pack(of, memory_length, offset);
        return unpack_record(packed.record, packed.key).has_value();
    };
    EXPECT_TRUE(accepted(592, 0));
    EXPECT_FALSE(accepted(591, 0));
    EXPECT_FALSE(accepted(592, 1));
    EXPECT_FALSE(accepted(592, -1));
    EXPECT_TRUE(accepted(4096, 4096 - 592));
    EXPECT_FALSE(accepted(4096, 4096 - 591));
    EXPECT_FALSE(accepted(4096, INT64_MIN));
    EXPECT_FALSE(accepted(4096, INT64_MAX));
    EXPECT_FALSE(accepted(UINT64_MAX, 0));
}

TEST(shm_key, places_out_of_range_are_refused)
{
    const auto of       = column();
    const auto accepted = [&](const std::function<void(shm_place&)>& change, shm_access access) {
        shm_place place = place_at(0, 4096);
        change(place);
        return check_places(*of, {&place, 1}, access).has_value();
    };
    EXPECT_TRUE(accepted([](shm_place&) {}, shm_access::mapping));
    const std::function<void(shm_place&)> wrong[] = {
        [](shm_place& place) { place.fd = -1; },
        [](shm_place& place) { place.length = 0; },
        [](shm_place& place) { place.length = 2 * limits::max_length + 1; },
        [](shm_place& place) { place.file_offset = 1; },
        [](shm_place& place) { place.file_offset = UINT64_MAX - 4095; },
        [](shm_place& place) { place = {}; },
    };
    for (const auto& change : wrong) {
        EXPECT_FALSE(accepted(change, shm_access::mapping)) << "change " << &change - wrong;
    }
    EXPECT_FALSE(accepted([](shm_place&) {}, shm_access::process)) << "the kernel copies, but the place names a file";
    EXPECT_TRUE(accepted([](shm_place& place) { place = {}; }, shm_access::process));
    const auto with_device = [](shm_place& place) {
        place        = {};
        place.device = 27;
    };
    EXPECT_FALSE(accepted(with_device, shm_access::process));
}

TEST(shm_key, records_that_are_not_of_the_key_are_refused)
{
    const auto right = pack(column(), 4096, 0);
    auto key         = right.key;
    ++key.generation;
    EXPECT_FALSE(unpack_record(right.record, key).has_value());
    key = right.key;
    ++key.length;
    EXPECT_FALSE(unpack_record(right.record, key).has_value());
    for (std::size_t length = 0; length < right.record.size(); ++length) {
        EXPECT_FALSE(unpack_record(std::span(right.record).first(length), right.key).has_value()) << length;
    }
    auto longer = right.record;
    longer.push_back({});
    EXPECT_FALSE(unpack_record(longer, right.key).has_value());
    for (const std::uint32_t num_sources : {0u, 2u, UINT32_MAX}) {
        auto other = right.record;
        std::memcpy(other.data() + offsetof(shm_record_header, num_sources), &num_sources, sizeof(num_sources));
        EXPECT_FALSE(unpack_record(other, right.key).has_value()) << num_sources;
    }
}

std::vector<std::byte> read_at(const record_file& file, std::uint64_t offset, std::size_t length)
{
    std::vector<std::byte> bytes(length);
    EXPECT_EQ(pread(file.fd(), bytes.data(), length, static_cast<off_t>(offset)), static_cast<ssize_t>(length));
    return bytes;
}

// Against a list of what has to be there, with sizes from one unit to beyond the growth of the file.
TEST(record_file, keeps_every_record_until_it_is_erased)
{
    test::random from(run_seed());
    auto file = must(record_file::create());
    std::map<std::uint64_t, std::vector<std::byte>> wanted;
    std::uint64_t highest = 0;
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (int turn = 0; turn < 3000; ++turn) {
        if (wanted.size() > 40 || (!wanted.empty() && from.one_in(2))) {
            const auto victim = std::next(wanted.begin(), static_cast<std::ptrdiff_t>(from.below(wanted.size())));
            file->erase(victim->first, victim->second.size());
            EXPECT_EQ(read_at(*file, victim->first, 8), std::vector<std::byte>(8)) << "the generation is erased";
            wanted.erase(victim);
            continue;
        }
        std::vector<std::byte> record(8 + from.below(from.one_in(20) ? 200000 : 500));
        for (auto& each : record) {
            each = static_cast<std::byte>(1 + from.below(255));
        }
        const auto at = file->add(record);
        ASSERT_TRUE(at.has_value());
        EXPECT_TRUE(wanted.emplace(*at, record).second);
        highest = std::max(highest, *at + record.size());
        for (const auto& [offset, bytes] : wanted) {
            ASSERT_EQ(read_at(*file, offset, bytes.size()), bytes) << "seed " << run_seed() << " turn " << turn;
        }
    }
    EXPECT_LT(highest, 41u * 200512u) << "space that was released is used again";
}

// As in a program that closes all descriptors, also those that it did not open.
TEST(record_file, writes_to_no_other_file_that_gets_its_descriptor)
{
    auto file = must(record_file::create());
    const std::vector<std::byte> record(64, std::byte{1}), other_bytes(4096, std::byte{2});
    const auto at = must(file->add(record));
    const owned_fd same(fcntl(file->fd(), F_DUPFD_CLOEXEC, 0));
    const owned_fd other = must(make_memory_file("other", 4096, 0));
    ASSERT_TRUE(write_all(other, 0, other_bytes));
    const int fd = file->fd();
    EXPECT_TRUE(file->has_descriptor());
    ASSERT_EQ(dup3(other.get(), fd, O_CLOEXEC), fd);
    EXPECT_FALSE(file->has_descriptor());
    const auto another = must(file->add(record));
    file->change(another + 8, std::span(other_bytes).first(8));
    file->erase(at, record.size());
    EXPECT_FALSE(file->add(std::vector<std::byte>(1 << 20)).has_value()) << "the file is not made longer";
    std::uint64_t words[2] = {1, 1};
    ASSERT_TRUE(read_all(same, at, std::as_writable_bytes(std::span(words))));
    EXPECT_EQ(words[0], 0u) << "the generation is erased";
    ASSERT_TRUE(read_all(same, another, std::as_writable_bytes(std::span(words))));
    EXPECT_EQ(words[1], 0x0202020202020202u);
    file.reset();
    std::vector<std::byte> bytes(4096);
    ASSERT_TRUE(read_all(owned_fd(fd), 0, bytes)) << "it stays open";
    EXPECT_EQ(bytes, other_bytes);
}

} // namespace
