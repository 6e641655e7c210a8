#include "role.h"

#include "dpu_link.h"
#include "imported_buffer.h"
#include "library_figures.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
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

struct dpu_counts {
    std::uint64_t imports = 0, keys_packed = 0, keys_unpacked = 0, gets = 0, puts = 0, get_bytes = 0, put_bytes = 0;
    double import_us = 0;
    double move_us   = 0; // keys included
};

// One round for one host.
class round_of_dpu
{
public:
    round_of_dpu(const role_options& options, unsigned round, dpu_link& link, dpu_counts& counts)
        : _options(options), _round(round), _link(link), _counts(counts)
    {
    }

    void import(std::string_view handles)
    {
        const auto begin = clock::now();
        for (unsigned peer = 0; peer < _options.plan.hosts; ++peer) {
            _sent.push_back(import_one(handles, to(peer)));
            _received.push_back(import_one(handles, from(peer)));
        }
        _counts.import_us += microseconds_since(begin);
    }

    // Returns when all messages from this host and to it have been moved, by whomever.
    void move()
    {
        const auto begin                       = clock::now();
        const std::vector<std::string> offered = _link.trade(offers());
        std::vector<remote_key> keys;
        std::vector<ucs_status_ptr_t> requests;
        for (unsigned peer = 0; peer < _options.plan.hosts; ++peer) {
            std::string_view rest = offered[peer];
            if (is_mine(from(peer), true)) {
                requests.push_back(get(peer, rest, keys));
            }
            if (is_mine(to(peer), false)) {
                requests.push_back(put(peer, rest, keys));
            }
        }
        for (unsigned peer = 0; peer < _options.plan.hosts; ++peer) {
            const ucp_request_param_t defaults{};
            requests.push_back(ucp_ep_flush_nbx(_link.endpoint(peer), &defaults));
        }
        _link.wait_all(requests);
        _link.trade(std::vector<std::string>(_options.plan.hosts)); // the others have finished, too
        _counts.move_us += microseconds_since(begin);
    }

private:
    using imported = std::unique_ptr<imported_buffer>;

    message_of_plan to(unsigned peer) const { return {.round = _round, .sender = _options.rank, .receiver = peer}; }
    message_of_plan from(unsigned peer) const { return {.round = _round, .sender = peer, .receiver = _options.rank}; }

    // Whether a get (or a put) moves the message. A get is for the receiver's process, a put for the sender's.
    bool is_mine(message_of_plan message, bool by_get) const
    {
        return _options.plan.length_bytes(message) != 0 && _options.plan.is_pulled(message) == by_get;
    }

    imported import_one(std::string_view& handles, message_of_plan message)
    {
        exported_buffer exported;
        exported.address = take_number(handles);
        exported.length  = take_number(handles);
        exported.handle  = take_text(handles);
        if (exported.length != _options.plan.length_bytes(message)) {
            throw std::runtime_error("the host has exported a buffer of another length");
        }
        if (exported.length == 0) {
            return nullptr;
        }
        ++_counts.imports;
        return std::make_unique<imported_buffer>(_link.context(), exported);
    }

    void offer(std::string& text, const imported_buffer& buffer)
    {
        append_number(text, reinterpret_cast<std::uintptr_t>(buffer.address()));
        append_text(text, buffer.packed_key());
        ++_counts.keys_packed;
    }

    // For each peer the keys of what its process moves.
    std::vector<std::string> offers()
    {
        std::vector<std::string> texts(_options.plan.hosts);
        for (unsigned peer = 0; peer < _options.plan.hosts; ++peer) {
            if (is_mine(to(peer), true)) {
                offer(texts[peer], *_sent[peer]);
            }
            if (is_mine(from(peer), false)) {
                offer(texts[peer], *_received[peer]);
            }
        }
        return texts;
    }

    std::uint64_t take_key(unsigned peer, std::string_view& offered, std::vector<remote_key>& keys)
    {
        const std::uint64_t address = take_number(offered);
        keys.emplace_back(_link.endpoint(peer), std::string(take_text(offered)));
        ++_counts.keys_unpacked;
        return address;
    }

    ucs_status_ptr_t get(unsigned peer, std::string_view& offered, std::vector<remote_key>& keys)
    {
        const imported_buffer& into     = *_received[peer];
        const std::uint64_t address     = take_key(peer, offered, keys);
        const ucp_request_param_t param = into.param();
        ++_counts.gets;
        _counts.get_bytes += into.length();
        return ucp_get_nbx(_link.endpoint(peer), into.address(), into.length(), address, keys.back().get(), &param);
    }

    ucs_status_ptr_t put(unsigned peer, std::string_view& offered, std::vector<remote_key>& keys)
    {
        const imported_buffer& source   = *_sent[peer];
        const std::uint64_t address     = take_key(peer, offered, keys);
        const ucp_request_param_t param = source.param();
        ++_counts.puts;
        _counts.put_bytes += source.length();
        return ucp_put_nbx(_link.endpoint(peer), source.address(), source.length(), address, keys.back().get(), &param);
    }

    const role_options& _options;
    unsigned _round;
    dpu_link& _link;
    dpu_counts& _counts;
    std::vector<imported> _sent;
    std::vector<imported> _received;
};

// Before it gives them, the launcher may want to know whether the device answers.
std::string receive_handles(control& launcher, dpu_link& link)
{
    control::message next = launcher.receive();
    for (; next.kind == word::try_device; next = launcher.receive()) {
        link.try_device();
        launcher.send(word::ready, "");
    }
    if (next.kind != word::handles) {
        throw std::runtime_error("the launcher has sent something else than handles");
    }
    return std::move(next.payload);
}

std::string as_json(const dpu_counts& counts)
{
    const nlohmann::ordered_json all = {{"imports", counts.imports},
                                        {"aliases", library_figure("aliases")},
                                        {"keys_packed", counts.keys_packed},
                                        {"keys_unpacked", counts.keys_unpacked},
                                        {"gets", counts.gets},
                                        {"puts", counts.puts},
                                        {"get_bytes", counts.get_bytes},
                                        {"put_bytes", counts.put_bytes},
                                        {"import_us", counts.import_us},
                                        {"move_us", counts.move_us}};
    return all.dump();
}

} // namespace

void play_dpu(const role_options& options, control& launcher)
{
    dpu_link link(launcher, options.rank, options.plan.hosts);
    dpu_counts counts;
    for (unsigned round = 0; round < options.rounds; ++round) {
        const std::string handles = receive_handles(launcher, link);
        {
            round_of_dpu current(options, round, link, counts);
            current.import(handles);
            current.move();
        }
        launcher.send(word::done, "");
    }
    const std::string text = as_json(counts);
    link.close();
    launcher.send(word::counts, text);
    launcher.receive(word::end);
}

} // namespace examples
