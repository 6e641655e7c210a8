#include "window_of_two.h"

#include "abi/ucx.h"
#include "support/must.h"
#include "ucs/layout/build.h"
#include "ucs/pack/pack_plan.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace ucxl::test
{

namespace
{

constexpr std::uint64_t word = sizeof(std::uint64_t);

// Few addresses for windows: each place in their table is a step of whoever looks for all windows.
[[maybe_unused]] const bool is_prepared =
    setenv("UCX_LAYOUT_ARENA_SIZE", "256m", 1) == 0 && must(abi::attach(nullptr)) != nullptr;

std::byte* block(const region& memory, std::uint64_t source, std::uint64_t place)
{
    return memory.start() + source * (two_pages / 2) + place * word;
}

window_binding binding(const region& memory, std::uint64_t place)
{
    static const pack_plan_ptr plan = [] {
        const std::array<iov_part, 2> parts{iov_part{.source = 0, .item = {.length = word}},
                                            iov_part{.source = 1, .item = {.length = word}}};
        return must(pack_plan::compile(must(make_iov(parts))));
    }();
    return {.plan = plan, .bases = {block(memory, 0, place), block(memory, 1, place)}};
}

} // namespace

void number_places(const region& memory)
{
    for (std::uint64_t place = 0; place < num_places; ++place) {
        for (std::uint64_t source = 0; source < 2; ++source) {
            std::memcpy(block(memory, source, place), &place, word);
        }
    }
}

window* make_window_of_two(const region& memory, std::uint64_t place)
{
    return must(window_registry::instance().create(binding(memory, place)));
}

void bind_window_of_two(window& changed, const region& memory, std::uint64_t place)
{
    must(window_registry::instance().rebind(changed, binding(memory, place)));
}

bool record_shows(const shm_key& key, const region& memory)
{
    struct {
        shm_record_header header;
        std::array<shm_place, 2> places;
    } record;
    return key.access != shm_access::none &&
           pread(key.records_fd, &record, sizeof(record), static_cast<off_t>(key.record_offset)) == sizeof(record) &&
           record.header.generation == key.generation &&
           (record.places[0].inode == memory.inode() || record.places[1].inode == memory.inode());
}

} // namespace ucxl::test
