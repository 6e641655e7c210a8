#include "translation_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "softhca/core/arena/record_table.h"

namespace ucxl::softhca
{

namespace
{

// Entry 0 is never allocated: 0 means none.
constexpr std::uint32_t first_entry = 1;

unsigned run_class(std::uint32_t count)
{
    return static_cast<unsigned>(std::bit_width(count - 1));
}

std::uint32_t fresh_entry(const translation_table& pool)
{
    return std::max(pool.fresh, first_entry);
}

std::uint32_t next_free(const translation_table& pool, std::uint32_t run)
{
    std::uint32_t next;
    std::memcpy(&next, pool.entries[run].data(), sizeof(next));
    return next;
}

void push_free(translation_table& pool, std::uint32_t run, unsigned size_class)
{
    std::memcpy(pool.entries[run].data(), &pool.free_heads[size_class], sizeof(std::uint32_t));
    pool.free_heads[size_class] = run;
}

// Takes a free run of that class, or splits a larger one; the rest stays free.
std::uint32_t pop_free(translation_table& pool, unsigned size_class)
{
    unsigned from = size_class;
    while (from < pool.free_heads.size() && pool.free_heads[from] == 0) {
        from++;
    }
    if (from == pool.free_heads.size()) {
        return 0;
    }
    const std::uint32_t run = pool.free_heads[from];
    pool.free_heads[from]   = next_free(pool, run);
    while (from > size_class) {
        from--;
        push_free(pool, run + (1U << from), from);
    }
    return run;
}

std::uint32_t take_fresh(translation_table& pool, unsigned size_class)
{
    const std::uint32_t run = fresh_entry(pool);
    if (max_translation_entries - run < std::size_t{1} << size_class) {
        return 0;
    }
    pool.fresh = run + (1U << size_class);
    return run;
}

std::uint32_t take(translation_table& pool, unsigned size_class)
{
    if (pool.free_heads[size_class] != 0) {
        return pop_free(pool, size_class);
    }
    const std::uint32_t run = take_fresh(pool, size_class);
    return run != 0 ? run : pop_free(pool, size_class);
}

void free_range(translation_table& pool, std::uint32_t begin, std::uint32_t end)
{
    while (begin < end) {
        const unsigned size_class = static_cast<unsigned>(std::bit_width(end - begin)) - 1;
        push_free(pool, begin, size_class);
        begin += 1U << size_class;
    }
}

} // namespace

std::uint32_t allocate_translations(arena& memory, std::uint32_t count)
{
    translation_table& pool = memory.translations;
    if (count == 0 || count >= max_translation_entries) {
        return 0;
    }
    const unsigned size_class = run_class(count);
    std::uint32_t run         = take(pool, size_class);
    if (run == 0) {
        // Adjacent free runs may make room together.
        rebuild_translation_pool(memory);
        run = take(pool, size_class);
    }
    if (run != 0) {
        std::memset(pool.entries[run].data(), 0, std::size_t{count} * sizeof(translation_entry));
    }
    return run;
}

void release_translations(arena& memory, std::uint32_t first, std::uint32_t count)
{
    if (count != 0) {
        push_free(memory.translations, first, run_class(count));
    }
}

void rebuild_translation_pool(arena& memory)
{
    translation_table& pool = memory.translations;
    std::uint32_t runs      = 0;
    for_each_live(memory.mkeys, [&](std::uint32_t index, const mkey_record& key) {
        if (key.entries_room != 0) {
            pool.order[runs++] = index;
        }
    });
    const auto records = std::span(memory.mkeys.records);
    std::ranges::sort(std::span(pool.order).first(runs), {},
                      [&](std::uint32_t index) { return records[index].entries_first; });

    pool.free_heads        = {};
    std::uint32_t position = first_entry;
    for (const std::uint32_t index : std::span(pool.order).first(runs)) {
        free_range(pool, position, records[index].entries_first);
        position = records[index].entries_first + std::bit_ceil(records[index].entries_room);
    }
    pool.fresh = position;
}

} // namespace ucxl::softhca
