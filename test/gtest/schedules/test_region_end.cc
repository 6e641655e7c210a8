// The end of a region of shared memory under windows, the real code (src/ucs/window, src/uct/layout/peer/export.cc), in
// orders of its steps that random numbers choose: one thread gives the memory back, one makes a window over it and
// exports it, one binds a window that peers know to it. The properties are those of test/models/region_end.pml.
#include "orders.h"
#include "scheduler.h"
#include "window_of_two.h"

#include "support/must.h"
#include "ucs/window/window.h"
#include "uct/layout/peer/export.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace ucxl::test
{
namespace
{

constexpr std::uint64_t most_steps_later = 200;

class one_order : public checked_order
{
public:
    explicit one_order(std::uint64_t seed) : _random(seed), _all(seed + 1, scheduler::runs::threads)
    {
        region_table::instance().add(_ended).value();
        region_table::instance().add(_kept).value();
        _known        = make_window_of_two(*_kept, 0);
        _key_of_known = export_window(_known->address());
        _binds_to     = _random.one_in(4) ? _kept : _ended;
        add([this] { give_back(); });
        add([this] { make(); });
        add([this] { bind(); });
    }
    ~one_order()
    {
        window_registry::instance().destroy(_made);
        window_registry::instance().destroy(_known);
        region_table::instance().remove(*_ended);
        region_table::instance().remove(*_kept);
    }
    one_order(const one_order&)            = delete;
    one_order& operator=(const one_order&) = delete;

    const char* run()
    {
        note(_all.run());
        require_no_record();
        require(_binds_to != _kept || record_shows(_key_of_known, *_kept), "a window over other memory has no record");
        return fault();
    }
    bool had_record() const { return _key_of_made.access != shm_access::none; }

private:
    void require_no_record()
    {
        require(!record_shows(_key_of_known, *_ended), "the record of a window that was bound to the region stays");
        require(!record_shows(_key_of_made, *_ended), "the record of a new window over the region stays");
    }

    // The shortest is not always the first to end.
    void add(std::function<void()> body)
    {
        _all.add(own_pid(), [this, pause = _random.below(most_steps_later), body = std::move(body)] {
            for (std::uint64_t step = 0; step < pause; ++step) {
                scheduler::current()->step();
            }
            body();
        });
    }

    // As ucp_layout_memory_destroy().
    void give_back()
    {
        region_table::instance().remove(*_ended);
        for (const std::byte* const address : window_registry::instance().windows_over(*_ended)) {
            withdraw_exported_window(address);
        }
        require_no_record();
    }

    void make()
    {
        _made        = make_window_of_two(*_ended, 0);
        _key_of_made = export_window(_made->address());
    }

    void bind()
    {
        bind_window_of_two(*_known, *_binds_to, 1);
        update_exported_window(_known->address());
    }

    random _random;
    scheduler _all;
    const region_ptr _kept  = must(region::allocate(two_pages, {.huge_pages = huge_pages_option::never}));
    const region_ptr _ended = must(region::allocate(two_pages, {.huge_pages = huge_pages_option::never}));
    region_ptr _binds_to;
    window* _known = nullptr;
    window* _made  = nullptr;
    shm_key _key_of_known{}, _key_of_made{};
};

TEST(schedules, of_the_end_of_a_region_leave_no_record_of_it)
{
    try_orders<one_order>(1'000, 0.1, "the region ends nearly always before a window is made",
                          [](const one_order& order) { return order.had_record(); });
}

} // namespace
} // namespace ucxl::test
