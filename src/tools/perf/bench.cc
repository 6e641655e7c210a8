#include "bench.h"

#include "tools/common/failure.h"

namespace ucxl::perf
{

bench::bench(session& session, agreed_run run)
    : _session(session), _run(std::move(run)),
      _images{.source =
                  layout_image::create(session.context(), std::move(_run.layouts.send), _run.test_settings.allocate),
              .destination =
                  layout_image::create(session.context(), std::move(_run.layouts.receive), _run.test_settings.allocate)}
{
    for (const method_kind kind : _run.test_settings.chosen) {
        lane one{.driver = make_method(kind, session, _images, _run.test_settings), .test = nullptr};
        one.test = make_exchange(_run.test_settings, session, *one.driver);
        one.driver->source().fill(0);
        one.driver->publish();
        _lanes.push_back(std::move(one));
    }
}

void bench::fill(std::size_t index, std::uint64_t own)
{
    const lane& one = _lanes[index];
    one.driver->source().fill(own);
    one.driver->destination().clear();
    one.driver->publish();
}

void bench::check(std::size_t index, std::uint64_t expected)
{
    const lane& one = _lanes[index];
    one.driver->collect();
    const std::string wrong = one.driver->destination().check(expected, one.test->signal_of_first());
    if (!wrong.empty()) {
        tools::give_up("validation failed, method {}: {}", info_of(_run.test_settings.chosen[index]).name, wrong);
    }
}

} // namespace ucxl::perf
