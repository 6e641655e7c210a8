#include "map_failure.h"
#include "support/alloc_failure.h"
#include "support/must.h"
#include "sys/pages.h"
#include "ucs/window/foreign_memory.h"
#include "window_helpers.h"

#include <cstring>
#include <set>

#include <sys/mman.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

class file
{
public:
    explicit file(std::size_t length) : _fd(memfd_create("test", MFD_CLOEXEC))
    {
        EXPECT_EQ(0, ftruncate(_fd, static_cast<off_t>(length)));
    }
    ~file() { close(_fd); }
    int fd() const { return _fd; }

private:
    int _fd;
};

TEST(registry, finds_every_byte_of_a_window_and_nothing_else)
{
    const auto registry = private_registry(512 * mib);
    for (const std::uint64_t length :
         {std::uint64_t{1}, std::uint64_t{4095}, std::uint64_t{4096}, std::uint64_t{61440}, std::uint64_t{61441},
          32 * mib - 4096, 32 * mib - 4095, 64 * mib - 4096, 64 * mib - 4095, 130 * mib}) {
        SCOPED_TRACE(length);
        window* one   = must(registry->create(binding_of(length)));
        std::byte* at = one->address();
        EXPECT_EQ(one->length(), length);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % page_length(), 0u);
        EXPECT_EQ(registry->find(at, length), one);
        EXPECT_EQ(registry->find(at, 0), one);
        EXPECT_EQ(registry->find(at + length - 1, 1), one);
        EXPECT_EQ(registry->find(at + length / 2, length - length / 2), one);
        EXPECT_EQ(registry->find(at, length + 1), nullptr);
        EXPECT_EQ(registry->find(at + length - 1, 2), nullptr);
        EXPECT_EQ(registry->find(at + length, 1), nullptr);
        EXPECT_EQ(registry->find(at + 1, UINT64_MAX), nullptr);
        registry->destroy(one);
        EXPECT_EQ(registry->find(at, 1), nullptr);
        EXPECT_EQ(registry->find(at, 0), nullptr);
    }
    EXPECT_EQ(registry->num_live(), 0u);
}

class fake_foreign_memory final : public foreign_memory
{
public:
    fake_foreign_memory(const std::byte* start, std::uint64_t length) : _start(start), _length(length) {}

    bool touches(const void* address, std::uint64_t length) const override
    {
        const auto* const first = static_cast<const std::byte*>(address);
        return first < _start + _length && _start < first + length;
    }
    bool read(const void*, std::uint64_t, void*) const override { return false; }
    bool write(void*, std::uint64_t, const void*) const override { return false; }

private:
    const std::byte* _start;
    std::uint64_t _length;
};

TEST(registry, makes_no_window_at_addresses_of_foreign_memory)
{
    const auto registry = private_registry(512 * mib);
    const fake_foreign_memory other(registry->arena_base() + 64 * mib + 4096, 192 * mib);
    registry->set_foreign(other);
    std::vector<window*> made;
    for (const std::uint64_t length : {4096 * std::uint64_t{1}, 64 * mib - 4096, 100 * mib, 4096 * std::uint64_t{1}}) {
        made.push_back(must(registry->create(binding_of(length))));
        EXPECT_FALSE(other.touches(made.back()->address(), length)) << length;
    }
    EXPECT_FALSE(registry->create(binding_of(200 * mib)).has_value()) << "they are all that is left";
    for (window* const each : made) {
        registry->destroy(each);
    }
    EXPECT_FALSE(registry->create(binding_of(250 * mib)).has_value());
    registry->destroy(must(registry->create(binding_of(180 * mib))));
}

TEST(registry, knows_whether_a_range_holds_windows)
{
    const auto registry = private_registry(512 * mib);
    EXPECT_FALSE(registry->holds_windows(registry->arena_base(), 512 * mib));
    for (const std::uint64_t length : {std::uint64_t{100}, 130 * mib}) {
        window* const one   = must(registry->create(binding_of(length)));
        std::byte* const at = one->address();
        // Small windows have a chunk of 64 KiB, large ones slots of 64 MiB.
        const std::uint64_t taken = length < 65536 ? 65536 : (length / (64 * mib) + 1) * 64 * mib;
        EXPECT_TRUE(registry->holds_windows(at, 1));
        EXPECT_TRUE(registry->holds_windows(at + length - 1, 1));
        EXPECT_TRUE(registry->holds_windows(at - 1, 2));
        EXPECT_TRUE(registry->holds_windows(registry->arena_base() - 4096, 512 * mib + 8192));
        EXPECT_FALSE(registry->holds_windows(at - 1, 1));
        EXPECT_FALSE(registry->holds_windows(at + taken, 1));
        registry->destroy(one);
        EXPECT_FALSE(registry->holds_windows(at, 1));
    }
    EXPECT_FALSE(registry->holds_windows(&registry, 8));
}

TEST(registry, knows_the_edges_of_its_arena)
{
    const auto registry = private_registry(128 * mib);
    std::byte* base     = registry->arena_base();
    EXPECT_EQ(registry->arena_length(), 128 * mib);
    EXPECT_FALSE(registry->in_arena(base - 1));
    EXPECT_TRUE(registry->in_arena(base));
    EXPECT_TRUE(registry->in_arena(base + 128 * mib - 1));
    EXPECT_FALSE(registry->in_arena(base + 128 * mib));
    EXPECT_FALSE(registry->in_arena(nullptr));
    EXPECT_EQ(registry->find(base - 1, 1), nullptr);
    EXPECT_EQ(registry->find(base, 1), nullptr);
    EXPECT_EQ(registry->find(base + 128 * mib - 1, 1), nullptr);
    EXPECT_EQ(registry->find(nullptr, 1), nullptr);
}

TEST(registry, window_is_not_accessible_and_a_guard_page_follows)
{
    const auto registry = private_registry(64 * mib);
    std::set<std::byte*> guards;
    for (unsigned i = 0; i < 100; ++i) {
        window* one = must(registry->create(binding_of(61440))); // fills its chunk but for one page
        EXPECT_FALSE(is_readable(one->address()));
        EXPECT_FALSE(is_readable(one->address() + 61440));
        guards.insert(one->address() + 61440);
    }
    for (const std::byte* guard : guards) {
        EXPECT_EQ(registry->find(guard, 1), nullptr);
        EXPECT_EQ(registry->find(guard + 4095, 1), nullptr);
    }
}

TEST(registry, empty_window_has_an_address_of_its_own)
{
    const auto registry = private_registry(64 * mib);
    window* one         = must(registry->create(binding_of(0)));
    window* two         = must(registry->create(binding_of(0)));
    EXPECT_NE(one->address(), two->address());
    EXPECT_EQ(registry->find(one->address(), 0), one);
    EXPECT_EQ(registry->find(one->address(), 1), nullptr);
    registry->destroy(one);
    registry->destroy(two);
}

TEST(registry, binding_is_what_was_given)
{
    const auto registry = private_registry(64 * mib);
    std::byte memory[8];
    window* one = must(registry->create(binding_of(8, memory)));
    EXPECT_EQ(one->binding().bases.at(0), memory);
    EXPECT_EQ(one->binding().plan->packed_length(), 8u);
    registry->destroy(one);
}

TEST(registry, generations_are_unique)
{
    const auto registry = private_registry(64 * mib);
    std::set<std::uint64_t> seen{0};
    for (unsigned i = 0; i < 3000; ++i) {
        window* one = must(registry->create(binding_of(1)));
        EXPECT_TRUE(seen.insert(one->generation()).second);
        registry->destroy(one);
    }
}

TEST(registry, stale_address_stays_unknown_while_others_are_free)
{
    const auto registry    = private_registry(64 * mib);
    window* one            = must(registry->create(binding_of(1)));
    const std::byte* stale = one->address();
    registry->destroy(one);
    for (unsigned i = 1; i < 1024; ++i) {
        ASSERT_TRUE(registry->create(binding_of(1)).has_value());
        ASSERT_EQ(registry->find(stale, 1), nullptr);
    }
    ASSERT_EQ(must(registry->create(binding_of(1)))->address(), stale);
}

TEST(registry, wrong_number_of_bases_is_named)
{
    const auto registry = private_registry(64 * mib);
    auto binding        = binding_of(8);
    binding.bases.push_back(nullptr);
    const auto refused = registry->create(binding);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::invalid_param);
    EXPECT_NE(refused.error().message.find("num_bases is 2"), std::string::npos) << refused.error().message;
    EXPECT_EQ(registry->create({}).error().code, errc::invalid_param);
}

TEST(registry, window_longer_than_the_arena_exceeds_a_limit)
{
    const auto registry = private_registry(128 * mib);
    EXPECT_EQ(registry->create(binding_of(128 * mib)).error().code, errc::exceeds_limit);
    EXPECT_EQ(registry->create(binding_of(128 * mib - 4095)).error().code, errc::exceeds_limit);
    window* whole = registry->create(binding_of(128 * mib - 4096)).value_or(nullptr);
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(registry->create(binding_of(1)).error().code, errc::no_memory);
    registry->destroy(whole);
    EXPECT_TRUE(registry->create(binding_of(1)).has_value());
}

TEST(registry, rebinding_shows_other_memory)
{
    const auto registry = private_registry(64 * mib);
    std::byte first[8];
    std::byte second[8];
    window* one         = must(registry->create(binding_of(8, first)));
    std::byte* const at = one->address();
    ASSERT_TRUE(registry->rebind(*one, binding_of(8, second)).has_value());
    EXPECT_EQ(one->binding().bases.at(0), second);
    EXPECT_EQ(one->address(), at);
    EXPECT_EQ(registry->rebind(*one, binding_of(9, first)).error().code, errc::invalid_param);
    EXPECT_EQ(registry->rebind(*one, {}).error().code, errc::invalid_param);
    EXPECT_EQ(one->binding().bases.at(0), second);
    registry->destroy(one);
}

TEST(registry, identity_window_is_plain_memory_until_it_is_destroyed)
{
    const auto registry = private_registry(64 * mib);
    const file memory(16384);
    window* one          = must(registry->create(binding_of(5000)));
    volatile char* bytes = reinterpret_cast<char*>(one->address());
    EXPECT_FALSE(one->is_identity());
    ASSERT_TRUE(registry->map_identity(*one, memory.fd(), 4096).has_value());
    EXPECT_TRUE(one->is_identity());
    bytes[0]    = 'a';
    bytes[4999] = 'z';
    char read[2]{};
    EXPECT_EQ(1, pread(memory.fd(), &read[0], 1, 4096));
    EXPECT_EQ(1, pread(memory.fd(), &read[1], 1, 4096 + 4999));
    EXPECT_EQ(read[0], 'a');
    EXPECT_EQ(read[1], 'z');
    EXPECT_FALSE(is_readable(one->address() + 8192)) << "the guard page";
    const std::byte* stale = one->address();
    registry->destroy(one);
    EXPECT_FALSE(is_readable(stale));
}

TEST(registry, identity_is_refused_where_it_would_show_other_bytes)
{
    const auto registry = private_registry(64 * mib);
    const file memory(16384);
    const dim column[] = {{4, 16}};
    window* strided =
        must(registry->create({must(pack_plan::compile(must(make_strided({.length = 8}, column)))), {nullptr}}));
    window* empty = must(registry->create(binding_of(0)));
    window* plain = must(registry->create(binding_of(100)));
    EXPECT_EQ(registry->map_identity(*strided, memory.fd(), 0).error().code, errc::invalid_param);
    EXPECT_EQ(registry->map_identity(*empty, memory.fd(), 0).error().code, errc::invalid_param);
    EXPECT_EQ(registry->map_identity(*plain, memory.fd(), 100).error().code, errc::invalid_param) << "not whole pages";
    EXPECT_EQ(registry->map_identity(*plain, -1, 0).error().code, errc::invalid_param);
    EXPECT_FALSE(plain->is_identity());
    ASSERT_TRUE(registry->map_identity(*plain, memory.fd(), 0).has_value());
    std::byte other[100];
    EXPECT_EQ(registry->rebind(*plain, binding_of(100, other)).error().code, errc::invalid_param);
}

TEST(registry, failed_allocations_leave_it_as_it_was)
{
    const auto registry = private_registry(64 * mib);
    const auto binding  = binding_of(1);
    const auto failed   = fail_every_allocation([&] {
        try {
            auto made = registry->create(binding);
            if (made) {
                registry->destroy(*made);
                return true;
            }
            return made.error().code == errc::no_memory && registry->num_live() == 0;
        } catch (const std::bad_alloc&) {
            return registry->num_live() == 0;
        }
    });
    EXPECT_GT(failed, 3);
    EXPECT_EQ(registry->num_live(), 0u);
    for (unsigned i = 0; i < 1024; ++i) {
        ASSERT_TRUE(registry->create(binding).has_value()) << "no chunk was lost";
    }
}

TEST(registry, failed_allocations_while_it_is_made)
{
    const auto failed = fail_every_allocation([] {
        try {
            const auto made = window_registry::create_private(64 * mib);
            return made || made.error().code == errc::no_memory;
        } catch (const std::bad_alloc&) {
            return true;
        }
    });
    EXPECT_GT(failed, 3);
}

TEST(registry, range_that_cannot_be_cleared_is_not_used_again)
{
    const auto registry = private_registry(64 * mib);
    const file memory(4096);
    window* one            = must(registry->create(binding_of(1)));
    const std::byte* stale = one->address();
    ASSERT_TRUE(registry->map_identity(*one, memory.fd(), 0).has_value());
    fail_map_after(0);
    registry->destroy(one);
    fail_map_after(-1);
    EXPECT_EQ(registry->num_live(), 0u);
    EXPECT_EQ(registry->find(stale, 1), nullptr);
    for (unsigned i = 1; i < 1024; ++i) {
        ASSERT_NE(must(registry->create(binding_of(1)))->address(), stale);
    }
    EXPECT_EQ(registry->create(binding_of(1)).error().code, errc::no_memory);
}

TEST(registry, failed_identity_mapping_is_reported)
{
    const auto registry = private_registry(64 * mib);
    const file memory(4096);
    window* one = must(registry->create(binding_of(1)));
    fail_map_after(0);
    EXPECT_EQ(registry->map_identity(*one, memory.fd(), 0).error().code, errc::no_memory);
    fail_map_after(-1);
    EXPECT_FALSE(one->is_identity());
    registry->destroy(one);
}

// In a program of its own, where no other test has used it.
TEST(registry_death_test, that_of_the_process_reserves_nothing_before_the_first_window)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            window_registry& registry = window_registry::instance();
            bool is_right             = registry.arena_length() == 0 && !registry.in_arena(nullptr) &&
                            !registry.in_arena(&registry) && registry.find(&registry, 1) == nullptr;
            window* one = must(registry.create(binding_of(1)));
            is_right    = is_right && registry.in_arena(one->address());
            registry.destroy(one);
            registry.destroy(nullptr);
            _exit(is_right && registry.num_live() == 0 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

} // namespace
