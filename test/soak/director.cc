#include "director.h"

#include "ucx_ends.h"

#include "support/check.h"
#include "support/wait_until.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <format>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ucxl::soak
{

namespace
{

using clock = std::chrono::steady_clock;

// Longer than a process waits for an operation.
constexpr std::chrono::seconds patience{100};

// Operations of somebody never end.
struct stuck : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Longer than a process listens for what others send it by UCX alone.
constexpr std::chrono::seconds patience_with_probe{20};

// Where a process is that has told this: later ones are greater.
std::uint64_t place_of(word told, unsigned step)
{
    const std::uint64_t in_step = told == word::ready ? 1 : told == word::done ? 2 : 3;
    return 4 * std::uint64_t{step} + in_step;
}

} // namespace

void outcome::add_counts(const outcome& other)
{
    operations += other.operations;
    for (const auto count :
         {&outcome::left_out, &outcome::kills, &outcome::wrong, &outcome::hung, &outcome::ended, &outcome::blocked,
          &outcome::as_bare, &outcome::unconnected, &outcome::reconnected, &outcome::left}) {
        this->*count += other.*count;
    }
}

director::director(const round_plan& plan, std::string program) : _plan(plan), _program(std::move(program))
{
}

void director::start()
{
    test::environment variables(_plan.options.begin(), _plan.options.end());
    // Peers that were killed are found out about soon, by UCX's own means, too.
    variables.emplace_back("UCX_KEEPALIVE_INTERVAL", "500ms");
    if (std::getenv("UCX_LOG_LEVEL") == nullptr) {
        variables.emplace_back("UCX_LOG_LEVEL", "error");
    }
    const char* const others = std::getenv("LD_PRELOAD"); // the software device
    test::environment with_heap(variables);
    with_heap.emplace_back("LD_PRELOAD", others == nullptr || *others == '\0'
                                             ? std::string(HEAP_LIBRARY)
                                             : std::format("{}:{}", HEAP_LIBRARY, others));
    for (unsigned rank = 0; rank < _plan.num_processes; ++rank) {
        int ends[2];
        test::check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair: {}", errno);
        auto process = std::make_unique<test::process>(
            _program, std::vector<std::string>{"--round", std::to_string(_plan.seed), "--rank", std::to_string(rank)},
            test::process_options{.variables = _plan.has_heap(rank) ? with_heap : variables, .descriptors = {ends[1]}});
        close(ends[1]);
        _performers.push_back({.process = std::move(process), .connection = link(ends[0])});
    }
}

unsigned director::num_alive() const
{
    return static_cast<unsigned>(std::ranges::count_if(_performers, [](const auto& each) { return !each.is_dead; }));
}

void director::tell_all(const note& told)
{
    for (const performer& each : _performers) {
        if (!each.is_dead) {
            each.connection->tell(told); // one that has just died is noticed by its end
        }
    }
}

void director::tell_dead(unsigned rank)
{
    performer& dead = _performers[rank];
    dead.is_dead    = true;
    tell_all({.what = word::dead, .rank = rank});
}

void director::kill(unsigned rank)
{
    performer& victim = _performers[rank];
    victim.process->kill(SIGKILL);
    const auto ended = victim.process->wait();
    if (ended.status == 128 + SIGKILL) {
        ++_outcome.kills;
    } else {
        count_end(rank, ended); // it was earlier
    }
    tell_dead(rank);
}

void director::disturb()
{
    const step& planned = _plan.steps[_step];
    const auto now      = clock::now();
    if (_continue_at && now >= *_continue_at) {
        _performers[planned.victim].process->kill(SIGCONT);
        _continue_at.reset();
    }
    if (!_disturb_at || now < *_disturb_at) {
        return;
    }
    _disturb_at.reset();
    if (_performers[planned.victim].is_dead || num_alive() < 2) {
        return;
    }
    if (planned.disturbed == disturbance::kill) {
        kill(planned.victim);
    } else if (planned.disturbed == disturbance::stop) {
        _performers[planned.victim].process->kill(SIGSTOP);
        _continue_at = now + std::chrono::milliseconds(20 + planned.delay_us % 200);
    }
}

void director::take(performer& from, unsigned rank, const note& told)
{
    if (told.what == word::address) {
        for (unsigned other = 0; other < _performers.size(); ++other) {
            if (other != rank && !_performers[other].is_dead) {
                _performers[other].connection->tell(told);
            }
        }
        return;
    }
    if (told.what == word::key || told.what == word::cannot) {
        _outcome.left_out += told.what == word::cannot ? 1 : 0;
        _before_go.push_back(told);
        return;
    }
    if (told.what == word::stuck) {
        _stuck.push_back(told);
        return;
    }
    if (told.what == word::probed) {
        from.heard = told.first;
        return;
    }
    from.reached = place_of(told.what, told.step);
    if (told.what == word::looked) {
        _outcome.operations += told.first;
        if (!told.bytes.empty()) {
            ++_outcome.wrong;
            const std::string_view text(reinterpret_cast<const char*>(told.bytes.data()), told.bytes.size());
            _outcome.told += std::format("step {}, rank {}: {}\n", told.step, rank, text);
        }
    }
}

// Of a process that ended before the last step, and not by us.
void director::count_end(unsigned rank, const test::ended_process& ended)
{
    const std::string output = ended.output();
    const bool hung          = output.contains("never end") || output.contains("says nothing");
    // UCX ends a target that answers a put or get of an initiator that is gone (docs/limits.md).
    const char* const reason = _plan.has_error_handling ? "Endpoint timeout" : "Connection reset by remote peer";
    const bool is_of_target  = output.contains(std::string("Fatal: unexpected error: ") + reason) &&
                              (output.contains("ucp_put_handler") || output.contains("ucp_get_req_handler") ||
                               output.contains("ucp_atomic_req_handler"));
    const bool is_of_copy = !_plan.has_error_handling && was_ended_by_copy(output);
    const bool is_of_kill = _outcome.kills > 0 && (is_of_target || is_of_copy || was_ended_by_late_completion(output));
    const bool is_short   = _plan.little == shortage::addresses && _plan.has_little == rank;
    const bool is_of_ucx  = is_of_kill || (is_short && was_ended_without_memory(output));
    (is_of_ucx ? _outcome.ended : hung ? _outcome.hung : _outcome.wrong) += 1;
    if (!is_of_ucx) {
        const bool loses_endpoints = _plan.has_cards && _plan.has_error_handling && _outcome.kills == 0;
        _outcome.unconnected += !hung && loses_endpoints && may_have_lost_endpoint(output) ? 1 : 0;
        _outcome.told += std::format("step {}, rank {} ended with status {}: {}\n", _step, rank, ended.status, output);
    }
}

// What the processes have told by now, or what happens next.
void director::pump()
{
    std::vector<pollfd> waiting;
    for (const performer& each : _performers) {
        waiting.push_back({.fd = each.is_dead ? -1 : each.connection->descriptor(), .events = POLLIN, .revents = 0});
    }
    poll(waiting.data(), waiting.size(), _disturb_at ? 0 : 5);
    disturb();
    for (unsigned rank = 0; rank < _performers.size(); ++rank) {
        performer& each = _performers[rank];
        try {
            while (!each.is_dead) {
                const auto told = each.connection->next();
                if (!told) {
                    break;
                }
                take(each, rank, *told);
            }
        } catch (const std::exception&) { // it has ended by itself
            count_end(rank, each.process->wait());
            tell_dead(rank);
        }
    }
}

void director::gather(word what, unsigned number)
{
    _step               = number;
    const auto awaited  = place_of(what, number);
    const auto deadline = clock::now() + patience;
    while (!std::ranges::all_of(_performers,
                                [awaited](const auto& each) { return each.is_dead || each.reached >= awaited; })) {
        if (!_stuck.empty()) {
            throw stuck("operations never end");
        }
        if (clock::now() > deadline) {
            ++_outcome.hung;
            for (unsigned rank = 0; rank < _performers.size(); ++rank) {
                if (!_performers[rank].is_dead && _performers[rank].reached < awaited) {
                    _outcome.told += std::format("step {}: rank {} says nothing\n", number, rank);
                }
            }
            throw std::runtime_error("hung");
        }
        pump();
    }
}

// Processes of one host share a queue of UCX for what they send to one of them. Who is killed while it writes there
// blocks it for ever (docs/limits.md). Then nobody is heard, not even by a worker and an endpoint of their own.
bool director::are_stuck_in_ucx()
{
    if (_plan.has_error_handling || _outcome.kills == 0) {
        return false; // another transport, or nobody who could have done it
    }
    tell_all({.what = word::probe});
    const auto deadline = clock::now() + patience_with_probe;
    while (clock::now() < deadline &&
           !std::ranges::all_of(_performers, [](const auto& each) { return each.is_dead || each.heard; })) {
        pump();
    }
    // With several contexts a process has several queues, so others may still hear it.
    const auto is_cut_off = [this](unsigned one, unsigned other) {
        const auto& heard = _performers[one].heard;
        return heard && (_performers[other].is_dead ? *heard : *heard >> other & 1) == 0;
    };
    return std::ranges::all_of(_stuck, [&](const note& each) {
        for (unsigned other = 0; other < _performers.size(); ++other) {
            if ((each.first >> other & 1) != 0 && !is_cut_off(each.rank, other) && !is_cut_off(other, each.rank)) {
                return false;
            }
        }
        return true;
    });
}

void director::run_step(unsigned number)
{
    const step& planned = _plan.steps[number];
    gather(word::ready, number);
    for (const note& each : std::exchange(_before_go, {})) {
        if (!_performers[each.rank].is_dead) {
            _performers[each.rank].connection->tell(each);
        }
    }
    tell_all({.what = word::go, .step = number});
    if (planned.disturbed == disturbance::kill || planned.disturbed == disturbance::stop) {
        _disturb_at = clock::now() + std::chrono::microseconds(planned.delay_us);
    }
    gather(word::done, number);
    while (_disturb_at || _continue_at) {
        pump();
    }
    tell_all({.what = word::look, .step = number});
    gather(word::looked, number);
}

void director::finish()
{
    const auto after_all = static_cast<unsigned>(_plan.steps.size());
    tell_all({.what = word::go, .step = after_all});
    for (unsigned rank = 0; rank < _performers.size(); ++rank) {
        if (_performers[rank].is_dead) {
            continue;
        }
        const auto ended = _performers[rank].process->wait(patience);
        if (ended.timed_out) {
            ++_outcome.hung;
            _outcome.told += std::format("rank {} does not end\n", rank);
        } else if (ended.status != 0) {
            ++_outcome.wrong;
            _outcome.told += std::format("rank {} ended with status {}: {}\n", rank, ended.status, ended.output());
        }
    }
}

// Each process leads a group, with all that it and the libraries in it started.
void director::count_left()
{
    for (unsigned rank = 0; rank < _performers.size(); ++rank) {
        const pid_t leader = _performers[rank].process->pid();
        if (_performers[rank].process->has_ended() &&
            !test::wait_until([leader] { return ::kill(-leader, 0) != 0; }, std::chrono::seconds(1))) {
            ++_outcome.left;
            _outcome.told += std::format("rank {}: a process that it started stays\n", rank);
        }
    }
}

outcome director::run()
{
    try {
        start();
        for (unsigned number = 0; number < _plan.steps.size(); ++number) {
            run_step(number);
        }
        finish();
    } catch (const stuck&) {
        for (const auto end = clock::now() + std::chrono::seconds(1); clock::now() < end;) {
            pump(); // others will tell the same
        }
        ++(are_stuck_in_ucx() ? _outcome.blocked : _outcome.hung);
        for (const note& each : _stuck) {
            const std::string_view text(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
            _performers[each.rank].process->kill(SIGKILL);
            _outcome.told +=
                std::format("rank {}: {}\n{}", each.rank, text, _performers[each.rank].process->wait().output());
        }
    } catch (const std::exception& error) {
        if (_outcome.is_good()) {
            ++_outcome.wrong;
            _outcome.told += std::format("{}\n", error.what());
        }
    }
    for (const performer& each : _performers) {
        close(each.connection->descriptor());
    }
    count_left();
    return _outcome;
}

} // namespace ucxl::soak
