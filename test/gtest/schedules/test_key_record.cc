// The record of a remote key, the real code of both sides (src/uct/layout/peer/export.cc and import.cc), in orders of
// its steps that random numbers choose: the owner binds a window anew and ends it, and another window gets the place of
// its record; a peer imports the window and moves bytes through it. The properties are those of
// test/models/key_record.pml.
#include "orders.h"
#include "scheduler.h"
#include "window_of_two.h"

#include "support/must.h"
#include "ucs/window/window.h"
#include "uct/layout/peer/export.h"
#include "uct/layout/peer/import.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace ucxl::test
{
namespace
{

constexpr std::uint64_t most_rebindings = 2, place_of_other = num_places - 1;
constexpr unsigned num_operations = 3;

const region& memory()
{
    static const region_ptr made = [] {
        auto allocated = must(region::allocate(two_pages, {.huge_pages = huge_pages_option::never}));
        region_table::instance().add(allocated).value();
        number_places(*allocated);
        return allocated;
    }();
    return *made;
}

class one_order : public checked_order
{
public:
    explicit one_order(std::uint64_t seed) : _random(seed), _all(seed + 1, scheduler::runs::threads)
    {
        _window = make_window_of_two(memory(), 0);
        _key    = export_window(_window->address());
        // Makes what keeps imports outside of the order: two threads that make it at once would wait for each other by
        // a lock of the compiler, of which the scheduler does not know.
        drop_idle_imports();
        _all.add(own_pid(), [this] { own(); });
        for (std::uint64_t peers = 1 + _random.below(2); peers > 0; --peers) { // threads of one
            _all.add(own_pid(), [this] { use(); });
        }
    }
    ~one_order()
    {
        drop_idle_imports();
        window_registry::instance().destroy(_window);
        window_registry::instance().destroy(_other);
    }
    one_order(const one_order&)            = delete;
    one_order& operator=(const one_order&) = delete;

    const char* run()
    {
        note(_all.run());
        return fault();
    }
    bool was_used() const { return _was_used; }

private:
    void own()
    {
        for (std::uint64_t place = 1, last = _random.below(most_rebindings + 1); place <= last; ++place) {
            _is_changing = true;
            bind_window_of_two(*_window, memory(), place);
            update_exported_window(_window->address());
            _bound       = place;
            _is_changing = false;
        }
        if (_random.one_in(3)) {
            return;
        }
        _is_changing = true;
        window_registry::instance().destroy(std::exchange(_window, nullptr));
        _is_ended = true;
        _other    = make_window_of_two(memory(), place_of_other);
        static_cast<void>(export_window(_other->address()));
    }

    void use()
    {
        const std::uint64_t bound = _bound;
        const bool was_changing   = _is_changing;
        auto imported             = import_window(_key);
        if (!imported) {
            require(was_changing || _is_changing || _bound != bound, "a window that does not change is not imported");
            return;
        }
        for (unsigned operation = 0; operation < num_operations; ++operation) {
            use_once(**imported);
        }
        release_window(*imported);
    }

    void use_once(const imported_window& imported)
    {
        const std::uint64_t bound = _bound;
        const bool was_ended = _is_ended, was_changing = _is_changing;
        if (!is_usable_now(imported)) {
            require(was_changing || _is_changing || _bound != bound, "a window that does not change is not usable");
            return;
        }
        require(!was_ended, "a window is used after its end");
        const reader_section section;
        const mapped_sources& sources = sources_of(imported);
        const std::uint64_t first     = number_at(sources.bases[0]);
        scheduler::current()->step();
        const std::uint64_t second = number_at(sources.bases[1]);
        require(first == second && first != place_of_other, "the places are not of one binding");
        require(first >= bound, "the places are of an earlier binding");
        _was_used = true;
    }

    static std::uint64_t number_at(const std::byte* address)
    {
        std::uint64_t number;
        std::memcpy(&number, address, sizeof(number));
        return number;
    }

    random _random;
    scheduler _all;
    window* _window = nullptr;
    window* _other  = nullptr;
    shm_key _key{};
    std::uint64_t _bound = 0; // the last one that was done
    bool _is_changing = false, _is_ended = false, _was_used = false;
};

TEST(schedules, of_the_record_of_a_key_lead_to_one_binding)
{
    try_orders<one_order>(1'000, 0.25, "the peer uses the window seldom",
                          [](const one_order& order) { return order.was_used(); });
}

} // namespace
} // namespace ucxl::test
