#include "role.h"

#include "examples/common/check.h"
#include "examples/common/ucx_link.h"
#include "library_figures.h"
#include "temporary_buffer.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace examples
{

namespace
{

using clock = std::chrono::steady_clock;

double microseconds_since(clock::time_point begin)
{
    return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

struct host_counts {
    std::uint64_t exports = 0, windows = 0, bytes_sent = 0, bytes_received = 0;
    double export_us = 0; // mapping included
    double unmap_us  = 0;
};

// Its buffers for one round, in the order in which the DPU process expects them.
class buffers_of_round
{
public:
    buffers_of_round(ucp_context_h context, const role_options& options, unsigned round, host_counts& counts)
    {
        for (unsigned peer = 0; peer < options.plan.hosts; ++peer) {
            const message_of_plan to{.round = round, .sender = options.rank, .receiver = peer};
            const message_of_plan from{.round = round, .sender = peer, .receiver = options.rank};
            _sent.push_back(make(context, options.plan, to, options.plan.form_of_sender(to), counts));
            _received.push_back(make(context, options.plan, from, options.plan.form_of_receiver(from), counts));
            counts.bytes_sent += options.plan.length_bytes(to);
            counts.bytes_received += options.plan.length_bytes(from);
        }
        for (const auto& buffer : _sent) {
            if (buffer) {
                buffer->fill();
            }
        }
    }

    const std::string& handles() const { return _handles; }

    void verify() const
    {
        for (const auto& buffer : _sent) {
            if (buffer) {
                buffer->verify("what was sent");
            }
        }
        for (const auto& buffer : _received) {
            if (buffer) {
                buffer->verify("what arrived");
            }
        }
    }

private:
    // Nothing for an empty message.
    std::unique_ptr<temporary_buffer> make(ucp_context_h context, const exchange_plan& plan, message_of_plan message,
                                           memory_form form, host_counts& counts)
    {
        exported_buffer exported;
        std::unique_ptr<temporary_buffer> made;
        if (plan.length_bytes(message) != 0) {
            const auto begin = clock::now();
            made             = std::make_unique<temporary_buffer>(context, plan, message, form);
            exported         = made->exported();
            counts.export_us += microseconds_since(begin);
            counts.exports += 1;
            counts.windows += made->is_window();
        }
        append_number(_handles, exported.address);
        append_number(_handles, exported.length);
        append_text(_handles, exported.handle);
        return made;
    }

    std::vector<std::unique_ptr<temporary_buffer>> _sent;
    std::vector<std::unique_ptr<temporary_buffer>> _received;
    std::string _handles;
};

std::string as_json(const host_counts& counts)
{
    const nlohmann::ordered_json all = {{"exports", counts.exports},
                                        {"windows", counts.windows},
                                        {"plain_buffers", counts.exports - counts.windows},
                                        {"bytes_sent", counts.bytes_sent},
                                        {"bytes_received", counts.bytes_received},
                                        {"binds", library_figure("binds")},
                                        {"invalidations", library_figure("invalidations")},
                                        {"export_us", counts.export_us},
                                        {"unmap_us", counts.unmap_us}};
    return all.dump();
}

} // namespace

void play_host(const role_options& options, control& launcher)
{
    const auto context = open_context(UCP_FEATURE_RMA | UCP_FEATURE_EXPORTED_MEMH);
    launcher.send(word::ready, "");
    host_counts counts;
    for (unsigned round = 0; round < options.rounds; ++round) {
        auto buffers = std::make_unique<buffers_of_round>(context.get(), options, round, counts);
        launcher.send(word::handles, buffers->handles());
        launcher.receive(word::moved); // here it is stopped
        buffers->verify();
        const auto begin = clock::now();
        buffers.reset();
        counts.unmap_us += microseconds_since(begin);
    }
    launcher.send(word::counts, as_json(counts));
    launcher.receive(word::end);
}

} // namespace examples
