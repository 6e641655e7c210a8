#include "client.h"

#include "bench.h"
#include "mem_map.h"
#include "report.h"
#include "tools/common/failure.h"
#include "tools/common/load_layout.h"

#include <algorithm>
#include <chrono>

namespace ucxl::perf
{

using tools::give_up;
using clock = std::chrono::steady_clock;

namespace
{

constexpr std::uint64_t default_warmup   = 10000;
constexpr double warmup_seconds          = 0.05;
constexpr double report_interval_seconds = 1;
constexpr std::uint64_t in_flight_bytes  = std::uint64_t{64} << 20;
constexpr std::uint64_t max_automatic    = 1000000; // messages per method, as in ucx_perftest
constexpr unsigned validated_before      = 2;
constexpr unsigned validated_after       = 1;

double since(clock::time_point begin)
{
    return std::chrono::duration<double>(clock::now() - begin).count();
}

// One size: set up with the server, then rounds in which the methods take turns.
class client_run
{
public:
    client_run(const options& given, session& with, reporter& report) : _given(given), _with(with), _report(report) {}

    void run(agreed_run agreed);

private:
    struct lane {
        report_row row;
        std::uint64_t per_round    = 1;
        clock::time_point last_row = clock::now();
    };

    void agree(const agreed_run& agreed);
    void warm_up(std::size_t index);
    double measure(std::size_t index, std::uint64_t count, method_statistics& into);
    void measure_rounds();
    void validate(std::size_t index, unsigned messages);
    void order(command_kind kind, std::size_t index, std::uint64_t count, std::uint64_t number = 0);
    double ways() const { return info_of(_bench->what().test).ping_pong ? 2 : 1; }

    const options& _given;
    session& _with;
    reporter& _report;
    std::unique_ptr<bench> _bench;
    std::vector<lane> _lanes;
    std::uint64_t _next_number = 1;
};

void client_run::agree(const agreed_run& agreed)
{
    _with.peer().send(oob_kind::setup, encode(agreed.what, agreed.layouts));
    _with.peer().receive(oob_kind::status, 0);
}

void client_run::order(command_kind kind, std::size_t index, std::uint64_t count, std::uint64_t number)
{
    _with.peer().send_value(
        oob_kind::command,
        command{.kind = kind, .method = static_cast<std::uint32_t>(index), .count = count, .number = number});
}

// Returns seconds per message.
double client_run::measure(std::size_t index, std::uint64_t count, method_statistics& into)
{
    exchange& test = _bench->exchange_of(index);
    test.prepare_client(count);
    order(command_kind::measure, index, count);
    _with.peer().receive(oob_kind::status, 0);
    into.begin();
    test.run_client(count, into);
    into.end(count);
    _with.barrier();
    return into.last_round() * ways();
}

void client_run::validate(std::size_t index, unsigned messages)
{
    exchange& test         = _bench->exchange_of(index);
    const test_info& about = info_of(_bench->what().test);
    for (unsigned i = 0; i < messages; ++i) {
        const std::uint64_t number = _next_number++;
        method_statistics unused(1);
        _bench->fill(index, pattern_of_client(number));
        order(command_kind::validate, index, 1, number);
        // Everything is filled on both sides before the first byte moves.
        _with.barrier();
        test.prepare_client(1);
        _with.peer().receive(oob_kind::status, 0);
        test.run_client(1, unused);
        _with.flush();
        _with.barrier();
        if (about.ping_pong || about.carried_by == carrier::get) {
            _bench->check(index, pattern_of_server(number));
        }
        _with.barrier();
        ++_lanes[index].row.validated;
    }
}

// Messages until the numbers are steady, and from their time the length of a round.
void client_run::warm_up(std::size_t index)
{
    method_statistics unused(ways());
    lane& one          = _lanes[index];
    double per_message = 0;
    if (_given.warmup) {
        if (*_given.warmup > 0) {
            per_message = measure(index, *_given.warmup, unused);
        }
    } else {
        double total       = 0;
        std::uint64_t done = 0;
        const std::uint64_t most =
            _given.iterations != 0 ? std::max<std::uint64_t>(1, _given.iterations / 10) : default_warmup;
        for (std::uint64_t count = 1; done < std::min(most, default_warmup) && total < warmup_seconds; count *= 2) {
            per_message = measure(index, count, unused);
            total += per_message * static_cast<double>(count);
            done += count;
        }
    }
    const std::uint64_t rounds = _given.rounds;
    if (_given.iterations != 0) {
        one.per_round = std::max<std::uint64_t>(1, _given.iterations / rounds);
        return;
    }
    if (per_message == 0) {
        per_message = measure(index, 1, unused);
    }
    const double fitting = _given.seconds / static_cast<double>(rounds) / per_message;
    one.per_round        = static_cast<std::uint64_t>(
        std::clamp(fitting, 1.0, static_cast<double>(max_automatic) / static_cast<double>(rounds) + 1));
}

void client_run::measure_rounds()
{
    const std::uint64_t rounds =
        _given.iterations != 0 ? std::min<std::uint64_t>(_given.rounds, _given.iterations) : _given.rounds;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t index = 0; index < _lanes.size(); ++index) {
            lane& one = _lanes[index];
            // What does not divide goes into the last round.
            const bool rest           = _given.iterations != 0 && round + 1 == rounds;
            const std::uint64_t count = rest ? _given.iterations - one.per_round * (rounds - 1) : one.per_round;
            measure(index, count, one.row.statistics);
            if (since(one.last_row) >= report_interval_seconds) {
                _report.progress(one.row);
                one.last_row = clock::now();
            }
        }
    }
}

void client_run::run(agreed_run agreed)
{
    agree(agreed);
    _report.begin(agreed.what, agreed.layouts);
    const settings what = agreed.what;
    _bench              = std::make_unique<bench>(_with, std::move(agreed));
    for (const method_kind kind : what.chosen) {
        _lanes.push_back({.row = {.name = std::string(info_of(kind).name), .statistics = method_statistics(ways())}});
    }
    for (std::size_t index = 0; index < _lanes.size(); ++index) {
        if (what.validate) {
            validate(index, validated_before);
        }
        warm_up(index);
    }
    for (lane& one : _lanes) {
        one.last_row = clock::now();
    }
    measure_rounds();
    std::vector<report_row> rows;
    for (std::size_t index = 0; index < _lanes.size(); ++index) {
        if (what.validate) {
            validate(index, validated_after);
        }
        rows.push_back(std::move(_lanes[index].row));
    }
    order(command_kind::end_run, 0, 0);
    _with.barrier();
    _bench.reset();
    _report.finish(what, rows);
}

settings settings_for(const options& given, std::uint64_t size)
{
    settings what;
    what.test         = given.test;
    what.message_size = size;
    what.allocate     = given.allocate;
    what.pass_memh    = given.pass_memh;
    what.validate     = given.validate;
    const auto most   = std::max<std::uint64_t>(1, in_flight_bytes / size);
    what.outstanding  = given.outstanding.value_or(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(info_of(given.test).outstanding, most)));
    return what;
}

void run_size(const options& given, session& with, reporter& report, const layout_pair& base, std::uint64_t size)
{
    agreed_run agreed{
        .what    = settings_for(given, size),
        .layouts = {.send = repeat_to(base.send, size, "send"), .receive = repeat_to(base.receive, size, "receive")}};
    require_fitting(agreed.what, agreed.layouts);
    if (given.test == test_kind::mem_map) {
        report.begin(agreed.what, agreed.layouts);
        report.finish(agreed.what, measure_mem_map(given, with, agreed.layouts.send, report));
        return;
    }
    std::vector<skipped_method> skipped;
    for (const method_kind kind : given.methods) {
        const auto reason = refusal(kind, given.test, agreed.layouts);
        if (reason) {
            skipped.push_back({.name = std::string(info_of(kind).name), .reason = *reason});
        } else {
            agreed.what.chosen.push_back(kind);
        }
    }
    if (agreed.what.chosen.empty()) {
        give_up("method {}: {}", skipped.front().name, skipped.front().reason);
    }
    client_run(given, with, report).run(std::move(agreed));
    for (const skipped_method& method : skipped) {
        report.skipped(method);
    }
}

layout_pair load_pair(const options& given)
{
    if (given.layouts.empty()) {
        return {.send = tools::load_layout("1"), .receive = tools::load_layout("1")};
    }
    return {.send = tools::load_layout(given.layouts.front()), .receive = tools::load_layout(given.layouts.back())};
}

} // namespace

void run_client(const options& given, oob_socket& peer)
{
    const layout_pair base = load_pair(given);
    const std::vector<std::uint64_t> sizes =
        given.sizes.empty() ? std::vector<std::uint64_t>{base.send.packed_length()} : given.sizes;
    // What is wrong in the layouts is said before the peer takes part.
    for (const std::uint64_t size : sizes) {
        repeat_to(base.send, size, "send");
        repeat_to(base.receive, size, "receive");
    }
    const std::unique_ptr<reporter> report = make_reporter(given);
    session with(peer);
    with.open();
    for (const std::uint64_t size : sizes) {
        run_size(given, with, *report, base, size);
    }
    peer.send(oob_kind::setup, {}); // no further run
    with.close();
    report->end();
}

} // namespace ucxl::perf
