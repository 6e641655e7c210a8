#include "launcher.h"

#include "child_process.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fmt/format.h>
#include <poll.h>
#include <span>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace examples
{

namespace
{

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class launcher
{
public:
    explicit launcher(const launcher_options& options);
    ~launcher();
    launcher(const launcher&)            = delete;
    launcher& operator=(const launcher&) = delete;

    exchange_result run();

private:
    struct member {
        child_process process;
        std::deque<control::message> inbox;
    };

    std::span<member> hosts() { return std::span(_members).first(_options.roles.plan.hosts); }
    std::span<member> dpus() { return std::span(_members).subspan(_options.roles.plan.hosts); }

    void start(const char* kind, unsigned rank, const std::vector<std::string>& program,
               const std::vector<default_variable>& variables);
    void run_round();
    void stop_hosts();
    void continue_hosts();
    void expect_stopped_hosts();
    void send(std::span<member> to, word kind, std::string_view payload = {});
    // Waits until each has sent something.
    bool have_sent(std::span<member> from, clock::time_point until = clock::time_point::max());
    // Takes a message of this kind from each, in order.
    std::vector<std::string> gather(std::span<member> from, word kind);
    // Takes what comes within a millisecond, and looks at hosts that have to be stopped.
    void look();
    void take_from(member& sender);

    const launcher_options& _options;
    const clock::time_point _deadline;
    std::vector<member> _members;                           // hosts first
    std::vector<std::chrono::nanoseconds> _processor_times; // of stopped hosts; empty: they run
    exchange_result _result;
};

std::string own_program()
{
    std::string path(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return path;
}

[[noreturn]] void throw_end_of(child_process& process)
{
    const pid_t pid = process.pid();
    throw std::runtime_error(fmt::format("{} (pid {}) {}", process.name(), pid, process.how_it_ended()));
}

launcher::launcher(const launcher_options& options) : _options(options), _deadline(clock::now() + options.limit)
{
    // The CPU of a DPU process must not copy from memory of the host, and nothing else than the device can reach it. A
    // host maps no window twice, so it keeps none: each would keep a key.
    const std::vector<default_variable> for_hosts{{"UCX_NET_DEVICES", options.host_device + ":1"},
                                                  {"UCX_TLS", "rc_x,lay_copy"},
                                                  {"UCX_LAYOUT_MAP_CACHE_SIZE", "0"}};
    std::vector<default_variable> for_dpus{
        {"UCX_NET_DEVICES", options.dpu_device + ":1"}, {"UCX_TLS", "rc_x,lay_copy"}, {"UCX_ZCOPY_THRESH", "0"}};
    if (std::getenv("UCX_TLS") == nullptr) {
        for_dpus.emplace_back("UCX_RC_MLX5_TX_INLINE_RESP", "0"); // gets of up to 64 bytes, too
    }
    const std::vector<std::string> itself{own_program()};
    for (unsigned rank = 0; rank < options.roles.plan.hosts; ++rank) {
        start("host", rank, itself, for_hosts);
    }
    for (unsigned rank = 0; rank < options.roles.plan.hosts; ++rank) {
        start("dpu", rank, options.dpu_command.empty() ? itself : options.dpu_command, for_dpus);
    }
}

// After a failure some may be left. DPU processes go first, because UCX complains when the memory that they use is
// gone.
launcher::~launcher()
{
    while (!_members.empty()) {
        _members.pop_back();
    }
}

void launcher::start(const char* kind, unsigned rank, const std::vector<std::string>& program,
                     const std::vector<default_variable>& variables)
{
    const role_options& roles        = _options.roles;
    std::vector<std::string> command = program;
    const auto add                   = [&](const char* option, const auto& value) {
        command.insert(command.end(), {option, fmt::format("{}", value)});
    };
    add("--as", kind);
    add("--rank", rank);
    add("-n", roles.plan.hosts);
    add("--rounds", roles.rounds);
    add("--size", roles.plan.max_bytes);
    add("--seed", roles.plan.seed);
    _members.push_back({child_process::start(fmt::format("{} {}", kind, rank), command, variables), {}});
}

exchange_result launcher::run()
{
    gather(hosts(), word::ready);
    std::string addresses;
    for (const std::string& address : gather(dpus(), word::address)) {
        append_text(addresses, address);
    }
    send(dpus(), word::addresses, addresses);
    for (unsigned round = 0; round < _options.roles.rounds; ++round) {
        run_round();
    }
    _result.hosts = gather(hosts(), word::counts);
    _result.dpus  = gather(dpus(), word::counts);
    send(_members, word::end);
    for (member& each : _members) {
        if (const std::string how = each.process.how_it_ended(); how != child_process::good_end) {
            throw std::runtime_error(fmt::format("{} {}", each.process.name(), how));
        }
    }
    return std::move(_result);
}

void launcher::run_round()
{
    const std::vector<std::string> handles = gather(hosts(), word::handles);
    stop_hosts();
    const auto begin = clock::now();
    for (unsigned rank = 0; rank < handles.size(); ++rank) {
        send(dpus().subspan(rank, 1), word::handles, handles[rank]);
    }
    gather(dpus(), word::done);
    expect_stopped_hosts();
    _result.stopped_ms += std::chrono::duration<double, std::milli>(clock::now() - begin).count();
    continue_hosts();
    send(hosts(), word::moved);
}

// A thread of a host may have been stopped while it held the lock of the software device, which all processes share. So
// it is tried. DPU processes use the device only when they are told to; once each has used it, the hosts do not have
// it.
void launcher::stop_hosts()
{
    constexpr auto patience   = 500ms;
    constexpr unsigned trials = 20;
    for (unsigned trial = 0; trial < trials; ++trial) {
        for (member& host : hosts()) {
            host.process.stop();
        }
        send(dpus(), word::try_device);
        if (have_sent(dpus(), clock::now() + patience)) {
            gather(dpus(), word::ready);
            for (const member& host : hosts()) {
                _processor_times.push_back(host.process.settled_processor_time());
            }
            return;
        }
        continue_hosts();
        ++_result.repeated_stops;
        gather(dpus(), word::ready);
    }
    throw std::runtime_error(
        fmt::format("the device did not answer in {} trials while the hosts were stopped", trials));
}

void launcher::continue_hosts()
{
    _processor_times.clear();
    for (const member& host : hosts()) {
        host.process.go_on();
    }
}

void launcher::expect_stopped_hosts()
{
    constexpr auto time_to_die = 100ms; // of one that somebody kills
    for (unsigned rank = 0; rank < _processor_times.size(); ++rank) {
        child_process& host = hosts()[rank].process;
        if (const char state = host.state(); state != 'T') {
            std::this_thread::sleep_for(time_to_die);
            if (host.state() == 'Z') {
                throw_end_of(host);
            }
            throw std::runtime_error(fmt::format("{} (pid {}) is in state {} during the exchange, and not stopped",
                                                 host.name(), host.pid(), state));
        }
        if (const auto used = host.processor_time() - _processor_times[rank]; used != 0ns) {
            throw std::runtime_error(fmt::format("{} (pid {}) has used a processor for {} ns during the exchange",
                                                 host.name(), host.pid(), used.count()));
        }
    }
    _result.looks += _processor_times.empty() ? 0 : 1;
}

void launcher::send(std::span<member> to, word kind, std::string_view payload)
{
    for (member& each : to) {
        try {
            each.process.messages().send(kind, payload);
        } catch (const control::end_of_messages&) {
            throw_end_of(each.process);
        }
    }
}

bool launcher::have_sent(std::span<member> from, clock::time_point until)
{
    while (std::ranges::any_of(from, [](const member& each) { return each.inbox.empty(); })) {
        if (clock::now() > until) {
            return false;
        }
        look();
    }
    return true;
}

std::vector<std::string> launcher::gather(std::span<member> from, word kind)
{
    std::vector<std::string> payloads;
    have_sent(from);
    for (member& each : from) {
        control::message& next = each.inbox.front();
        if (next.kind != kind) {
            throw std::runtime_error(fmt::format("{} has sent message {} instead of {}", each.process.name(),
                                                 static_cast<unsigned>(next.kind), static_cast<unsigned>(kind)));
        }
        payloads.push_back(std::move(next.payload));
        each.inbox.pop_front();
    }
    return payloads;
}

void launcher::look()
{
    std::vector<pollfd> inputs;
    for (member& each : _members) {
        inputs.push_back({.fd = each.process.messages().input(), .events = POLLIN, .revents = 0});
    }
    ::poll(inputs.data(), inputs.size(), 1);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].revents != 0) {
            take_from(_members[i]);
        }
    }
    expect_stopped_hosts();
    if (clock::now() > _deadline) {
        throw std::runtime_error(fmt::format("no end after {} s (--time-limit)", _options.limit.count()));
    }
}

void launcher::take_from(member& sender)
{
    try {
        sender.process.messages().read_some();
    } catch (const control::end_of_messages&) {
        throw_end_of(sender.process);
    }
    while (auto next = sender.process.messages().take()) {
        if (next->kind == word::failed) {
            throw std::runtime_error(fmt::format("{}: {}", sender.process.name(), next->payload));
        }
        sender.inbox.push_back(std::move(*next));
    }
}

} // namespace

exchange_result run_exchange(const launcher_options& options)
{
    std::signal(SIGPIPE, SIG_IGN); // a process may end while it is told something
    return launcher(options).run();
}

} // namespace examples
