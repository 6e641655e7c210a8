#include "plan_table.h"

#include "sys/fork.h"

namespace ucxl
{

// Never destroyed: destructors that run later may end plans.
plan_table& plan_table::instance()
{
    static plan_table& table = *[] {
        auto* created = new plan_table;
        hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
        return created;
    }();
    return table;
}

// Other folders take it under locks of theirs, so fork takes it after these: it is made when the library is loaded.
[[gnu::constructor(200)]] static void make_plan_table_at_load()
{
    plan_table::instance();
}

pack_plan_ptr plan_table::find(const layout& wanted)
{
    pack_plan_ptr similar; // outlives the lock: to end a plan takes it
    {
        const std::lock_guard guard(_lock);
        const auto found = _living.lower_bound(wanted.hash());
        if (found != _living.end() && found->first->hash() == wanted.hash()) {
            similar = found->second.lock();
        }
    }
    // Comparing takes long for long layouts.
    return similar != nullptr && *similar->source_layout() == wanted ? similar : nullptr;
}

pack_plan_ptr plan_table::share(std::shared_ptr<pack_plan> compiled)
{
    const layout* const content = compiled->source_layout().get();
    const std::lock_guard guard(_lock);
    for (auto [at, end] = _living.equal_range(content); at != end; ++at) {
        // Null for one that is ending.
        if (pack_plan_ptr known = at->second.lock()) {
            return known;
        }
    }
    compiled->_place = _living.emplace(content, compiled);
    return compiled;
}

void plan_table::remove(plans_by_content::iterator place) noexcept
{
    const std::lock_guard guard(_lock);
    _living.erase(place);
}

} // namespace ucxl
