#include "owner_process.h"

#include "bench.h"
#include "memory_owner.h"
#include "registered_memory.h"
#include "ticks.h"
#include "tools/common/value_of.h"

#include <memory>
#include <optional>

namespace ucxl::perf
{

namespace
{

// A buffer of xgvmi_map: new memory each time.
class temporary_memory
{
public:
    temporary_memory(ucp_context_h context, const ucx_layout::layout& layout, method_kind kind)
    {
        if (kind == method_kind::window) {
            _image.emplace(
                layout_image::create(context, repeat_to(layout, layout.packed_length(), "send"), image_place::own));
        } else {
            _plain = anonymous_mapping::create(layout.packed_length());
        }
        const std::uint64_t begin = ticks_now();
        if (_image) {
            const tools::held_log log;
            _window.emplace(tools::value_of(ucx_layout::window::map(context, _image->layout(), _image->bases()), log,
                                            "mapping a window"));
        } else {
            _registered = registered_memory::create(context, _plain.data(), _plain.size());
        }
        const std::uint64_t mapped = ticks_now();
        const void* const address  = _window ? _window->address() : _plain.data();
        _exported                  = exported_memory::create(_window ? _window->memh() : _registered.memh(),
                                            reinterpret_cast<std::uintptr_t>(address), layout.packed_length());
        _times = {.map = since(begin, mapped), .pack = since(mapped, ticks_now()), .unmap = 0};
    }

    const exported_memory& exported() const { return _exported; }

    // UCX deregisters when the memory goes, or with its next call.
    owner_times release()
    {
        const std::uint64_t begin = ticks_now();
        _window.reset();
        _image.reset();
        _registered  = {};
        _plain       = {};
        _times.unmap = since(begin, ticks_now());
        return _times;
    }

private:
    static double since(std::uint64_t begin, std::uint64_t end)
    {
        return static_cast<double>(end - begin) * seconds_per_tick();
    }

    std::optional<layout_image> _image;
    std::optional<ucx_layout::window> _window;
    anonymous_mapping _plain;
    registered_memory _registered;
    exported_memory _exported;
    owner_times _times{};
};

// One run: the memory for each method.
class owner_run
{
public:
    owner_run(session& own, agreed_run run)
        : _session(own), _run(std::move(run)), _images(make_images(own.context(), _run))
    {
        for (const method_kind kind : _run.test_settings.chosen) {
            _methods.push_back(make_method(kind, _session, _images, _run.test_settings));
            const method& made = *_methods.back();
            exported(made.exposed_outgoing()).send(_session.peer());
            exported(made.exposed_incoming()).send(_session.peer());
        }
    }

    // Returns when the client ends the run.
    void serve();

private:
    exported_memory exported(const exposed_memory& memory) const
    {
        return exported_memory::create(memory.memh, memory.address, _run.test_settings.message_size);
    }
    method& method_of(const owner_command& wanted)
    {
        if (wanted.method >= _methods.size()) {
            tools::give_up("{} asks for method {} of {}", _session.peer().peer_name(), wanted.method, _methods.size());
        }
        return *_methods[wanted.method];
    }
    void map(const owner_command& wanted);

    session& _session;
    agreed_run _run;
    image_pair _images;
    std::vector<std::unique_ptr<method>> _methods;
    std::optional<temporary_memory> _temporary;
};

void owner_run::map(const owner_command& wanted)
{
    const auto kind = static_cast<method_kind>(wanted.method);
    if (kind != method_kind::window && kind != method_kind::contig) {
        tools::give_up("{} wants memory for method number {} exported", _session.peer().peer_name(), wanted.method);
    }
    _temporary.emplace(_session.context(), _images.source.layout(), kind);
    _temporary->exported().send(_session.peer());
}

void owner_run::serve()
{
    oob_socket& client = _session.peer();
    for (;;) {
        const auto wanted = client.receive_value<owner_command>(oob_kind::command);
        switch (wanted.step) {
        case owner_step::fill:
            method_of(wanted).fill(wanted.message);
            client.send(oob_kind::status, {});
            continue;
        case owner_step::check:
            client.send_text(oob_kind::status, method_of(wanted).check(wanted.message, std::nullopt));
            continue;
        case owner_step::map:
            map(wanted);
            continue;
        case owner_step::unmap:
            if (!_temporary) {
                break;
            }
            client.send_value(oob_kind::times, _temporary->release());
            _temporary.reset();
            continue;
        case owner_step::end:
            client.send(oob_kind::status, {});
            return;
        }
        tools::give_up("{} sent command {}, unknown here or out of turn", client.peer_name(),
                       static_cast<std::uint32_t>(wanted.step));
    }
}

} // namespace

void run_owner(oob_socket& client)
{
    session own(client);
    own.open_alone(base_features);
    for (;;) {
        const std::vector<std::byte> setup = client.receive(oob_kind::setup, max_setup_length);
        if (setup.empty()) {
            return;
        }
        agreed_run run = decode(setup);
        require_fitting(run.test_settings, run.layouts);
        owner_run(own, std::move(run)).serve();
    }
}

} // namespace ucxl::perf
