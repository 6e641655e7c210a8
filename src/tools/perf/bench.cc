#include "bench.h"

#include "tools/common/failure.h"

namespace ucxl::perf
{

bench::bench(session& with, agreed_run run)
    : _with(with), _run(std::move(run)),
      _images{.source      = layout_image::create(with.context(), std::move(_run.layouts.send), _run.what.allocate),
              .destination = layout_image::create(with.context(), std::move(_run.layouts.receive), _run.what.allocate)}
{
    for (const method_kind kind : _run.what.chosen) {
        lane one{.how = make_method(kind, with, _images, _run.what), .test = nullptr};
        one.test = make_exchange(_run.what, with, *one.how);
        one.how->source().fill(0);
        _lanes.push_back(std::move(one));
    }
}

void bench::fill(std::size_t index, std::uint64_t own)
{
    const lane& one = _lanes[index];
    one.how->source().fill(own);
    one.how->destination().clear();
}

void bench::check(std::size_t index, std::uint64_t expected)
{
    const lane& one         = _lanes[index];
    const std::string wrong = one.how->destination().check(expected, one.test->signal_of_first());
    if (!wrong.empty()) {
        tools::give_up("validation failed, method {}: {}", info_of(_run.what.chosen[index]).name, wrong);
    }
}

} // namespace ucxl::perf
