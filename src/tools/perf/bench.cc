#include "bench.h"

#include "method_imported.h"
#include "tools/common/failure.h"

namespace ucxl::perf
{

bench::bench(session& session, agreed_run run, memory_owner* owner)
    : _session(session), _run(std::move(run)), _images(make_images(session.context(), _run))
{
    for (const method_kind kind : _run.test_settings.chosen) {
        lane one;
        one.driver = owner != nullptr ? make_imported_method(session, *owner, _lanes.size(), _images)
                                      : make_method(kind, session, _images, _run.test_settings);
        if (_run.test_settings.live_data) {
            one.driver->work_with_data();
        }
        one.test = make_exchange(_run.test_settings, session, *one.driver);
        one.driver->fill(0);
        _lanes.push_back(std::move(one));
    }
}

void bench::fill(std::size_t index, std::uint64_t own)
{
    _lanes[index].driver->fill(own);
}

void bench::check(std::size_t index, std::uint64_t expected)
{
    const lane& one         = _lanes[index];
    const std::string wrong = one.driver->check(expected, one.test->signal_of_first());
    if (!wrong.empty()) {
        tools::give_up("validation failed, method {}: {}", info_of(_run.test_settings.chosen[index]).name, wrong);
    }
}

} // namespace ucxl::perf
