#include "server.h"

#include "bench.h"
#include "owner_process.h"
#include "report.h"
#include "tools/common/failure.h"
#include "tools/common/load_layout.h"

#include <optional>

namespace ucxl::perf
{

namespace
{

class server_run
{
public:
    server_run(session& session, agreed_run run, bool announces)
        : _session(session), _bench(session, std::move(run)), _announces(announces)
    {
    }

    // Returns when the client ends the run.
    void serve();

private:
    void measure(const command& wanted);
    void validate(const command& wanted);
    void announce_copies() const;

    session& _session;
    bench _bench;
    const bool _announces;
};

void server_run::serve()
{
    for (;;) {
        _session.wait_for_message();
        const auto wanted = _session.peer().receive_value<command>(oob_kind::command);
        if (wanted.kind == command_kind::end_run) {
            _session.barrier();
            if (_announces) {
                announce_copies();
            }
            return;
        }
        if (wanted.method >= _bench.num_methods() || wanted.count == 0 || wanted.count > max_iterations) {
            tools::give_up("{} asks for {} messages of method {}", _session.peer().peer_name(), wanted.count,
                           wanted.method);
        }
        if (wanted.kind == command_kind::measure) {
            measure(wanted);
        } else if (wanted.kind == command_kind::validate) {
            validate(wanted);
        } else {
            tools::give_up("{} sent command {}, unknown here", _session.peer().peer_name(),
                           static_cast<std::uint32_t>(wanted.kind));
        }
    }
}

void server_run::measure(const command& wanted)
{
    exchange& test = _bench.exchange_of(wanted.method);
    test.prepare_server(wanted.count);
    _session.peer().send(oob_kind::status, {});
    test.run_server(wanted.count);
    _session.barrier();
    if (_bench.test_settings().validate) {
        test.verify_server(wanted.count);
    }
}

void server_run::validate(const command& wanted)
{
    exchange& test        = _bench.exchange_of(wanted.method);
    const test_info& info = info_of(_bench.test_settings().test);
    _bench.fill(wanted.method, pattern_of_server(wanted.number));
    _session.barrier();
    test.prepare_server(1);
    _session.peer().send(oob_kind::status, {});
    test.run_server(1);
    _session.flush();
    _session.barrier();
    if (info.carried_by != carrier::get) {
        _bench.check(wanted.method, pattern_of_client(wanted.number));
    }
    _session.barrier();
}

void server_run::announce_copies() const
{
    for (std::size_t index = 0; index < _bench.num_methods(); ++index) {
        if (const auto copied = _bench.copied_bytes(index)) {
            fmt::print("{}\n", copied_text(std::string(info_of(_bench.test_settings().chosen[index]).name), *copied));
        }
    }
    std::fflush(stdout);
}

void use_own_layouts(const std::vector<std::string>& own, agreed_run& run)
{
    if (!own.empty()) {
        run.layouts.send = repeat_to(tools::load_layout(own.front()), run.test_settings.message_size, "server's send");
        run.layouts.receive =
            repeat_to(tools::load_layout(own.back()), run.test_settings.message_size, "server's receive");
    }
}

void announce(const agreed_run& run)
{
    fmt::print("{}, {} bytes\n  send: {}\n  receive: {}\n", info_of(run.test_settings.test).name,
               run.test_settings.message_size, layout_text(run.layouts.send), layout_text(run.layouts.receive));
    std::fflush(stdout);
}

} // namespace

void run_server(const options& own, oob_socket& peer, errand wanted)
{
    if (wanted == errand::exports) {
        run_owner(peer);
        return;
    }
    if (wanted != errand::transfers && wanted != errand::atomics) {
        tools::give_up("contended_fadd needs a server that was started with --processes N");
    }
    session link(peer);
    link.open(features_of(wanted));
    for (;;) {
        link.wait_for_message();
        const std::vector<std::byte> setup = peer.receive(oob_kind::setup, max_setup_length);
        if (setup.empty()) {
            break;
        }
        agreed_run run = decode(setup);
        use_own_layouts(own.layouts, run);
        require_fitting(run.test_settings, run.layouts);
        if (!own.inherited) {
            announce(run);
        }
        peer.send(oob_kind::status, {});
        server_run(link, std::move(run), !own.inherited).serve();
    }
    link.close();
}

} // namespace ucxl::perf
