// Reader sections (src/ucs/window/reader_section.h), the real code, in orders of its steps that random numbers choose,
// with stores that stay in the buffers of processors: threads that open their first section at any time, nested
// sections, and two threads that take objects away. The properties are those of test/models/reader_section.pml.
#include "orders.h"
#include "scheduler.h"

#include "ucs/window/reader_section.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace ucxl::test
{
namespace
{

constexpr pid_t process           = 100;
constexpr std::size_t num_objects = 3;

struct object {
    bool is_freed = false;
};

class one_order : public checked_order
{
public:
    explicit one_order(std::uint64_t seed) : _random(seed), _all(seed + 1, scheduler::runs::threads)
    {
        detail::has_several_readers.store(false); // as in a new process, of which no thread has a section
        for (std::size_t each = 0; each < num_objects; ++each) {
            _published[each].store(&_objects[each]);
        }
        const std::uint64_t num_readers = 1 + _random.below(2);
        for (std::uint64_t reader = 0; reader < num_readers; ++reader) {
            _all.add(process, [this] { read(3 + _random.below(4)); });
        }
        // One that never reads is not in the list of readers.
        _all.add(process, [this] {
            read(_random.below(2));
            take_away(0);
            read(_random.below(2));
            take_away(1);
        });
        if (_random.one_in(2)) {
            _all.add(process, [this] { take_away(2); });
        }
    }

    const char* run()
    {
        note(_all.run());
        return fault();
    }
    unsigned num_found() const { return _num_found; }

private:
    void read(std::uint64_t count)
    {
        for (std::uint64_t turn = 0; turn < count; ++turn) {
            const reader_section section;
            look();
            if (_random.one_in(3)) {
                {
                    const reader_section nested;
                    look();
                }
                look();
            }
        }
    }

    void look()
    {
        const object* const found = _published[_random.below(num_objects)].load();
        if (found == nullptr) {
            return;
        }
        ++_num_found;
        require(!found->is_freed, "an object is found that was freed");
        scheduler::current()->step();
        require(!found->is_freed, "an object is freed under a reader");
    }

    void take_away(std::size_t each)
    {
        object* const taken = _published[each].exchange(nullptr);
        wait_for_readers();
        taken->is_freed = true;
    }

    random _random;
    scheduler _all;
    std::array<object, num_objects> _objects{};
    std::array<std::atomic<object*>, num_objects> _published{};
    std::atomic<unsigned> _num_found{0};
};

TEST(schedules, of_reader_sections_free_nothing_that_is_read)
{
    try_orders<one_order>(50'000, 1, "readers find seldom something",
                          [](const one_order& order) { return order.num_found(); });
}

} // namespace
} // namespace ucxl::test
