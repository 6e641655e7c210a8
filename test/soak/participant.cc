#include "participant.h"

#include "integration/two_process/remote_key.h"
#include "support/check.h"
#include "support/random.h"

#include <algorithm>
#include <cstring>
#include <format>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::soak
{

namespace
{

using clock = std::chrono::steady_clock;

// For an operation with a process that lives. Whoever directs the round gives up later.
constexpr std::chrono::seconds patience{60};

ucp_tag_t tag_of(unsigned step, unsigned number)
{
    return (static_cast<ucp_tag_t>(step) << 32) | number;
}

// What an atomic operation adds, and to which of the words.
struct addition {
    std::uint64_t word, value;
};

std::vector<addition> additions_of(const operation& planned, std::uint64_t num_words)
{
    test::random from(planned.seed + 1);
    std::vector<addition> all(1 + from.below(16));
    for (addition& each : all) {
        each = {from.below(num_words), from.next()};
    }
    return all;
}

} // namespace

struct participant::task {
    const operation& planned;
    const unsigned step, number;
    std::optional<side> own{};
    std::vector<std::byte> foreign{}; // what the other side has at first
    ucp_rkey_h key        = nullptr;
    std::uint64_t address = 0;
    std::vector<std::byte> packed{}; // the key
    std::vector<void*> requests{};
    std::vector<std::uint64_t> added{}; // stays while the atomic operations run
    bool is_flushing    = false;
    bool has_ended      = false;
    bool was_abandoned  = false;
    ucs_status_t status = UCS_OK;

    task(const operation& one, unsigned in_step, unsigned at) : planned(one), step(in_step), number(at) {}
    ~task()
    {
        if (key != nullptr) {
            ucp_rkey_destroy(key);
        }
    }
};

participant::participant(const round_plan& plan, unsigned rank, int descriptor)
    : _plan(plan), _rank(rank), _link(descriptor),
      _context({.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64}),
      _worker(test::open_worker(_context.get())), _peers(plan.num_processes)
{
}

participant::~participant()
{
    if (!_plan.has_error_handling && std::ranges::any_of(_peers, &peer::is_dead)) {
        std::_Exit(0); // UCX still has operations that wait for it
    }
    _tasks.clear();
    ucp_worker_destroy(_worker);
}

void participant::handle(const note& told)
{
    switch (told.what) {
    case word::address: {
        ucp_ep_params_t params{};
        if (_plan.has_error_handling) {
            params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
            params.err_mode   = UCP_ERR_HANDLING_MODE_PEER;
        }
        params.err_handler.cb      = [](void*, ucp_ep_h, ucs_status_t) {}; // the director says who is dead
        _peers[told.rank].endpoint = test::connect(_worker, told.bytes, params);
        ++_num_addresses;
        break;
    }
    case word::key:
        for (const auto& each : _tasks) {
            if (each->number == told.number && each->step == told.step) {
                each->address = told.first;
                each->packed  = told.bytes;
            }
        }
        break;
    case word::dead:
        abandon(told.rank);
        break;
    default:
        _awaited = told;
        break;
    }
}

void participant::turn()
{
    bool is_idle = ucp_worker_progress(_worker) == 0;
    while (const auto told = _link.next()) {
        handle(*told);
        is_idle = false;
    }
    if (is_idle) {
        sched_yield();
    }
}

void participant::wait_for(word what, unsigned number)
{
    const auto deadline = clock::now() + 2 * patience;
    while (!_awaited || _awaited->what != what || _awaited->step != number) {
        test::check(clock::now() < deadline, "step {}: the director says nothing", number);
        turn();
    }
    _awaited.reset();
}

void participant::connect()
{
    const auto address = test::address_of(_worker);
    test::check(_link.tell({.what = word::address, .rank = _rank, .bytes = address}), "the director is gone");
    while (_num_addresses + 1 < _plan.num_processes) {
        turn();
    }
}

// The dead one neither answers nor takes what it was sent. What this process still waits for has to end with an error.
void participant::abandon(unsigned rank)
{
    peer& dead = _peers[rank];
    if (std::exchange(dead.is_dead, true) || dead.endpoint == nullptr) {
        return;
    }
    if (_plan.has_error_handling) {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = UCP_EP_CLOSE_FLAG_FORCE;
        void* const closed = ucp_ep_close_nbx(dead.endpoint, &param);
        if (UCS_PTR_IS_PTR(closed)) {
            ucp_request_free(closed); // when it ends
        }
    }
    dead.endpoint = nullptr;
    for (const auto& each : _tasks) {
        if (other_of(each->planned) == rank && !each->has_ended) {
            each->was_abandoned = true;
            each->has_ended     = !_plan.has_error_handling;
            for (void* const request : each->requests) {
                if (each->planned.kind == operation_kind::message && each->planned.to == _rank) {
                    ucp_request_cancel(_worker, request);
                }
            }
        }
    }
}

void participant::prepare(task& work)
{
    const operation& planned = work.planned;
    const auto layouts       = layouts_of(planned);
    const bool is_source     = planned.from == _rank;
    const auto seed          = planned.seed + (is_source ? 100 : 200);
    if (planned.kind == operation_kind::add && is_source) {
        return;
    }
    work.own.emplace(_context.get(), is_source ? planned.source : planned.target,
                     is_source ? *layouts.source : *layouts.target, seed);
    const test::spec& foreign = is_source ? *layouts.target : *layouts.source;
    work.foreign              = test::spec_memory(foreign, planned.seed + (is_source ? 200 : 100)).gather();
    if (!is_source && planned.kind != operation_kind::message) {
        test::check(_link.tell({.what   = word::key,
                                .rank   = planned.from,
                                .step   = work.step,
                                .number = work.number,
                                .first  = reinterpret_cast<std::uint64_t>(work.own->address()),
                                .bytes  = two_process::pack_key(_context.get(), work.own->memh())}),
                    "the director is gone");
    }
}

void participant::start_as_initiator(task& work)
{
    const operation& planned = work.planned;
    const auto endpoint      = _peers[planned.to].endpoint;
    ucp_request_param_t param{};
    if (planned.kind == operation_kind::message) {
        work.requests.push_back(ucp_tag_send_nbx(endpoint, work.own->address(), work.own->length(),
                                                 tag_of(work.step, work.number), &param));
        return;
    }
    test::check(!work.packed.empty(), "step {}, operation {}: no key came", work.step, work.number);
    work.status = ucp_ep_rkey_unpack(endpoint, work.packed.data(), &work.key);
    if (work.status != UCS_OK) {
        work.key = nullptr;
        return;
    }
    if (planned.kind == operation_kind::put) {
        work.requests.push_back(
            ucp_put_nbx(endpoint, work.own->address(), work.own->length(), work.address, work.key, &param));
    } else if (planned.kind == operation_kind::get) {
        work.requests.push_back(
            ucp_get_nbx(endpoint, work.own->address(), work.own->length(), work.address, work.key, &param));
    } else {
        const auto all = additions_of(planned, layouts_of(planned).length / 8);
        work.added.resize(all.size());
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype     = ucp_dt_make_contig(8);
        for (std::size_t i = 0; i < all.size(); ++i) {
            work.added[i] = all[i].value;
            work.requests.push_back(ucp_atomic_op_nbx(endpoint, UCP_ATOMIC_OP_ADD, &work.added[i], 1,
                                                      work.address + 8 * all[i].word, work.key, &param));
        }
    }
}

void participant::start(task& work)
{
    if (is_dead(other_of(work.planned))) {
        work.has_ended = work.was_abandoned = true;
        return;
    }
    if (work.planned.from == _rank) {
        start_as_initiator(work);
    } else if (work.planned.kind == operation_kind::message) {
        const ucp_request_param_t param{};
        work.requests.push_back(ucp_tag_recv_nbx(_worker, work.own->address(), work.own->length(),
                                                 tag_of(work.step, work.number), ~ucp_tag_t{0}, &param));
    }
}

bool participant::has_ended(task& work)
{
    if (work.has_ended) {
        return true;
    }
    for (void*& request : work.requests) {
        const auto status = UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) : UCS_PTR_RAW_STATUS(request);
        if (status == UCS_INPROGRESS) {
            return false;
        }
        work.status = work.status == UCS_OK ? status : work.status;
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
        request = UCS_STATUS_PTR(status);
    }
    const bool is_to_flush = work.planned.from == _rank && work.planned.kind != operation_kind::message &&
                             work.status == UCS_OK && !work.is_flushing && !is_dead(work.planned.to);
    if (is_to_flush) {
        const ucp_request_param_t param{};
        work.is_flushing = true;
        work.requests    = {ucp_ep_flush_nbx(_peers[work.planned.to].endpoint, &param)};
        return has_ended(work);
    }
    work.has_ended = true;
    return true;
}

void participant::finish_all(unsigned number)
{
    const auto deadline = clock::now() + patience;
    while (!std::ranges::all_of(_tasks, [this](const auto& each) { return has_ended(*each); })) {
        if (clock::now() > deadline) {
            std::string open;
            for (const auto& each : _tasks) {
                open +=
                    has_ended(*each) ? "" : std::format(" {}{}", each->number, each->was_abandoned ? " (dead)" : "");
            }
            test::check(false, "step {}: operations that never end:{}", number, open);
        }
        turn();
    }
}

// As if the other side had done what it was to do.
void participant::expect_result(task& work)
{
    const operation& planned = work.planned;
    const bool is_source     = planned.from == _rank;
    if (planned.kind == operation_kind::add) {
        if (is_source) {
            return;
        }
        auto bytes = work.own->bytes();
        std::vector<std::uint64_t> words(bytes.size() / 8);
        std::memcpy(words.data(), bytes.data(), bytes.size());
        for (const addition& each : additions_of(planned, words.size())) {
            words[each.word] += each.value;
        }
        std::memcpy(bytes.data(), words.data(), bytes.size());
        work.own->expect(bytes);
    } else if (is_source == (planned.kind == operation_kind::get)) {
        work.own->expect(work.foreign);
    }
}

void participant::look(unsigned number)
{
    std::uint64_t right = 0;
    std::string wrong;
    for (const auto& each : _tasks) {
        const bool counts = each->planned.from == _rank;
        if (each->was_abandoned || is_dead(other_of(each->planned))) {
            if (each->own) {
                each->own->expect_nothing();
            }
        } else if (each->status != UCS_OK) {
            wrong += std::format("operation {}: {}; ", each->number, ucs_status_string(each->status));
            continue;
        } else {
            expect_result(*each);
            right += counts ? 1 : 0;
        }
        const std::string difference = each->own ? each->own->difference() : "";
        if (!difference.empty()) {
            wrong += std::format("operation {}: {}; ", each->number, difference);
        }
    }
    const auto text = std::as_bytes(std::span(wrong));
    test::check(
        _link.tell(
            {.what = word::looked, .rank = _rank, .step = number, .first = right, .bytes = {text.begin(), text.end()}}),
        "the director is gone");
}

// The child sees the memory as it is now, and ends. Memory that the library shares is not there in children.
void participant::fork_once() const
{
    const pid_t child = fork();
    test::check(child >= 0, "fork: {}", std::strerror(errno));
    if (child == 0) {
        const bool is_right = std::ranges::all_of(_tasks, [](const auto& each) {
            return !each->own || each->own->is_shared() || each->own->difference().empty();
        });
        _exit(is_right ? 0 : 1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    test::check(status == 0, "a child saw other bytes than its parent, or died: status {:#x}", status);
}

void participant::run_step(unsigned number)
{
    const step& planned = _plan.steps[number];
    for (auto& each : _tasks) {
        if (each->was_abandoned && !_plan.has_error_handling) {
            _abandoned.push_back(std::move(each)); // UCX may use it until this process ends
        }
    }
    _tasks.clear();
    for (unsigned i = 0; i < planned.operations.size(); ++i) {
        const operation& each = planned.operations[i];
        if (each.from != _rank && each.to != _rank) {
            continue;
        }
        _tasks.push_back(std::make_unique<task>(each, number, i));
    }
    for (const auto& each : _tasks) {
        prepare(*each);
    }
    if (planned.disturbed == disturbance::fork && planned.victim == _rank) {
        fork_once();
    }
    test::check(_link.tell({.what = word::ready, .rank = _rank, .step = number}), "the director is gone");
    wait_for(word::go, number);
    for (const auto& each : _tasks) {
        start(*each);
    }
    finish_all(number);
    test::check(_link.tell({.what = word::done, .rank = _rank, .step = number}), "the director is gone");
    wait_for(word::look, number);
    look(number);
    // Nobody's window ends before all have looked: the next step has to begin first.
}

void participant::run()
{
    connect();
    for (unsigned number = 0; number < _plan.steps.size(); ++number) {
        run_step(number);
    }
    // The others may still progress what they have of this process.
    wait_for(word::go, static_cast<unsigned>(_plan.steps.size()));
}

} // namespace ucxl::soak
