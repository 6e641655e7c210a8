#include "client.h"

#include "bench.h"
#include "mem_map.h"
#include "memory_owner.h"
#include "report.h"
#include "tools/common/failure.h"
#include "tools/common/load_layout.h"
#include "xgvmi_map.h"

#include <algorithm>
#include <chrono>
#include <optional>

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

// One size: sets it up with the server, then runs rounds in which the methods take turns.
class client_run
{
public:
    client_run(const options& options, session& session, reporter& report, memory_owner* owner)
        : _options(options), _session(session), _report(report), _owner(owner)
    {
    }

    void run(agreed_run agreed);

private:
    struct lane {
        report_row row;
        std::uint64_t per_round    = 1; // where the number of messages is not given
        clock::time_point last_row = clock::now();
    };

    void agree(const agreed_run& agreed);
    void warm_up(std::size_t index);
    double measure(std::size_t index, std::uint64_t count, method_statistics& into);
    void measure_rounds();
    void validate(std::size_t index, unsigned messages);
    void order(command_kind kind, std::size_t index, std::uint64_t count, std::uint64_t number = 0);
    double ways() const { return info_of(_bench->test_settings().test).ping_pong ? 2 : 1; }

    const options& _options;
    session& _session;
    reporter& _report;
    memory_owner* _owner; // null: the memory is that of this process
    std::unique_ptr<bench> _bench;
    std::vector<lane> _lanes;
    std::uint64_t _next_number = 1;
};

void client_run::agree(const agreed_run& agreed)
{
    _session.peer().send(oob_kind::setup, encode(agreed.test_settings, agreed.layouts));
    _session.peer().receive(oob_kind::status, 0);
}

void client_run::order(command_kind kind, std::size_t index, std::uint64_t count, std::uint64_t number)
{
    _session.peer().send_value(
        oob_kind::command,
        command{.kind = kind, .method = static_cast<std::uint32_t>(index), .count = count, .number = number});
}

// Returns seconds per message.
double client_run::measure(std::size_t index, std::uint64_t count, method_statistics& into)
{
    exchange& test = _bench->exchange_of(index);
    test.prepare_client(count);
    order(command_kind::measure, index, count);
    _session.peer().receive(oob_kind::status, 0);
    into.begin();
    test.run_client(count, into);
    into.end(count);
    _session.barrier();
    if (_bench->test_settings().validate) {
        _lanes[index].row.validated += test.verify_client(count);
    }
    return into.last_round() * ways();
}

void client_run::validate(std::size_t index, unsigned messages)
{
    exchange& test        = _bench->exchange_of(index);
    const test_info& info = info_of(_bench->test_settings().test);
    for (unsigned i = 0; i < messages; ++i) {
        const std::uint64_t number = _next_number++;
        method_statistics unused(1);
        _bench->fill(index, pattern_of_client(number));
        order(command_kind::validate, index, 1, number);
        // Both sides fill everything before the first byte moves.
        _session.barrier();
        test.prepare_client(1);
        _session.peer().receive(oob_kind::status, 0);
        test.run_client(1, unused);
        _session.flush();
        _session.barrier();
        if (info.ping_pong || info.carried_by == carrier::get) {
            _bench->check(index, pattern_of_server(number));
        }
        _session.barrier();
        ++_lanes[index].row.validated;
    }
}

// Sends messages until their time is steady, and derives the length of a round from it.
void client_run::warm_up(std::size_t index)
{
    method_statistics unused(ways());
    lane& one          = _lanes[index];
    double per_message = 0;
    if (_options.warmup) {
        if (*_options.warmup > 0) {
            per_message = measure(index, *_options.warmup, unused);
        }
    } else {
        double total       = 0;
        std::uint64_t done = 0;
        const std::uint64_t most =
            _options.iterations != 0 ? std::max<std::uint64_t>(1, _options.iterations / 10) : default_warmup;
        for (std::uint64_t count = 1; done < std::min(most, default_warmup) && total < warmup_seconds; count *= 2) {
            per_message = measure(index, count, unused);
            total += per_message * static_cast<double>(count);
            done += count;
        }
    }
    if (_options.iterations != 0) {
        return;
    }
    if (per_message == 0) {
        per_message = measure(index, 1, unused);
    }
    const auto rounds    = static_cast<double>(_options.rounds);
    const double fitting = _options.seconds / rounds / per_message;
    one.per_round =
        static_cast<std::uint64_t>(std::clamp(fitting, 1.0, static_cast<double>(max_automatic) / rounds + 1));
}

void client_run::measure_rounds()
{
    const std::uint64_t rounds =
        _options.iterations != 0 ? std::min<std::uint64_t>(_options.rounds, _options.iterations) : _options.rounds;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t index = 0; index < _lanes.size(); ++index) {
            lane& one = _lanes[index];
            const std::uint64_t count =
                _options.iterations != 0 ? part_of_round(_options.iterations, rounds, round) : one.per_round;
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
    _report.begin(agreed.test_settings, agreed.layouts);
    if (_owner != nullptr) {
        _owner->begin(agreed.test_settings, agreed.layouts);
    }
    const settings run_settings = agreed.test_settings;
    _bench                      = std::make_unique<bench>(_session, std::move(agreed), _owner);
    for (const method_kind kind : run_settings.chosen) {
        _lanes.push_back({.row = {.name = std::string(info_of(kind).name), .statistics = method_statistics(ways())}});
    }
    // Atomic operations are verified with every measurement instead.
    const bool with_patterns = run_settings.validate && !run_settings.is_atomic();
    for (std::size_t index = 0; index < _lanes.size(); ++index) {
        if (with_patterns) {
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
        if (with_patterns) {
            validate(index, validated_after);
        }
        _lanes[index].row.copied = _bench->copied_bytes(index);
        rows.push_back(std::move(_lanes[index].row));
    }
    order(command_kind::end_run, 0, 0);
    _session.barrier();
    _bench.reset();
    if (_owner != nullptr) {
        _owner->end();
    }
    _report.finish(run_settings, rows);
}

// size: as given by -s. An atomic operation has that size, and its words fill the layout.
settings settings_for(const options& options, const layout_pair& base, std::uint64_t size)
{
    settings settings;
    settings.test         = options.test;
    settings.message_size = size;
    settings.memory       = options.memory;
    if (settings.is_atomic()) {
        settings.word_bytes   = static_cast<std::uint32_t>(size);
        settings.message_size = options.layouts.empty() ? size : base.receive.packed_length();
    }
    settings.allocate    = options.allocate;
    settings.pass_memh   = options.pass_memh;
    settings.validate    = options.validate;
    settings.live_data   = options.live_data;
    const auto most      = std::max<std::uint64_t>(1, in_flight_bytes / std::max<std::uint64_t>(1, size));
    settings.outstanding = options.outstanding.value_or(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(info_of(options.test).outstanding, most)));
    return settings;
}

void share_size(const options& options, session& session, reporter& report, agreed_run agreed, memory_owner& owner)
{
    const method_kind kind = options.methods.front();
    if (const auto reason = refusal(kind, agreed.test_settings, agreed.layouts)) {
        give_up("method {}: {}", info_of(kind).name, *reason);
    }
    report.begin(agreed.test_settings, agreed.layouts);
    owner.begin(agreed.test_settings, agreed.layouts);
    const std::vector<report_row> rows = measure_xgvmi_map(options, session, owner, kind);
    owner.end();
    report.finish(agreed.test_settings, rows);
}

void run_size(const options& options, session& session, reporter& report, const layout_pair& base, std::uint64_t size,
              memory_owner* owner)
{
    const settings wanted = settings_for(options, base, size);
    agreed_run agreed{.test_settings = wanted,
                      .layouts       = {.send    = repeat_to(base.send, wanted.message_size, "send"),
                                        .receive = repeat_to(base.receive, wanted.message_size, "receive")}};
    require_fitting(agreed.test_settings, agreed.layouts);
    if (options.test == test_kind::mem_map) {
        report.begin(agreed.test_settings, agreed.layouts);
        report.finish(agreed.test_settings, measure_mem_map(options, session, agreed.layouts.send, report));
        return;
    }
    if (options.test == test_kind::xgvmi_map) {
        share_size(options, session, report, std::move(agreed), *owner);
        return;
    }
    std::vector<skipped_method> skipped;
    for (const method_kind kind : options.methods) {
        const auto reason = refusal(kind, agreed.test_settings, agreed.layouts);
        if (reason) {
            skipped.push_back({.name = std::string(info_of(kind).name), .reason = *reason});
        } else {
            agreed.test_settings.chosen.push_back(kind);
        }
    }
    if (agreed.test_settings.chosen.empty()) {
        give_up("method {}: {}", skipped.front().name, skipped.front().reason);
    }
    client_run(options, session, report, owner).run(std::move(agreed));
    for (const skipped_method& method : skipped) {
        report.skipped(method);
    }
}

layout_pair load_pair(const options& options)
{
    if (options.layouts.empty()) {
        return {.send = tools::load_layout("1"), .receive = tools::load_layout("1")};
    }
    return {.send = tools::load_layout(options.layouts.front()), .receive = tools::load_layout(options.layouts.back())};
}

} // namespace

void run_client(const options& options, oob_socket& peer, oob_socket* owner)
{
    const layout_pair base                 = load_pair(options);
    const bool is_atomic                   = info_of(options.test).carried_by == carrier::atomic;
    const std::vector<std::uint64_t> sizes = !options.sizes.empty() ? options.sizes
                                             : is_atomic            ? std::vector<std::uint64_t>{sizeof(std::uint64_t)}
                                                         : std::vector<std::uint64_t>{base.send.packed_length()};
    // Reports errors in the layouts before the peer takes part.
    for (const std::uint64_t size : sizes) {
        const std::uint64_t length = settings_for(options, base, size).message_size;
        repeat_to(base.send, length, "send");
        repeat_to(base.receive, length, "receive");
    }
    const std::unique_ptr<reporter> report = make_reporter(options);
    session link(peer);
    std::optional<memory_owner> imported;
    if (owner != nullptr) {
        link.also_check(*owner);
        imported.emplace(*owner);
    }
    link.open(features_of(errand_of(options)));
    for (const std::uint64_t size : sizes) {
        run_size(options, link, *report, base, size, imported ? &*imported : nullptr);
    }
    peer.send(oob_kind::setup, {}); // no further run
    link.close();
    if (imported) {
        imported->leave();
    }
    report->end();
}

} // namespace ucxl::perf
