#include "contention.h"

#include "end_memory.h"
#include "layout_image.h"
#include "remote_memory.h"
#include "tools/common/failure.h"
#include "word_account.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <sched.h>

namespace ucxl::perf
{

namespace
{

constexpr std::size_t max_address_length = 1 << 16;

class variable
{
public:
    variable(ucp_process& owner, memory_kind kind)
        : _word(anonymous_mapping::create(sizeof(std::uint64_t))),
          _memory(end_memory::create(owner, {_word.data(), sizeof(std::uint64_t)}, kind))
    {
        _memory.publish();
    }

    exposed_memory exposed() const { return _memory.exposed(); }

    std::uint64_t value()
    {
        _memory.collect();
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(_word.data())).load();
    }

private:
    anonymous_mapping _word; // starts as 0
    end_memory _memory;
};

class contention_owner
{
public:
    contention_owner(const options& options, std::span<oob_socket> processes)
        : _options(options), _processes(processes), _own(features_of(errand::contention)),
          _variable(_own, options.memory.remote)
    {
    }

    bool run();
    // After a failure. The variable stays until then: UCX ends a process that uses a key of memory that is gone.
    void wait_for_ends();

private:
    std::vector<std::vector<std::byte>> gather(oob_kind kind, std::size_t max_length);
    // What a session does at the other end.
    void barrier();
    void hand_out_tasks();
    std::vector<contention_share> gather_shares();
    void print_head() const;

    std::uint32_t word_bytes() const
    {
        return _options.sizes.empty() ? sizeof(std::uint64_t) : static_cast<std::uint32_t>(_options.sizes.front());
    }
    std::uint32_t outstanding() const { return _options.outstanding.value_or(1); }

    const options& _options;
    std::span<oob_socket> _processes;
    ucp_process _own;
    variable _variable;
};

// Progresses UCX meanwhile, because without atomic operations in hardware this process does those of the others.
std::vector<std::vector<std::byte>> contention_owner::gather(oob_kind kind, std::size_t max_length)
{
    // A look takes a system call for each process.
    constexpr unsigned rounds_per_look = 256;
    std::vector<std::vector<std::byte>> messages(_processes.size());
    std::vector<bool> has_come(_processes.size(), false);
    for (std::size_t missing = _processes.size(); missing != 0;) {
        for (std::size_t i = 0; i < _processes.size(); ++i) {
            if (has_come[i]) {
                _processes[i].check_peer();
            } else if (_processes[i].readable()) {
                messages[i] = _processes[i].receive(kind, max_length);
                has_come[i] = true;
                --missing;
            }
        }
        unsigned events = 0;
        for (unsigned round = 0; round < rounds_per_look; ++round) {
            events += ucp_worker_progress(_own.worker());
        }
        if (events == 0) {
            sched_yield();
        }
    }
    return messages;
}

void contention_owner::barrier()
{
    gather(oob_kind::done, 0);
    for (oob_socket& process : _processes) {
        process.send(oob_kind::done, {});
    }
}

void contention_owner::hand_out_tasks()
{
    contention_task task{.process     = 0,
                         .processes   = static_cast<std::uint32_t>(_processes.size()),
                         .word_bytes  = word_bytes(),
                         .outstanding = outstanding(),
                         .operations  = _options.iterations,
                         .seconds     = _options.seconds};
    for (oob_socket& process : _processes) {
        remote_memory::send(process, _own.context(), _variable.exposed());
        process.send_value(oob_kind::contention, task);
        ++task.process;
    }
}

std::vector<contention_share> contention_owner::gather_shares()
{
    std::vector<contention_share> shares;
    const auto messages = gather(oob_kind::contention, sizeof(contention_share));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        contention_share share{};
        if (messages[i].size() != sizeof(share)) {
            tools::give_up("{} sent {} bytes where {} were expected", _processes[i].peer_name(), messages[i].size(),
                           sizeof(share));
        }
        std::memcpy(&share, messages[i].data(), sizeof(share));
        if (share.operations == 0 || share.operations > max_iterations || !(share.seconds > 0)) {
            tools::give_up("{} says that it added {} times in {} s", _processes[i].peer_name(), share.operations,
                           share.seconds);
        }
        shares.push_back(share);
    }
    return shares;
}

void contention_owner::print_head() const
{
    fmt::print("contended_fadd: {} processes add 1 to one word of {} bytes in {} memory; {} in flight each\n",
               _processes.size(), word_bytes(), info_of(_options.memory.remote).name, outstanding());
    std::fflush(stdout);
}

double rate_of(const contention_share& share)
{
    return static_cast<double>(share.operations) / share.seconds;
}

void print_shares(const std::vector<contention_share>& shares, std::uint64_t total)
{
    constexpr const char* line = "{:>12} {:>14} {:>11.3f} {:>14.0f}\n";
    fmt::print("{:>12} {:>14} {:>11} {:>14}\n", "process", "operations", "seconds", "rate (op/s)");
    double longest = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        fmt::print(fmt::runtime(line), i, shares[i].operations, shares[i].seconds, rate_of(shares[i]));
        longest = std::max(longest, shares[i].seconds);
    }
    fmt::print(fmt::runtime(line), "total", total, longest, static_cast<double>(total) / longest);
    const auto [slowest, fastest] = std::ranges::minmax_element(shares, {}, rate_of);
    fmt::print(fmt::runtime(line), "min rate", slowest->operations, slowest->seconds, rate_of(*slowest));
    fmt::print(fmt::runtime(line), "max rate", fastest->operations, fastest->seconds, rate_of(*fastest));
}

void contention_owner::wait_for_ends()
{
    constexpr std::chrono::seconds patience{5};
    const auto deadline  = std::chrono::steady_clock::now() + patience;
    const auto has_ended = [](const oob_socket& process) { return process.has_ended(); };
    while (!std::ranges::all_of(_processes, has_ended) && std::chrono::steady_clock::now() < deadline) {
        ucp_worker_progress(_own.worker());
        sched_yield();
    }
}

bool contention_owner::run()
{
    for (oob_socket& process : _processes) {
        process.send(oob_kind::address, _own.address());
    }
    gather(oob_kind::address, max_address_length); // only the others start operations
    barrier();
    print_head();
    hand_out_tasks();
    barrier();
    const std::vector<contention_share> shares = gather_shares();
    const std::uint64_t final_value            = _variable.value();
    barrier(); // before the others close their endpoints, and after it
    barrier();

    const contention_verdict verdict = judge(shares, word_bytes(), final_value);
    print_shares(shares, verdict.total);
    if (!verdict.once_each) {
        fmt::print("the values from 0 to {} were not fetched once each\n", verdict.total - 1);
    }
    fmt::print("final value {} of {}: {}\n", verdict.final_value, verdict.expected,
               verdict.is_right() ? "right" : "wrong");
    std::fflush(stdout);
    return verdict.is_right();
}

} // namespace

contention_verdict judge(std::span<const contention_share> shares, std::size_t word_bytes, std::uint64_t value)
{
    const std::uint64_t mask   = word_mask(word_bytes);
    std::uint64_t total        = 0;
    std::uint64_t fingerprints = 0;
    for (const contention_share& share : shares) {
        total += share.operations;
        fingerprints += share.fingerprints;
    }
    return {.total       = total,
            .final_value = value & mask,
            .expected    = total & mask,
            .once_each   = fingerprints == fingerprint_of_range(0, total, mask)};
}

bool own_variable(const options& options, std::span<oob_socket> processes)
{
    std::optional<contention_owner> owner;
    try {
        owner.emplace(options, processes);
        return owner->run();
    } catch (const std::exception& error) {
        for (oob_socket& process : processes) {
            process.send_failure(error.what());
        }
        if (owner) {
            owner->wait_for_ends();
        }
        throw;
    }
}

} // namespace ucxl::perf
