// UCX's caches of registrations hear of the end of windows that were registered, and of no others.
#include "support/unmap_events.h"
#include "window_helpers.h"

#include <sys/mman.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

class registrations : public testing::Test
{
protected:
    static constexpr std::uint64_t chunk = std::uint64_t{1} << slot_table::min_chunk_shift;

    window& make(std::uint64_t length = 1) { return *must(_registry->create(binding_of(length))); }
    window_registry& registry() { return *_registry; }
    std::size_t events() const { return _events.count(); }

private:
    std::unique_ptr<window_registry> _registry = private_registry(64 * mib);
    unmap_events _events{_registry->arena_base(), _registry->arena_length()};
};

TEST_F(registrations, windows_without_one_end_without_an_event)
{
    for (int i = 0; i < 2000; ++i) { // each chunk of the arena is used again
        registry().destroy(&make());
    }
    EXPECT_EQ(events(), 0u);
}

TEST_F(registrations, the_end_of_a_window_with_one_is_an_event)
{
    window& registered = make();
    registry().note_registration(registered.address(), 1);
    registry().note_registration(registered.address(), 1);
    EXPECT_EQ(events(), 0u) << "the registration is good until the window ends";
    registry().destroy(&registered);
    EXPECT_EQ(events(), 1u);
    for (int i = 0; i < 2000; ++i) { // also at the address of that window
        registry().destroy(&make());
    }
    EXPECT_EQ(events(), 1u);
}

TEST_F(registrations, one_of_the_middle_of_a_window_counts)
{
    window& long_one = make(10 * chunk);
    registry().note_registration(long_one.address() + 5 * chunk + 1, 1);
    registry().destroy(&long_one);
    EXPECT_EQ(events(), 1u);
}

TEST_F(registrations, one_over_several_windows_is_of_each)
{
    window* const windows[] = {&make(), &make(), &make(), &make()};
    ASSERT_EQ(windows[2]->address(), windows[0]->address() + 2 * chunk);
    registry().note_registration(windows[0]->address(), 2 * chunk + 1);
    EXPECT_EQ(events(), 0u);
    for (window* const each : windows) {
        registry().destroy(each);
    }
    EXPECT_EQ(events(), 3u);
}

TEST_F(registrations, one_where_no_window_is_is_retired_at_once)
{
    window& ended         = make();
    std::byte* const base = ended.address();
    registry().note_registration(base, chunk + 1); // one byte too many
    EXPECT_EQ(events(), 1u);
    registry().destroy(&ended);
    EXPECT_EQ(events(), 2u);
    registry().note_registration(base, 1);
    EXPECT_EQ(events(), 3u);
}

TEST_F(registrations, one_outside_of_the_arena_is_none_of_its_business)
{
    std::byte host[64]{};
    const unmap_events of_host(host, sizeof(host));
    registry().note_registration(host, sizeof(host));
    EXPECT_EQ(of_host.count(), 0u);
    EXPECT_EQ(events(), 0u);
}

// Kept windows are not published, but UCX may have what was registered before.
TEST_F(registrations, windows_keep_them_while_they_are_not_published)
{
    window& kept = make();
    registry().note_registration(kept.address(), 1);
    registry().unpublish(kept);
    registry().publish(kept);
    registry().destroy(&kept);
    EXPECT_EQ(events(), 1u);
}

} // namespace
