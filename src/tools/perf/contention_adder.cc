#include "contention.h"

#include "remote_memory.h"
#include "requests_in_flight.h"
#include "session.h"
#include "settings.h"
#include "tools/common/failure.h"
#include "word_account.h"

#include <chrono>
#include <cstdlib>

namespace ucxl::perf
{

namespace
{

using clock = std::chrono::steady_clock;

// The clock is read so seldom that it costs nothing.
constexpr std::uint64_t operations_per_look = 32;

contention_task receive_task(oob_socket& owner)
{
    const auto task = owner.receive_value<contention_task>(oob_kind::contention);
    if ((task.word_bytes != sizeof(std::uint32_t) && task.word_bytes != sizeof(std::uint64_t)) ||
        task.outstanding == 0 || task.outstanding > max_outstanding || task.operations > max_iterations) {
        tools::give_up("{} asks for {} operations on words of {} bytes, {} in flight", owner.peer_name(),
                       task.operations, task.word_bytes, task.outstanding);
    }
    return task;
}

class adder
{
public:
    adder(session& session, const remote_memory& variable, const contention_task& task)
        : _session(session), _variable(variable), _task(task),
          _requests(session, task.outstanding, "ucp_atomic_op_nbx"), _fetched(task.outstanding)
    {
        _param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        _param.datatype     = ucp_dt_make_contig(task.word_bytes);
    }

    contention_share run()
    {
        const auto begin = clock::now();
        while (!is_enough(begin)) {
            const unsigned slot = _requests.slot_of(_started);
            finish(slot);
            start(slot);
        }
        while (_finished < _started) {
            finish(_requests.slot_of(_finished));
        }
        _session.flush();
        const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
        return {.operations = _started, .fingerprints = _fingerprints, .seconds = seconds};
    }

private:
    bool is_enough(clock::time_point begin) const
    {
        if (_task.operations != 0) {
            return _started == _task.operations;
        }
        return _started != 0 && _started % operations_per_look == 0 &&
               std::chrono::duration<double>(clock::now() - begin).count() >= _task.seconds;
    }

    void start(unsigned slot)
    {
        _param.reply_buffer = &_fetched[slot];
        _requests.start(slot, ucp_atomic_op_nbx(_session.endpoint(), UCP_ATOMIC_OP_ADD, &_one, 1, _variable.address(0),
                                                _variable.key(), &_param));
        ++_started;
    }

    void finish(unsigned slot)
    {
        _requests.finish(slot);
        // Not in the first round of the slots.
        if (_finished < _started && _requests.slot_of(_finished) == slot) {
            _fingerprints += fingerprint(_fetched[slot] & word_mask(_task.word_bytes));
            ++_finished;
        }
    }

    session& _session;
    const remote_memory& _variable;
    contention_task _task;
    requests_in_flight _requests;
    std::vector<std::uint64_t> _fetched;
    const std::uint64_t _one = 1;
    ucp_request_param_t _param{};
    std::uint64_t _started      = 0;
    std::uint64_t _finished     = 0;
    std::uint64_t _fingerprints = 0;
};

} // namespace

void add_to_variable(const options& options, oob_socket& owner)
{
    session link(owner);
    link.open(features_of(errand::contention));
    contention_share share{};
    {
        const remote_memory variable = remote_memory::receive(owner, link.endpoint());
        const contention_task task   = receive_task(owner);
        if (!options.inherited) {
            fmt::print("contended_fadd: process {} of {}\n", task.process, task.processes);
            std::fflush(stdout);
        }
        link.barrier();
        try {
            share = adder(link, variable, task).run();
        } catch (const peer_failure&) {
            if (options.inherited) {
                // The parent has said why. UCX would only warn of each operation in flight when it is closed.
                std::_Exit(EXIT_FAILURE);
            }
            throw;
        }
    }
    owner.send_value(oob_kind::contention, share);
    link.close();
    if (!options.inherited) {
        fmt::print("{} operations in {:.3f} s\n", share.operations, share.seconds);
    }
}

} // namespace ucxl::perf
