#include "participant.h"

#include "integration/two_process/remote_key.h"
#include "support/check.h"
#include "support/random.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <fstream>
#include <new>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::soak
{

namespace
{

using clock = std::chrono::steady_clock;

// For an operation with a process that lives. Whoever directs the round gives up later.
constexpr std::chrono::seconds patience{30};
// For what may never end because of UCX: more than its end takes where it does end.
constexpr std::chrono::seconds patience_with_ucx{2};
constexpr std::chrono::seconds listening{4};
constexpr std::size_t reserved_bytes = std::size_t{24} << 20, num_reserved_descriptors = 4;
// Of messages that are not operations.
constexpr ucp_tag_t connecting_tag = ucp_tag_t{1} << 62, probe_tag = ucp_tag_t{1} << 63;

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

// No more than the process started with, so that it can be taken back.
void limit(decltype(RLIMIT_AS) resource, rlim_t most)
{
    rlimit limits{};
    test::check(getrlimit(resource, &limits) == 0, "getrlimit: {}", std::strerror(errno));
    limits.rlim_cur = std::min(most, limits.rlim_max);
    test::check(setrlimit(resource, &limits) == 0, "setrlimit: {}", std::strerror(errno));
}

// Whether something could not be had. What a call returned is at the end of the text.
bool tells_shortage(const std::exception& error)
{
    const std::string text(error.what());
    return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
           std::ranges::any_of(std::array{UCS_ERR_NO_MEMORY, UCS_ERR_EXCEEDS_LIMIT, UCS_ERR_NO_RESOURCE},
                               [&](ucs_status_t each) { return text.ends_with(ucs_status_string(each)); });
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
    bool is_left_out    = false;  // one of the two cannot
    ucs_status_t status = UCS_OK; // UCS_INPROGRESS after the end: nobody waited for what would come

    task(const operation& one, unsigned in_step, unsigned at) : planned(one), step(in_step), number(at) {}
    ~task()
    {
        if (key != nullptr) {
            ucp_rkey_destroy(key);
        }
    }
};

participant::entry::entry()
    : context({.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64}),
      worker(test::open_worker(context.get()))
{
}

participant::participant(const round_plan& plan, unsigned rank, int descriptor)
    : _plan(plan), _rank(rank), _link(descriptor), _peers(plan.num_processes)
{
    for (unsigned i = 0; i < plan.num_contexts; ++i) {
        _entries.push_back(std::make_unique<entry>());
    }
}

participant::~participant()
{
    const bool is_waiting = std::ranges::any_of(_tasks, [this](const auto& each) { return !has_ended(*each); });
    if (is_waiting || !_abandoned.empty() ||
        (!_plan.has_error_handling && std::ranges::any_of(_peers, &peer::is_dead))) {
        std::_Exit(0); // UCX still has operations that wait for a dead one
    }
    _tasks.clear();
    for (const auto& each : _entries) {
        ucp_worker_destroy(each->worker);
    }
}

participant::entry& participant::entry_for(const task& work) const
{
    return entry_for(other_of(work.planned));
}

void participant::progress() const
{
    for (const auto& each : _entries) {
        ucp_worker_progress(each->worker);
    }
}

void participant::handle(const note& told)
{
    switch (told.what) {
    case word::address: {
        if (told.number != number_for(told.rank)) {
            break;
        }
        ucp_ep_params_t params{};
        if (_plan.has_error_handling) {
            params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
            params.err_mode   = UCP_ERR_HANDLING_MODE_PEER;
        }
        params.err_handler.cb      = [](void*, ucp_ep_h, ucs_status_t) {}; // the director says who is dead
        _peers[told.rank].endpoint = test::connect(entry_for(told.rank).worker, told.bytes, params);
        _peers[told.rank].address  = told.bytes;
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
    case word::cannot:
        for (const auto& each : _tasks) {
            if (each->number == told.number && each->step == told.step) {
                each->has_ended = each->is_left_out = true;
            }
        }
        break;
    case word::dead:
        abandon(told.rank);
        break;
    case word::probe:
        test::check(_link.tell({.what = word::probed, .rank = _rank, .first = ranks_heard_by_ucx_alone()}),
                    "the director is gone");
        break;
    default:
        _awaited = told;
        break;
    }
}

void participant::turn()
{
    bool is_idle = true;
    for (const auto& each : _entries) {
        is_idle = ucp_worker_progress(each->worker) == 0 && is_idle;
    }
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
    for (unsigned i = 0; i < _entries.size(); ++i) {
        test::check(
            _link.tell(
                {.what = word::address, .rank = _rank, .number = i, .bytes = test::address_of(_entries[i]->worker)}),
            "the director is gone");
    }
    while (_num_addresses + 1 < _plan.num_processes) {
        turn();
    }
    // UCX 1.18.1 ends a process whose peer dies before they are connected in both directions (docs/limits.md). What the
    // receiver acknowledges needs that.
    std::vector<std::pair<unsigned, void*>> requests; // with the rank
    const ucp_request_param_t param{};
    std::vector<std::byte> received(_plan.num_processes);
    const std::byte sent{};
    for (unsigned rank = 0; rank < _plan.num_processes; ++rank) {
        if (rank != _rank) {
            requests.emplace_back(rank, ucp_tag_recv_nbx(entry_for(rank).worker, &received[rank], 1,
                                                         connecting_tag | rank, ~ucp_tag_t{0}, &param));
            requests.emplace_back(
                rank, ucp_tag_send_sync_nbx(_peers[rank].endpoint, &sent, 1, connecting_tag | _rank, &param));
        }
    }
    const auto deadline = clock::now() + patience;
    for (const auto& [rank, request] : requests) {
        auto status = UCS_PTR_STATUS(request);
        while (UCS_PTR_IS_PTR(request) && (status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            test::check(clock::now() < deadline, "cannot connect: rank {} did not answer for {}", rank, patience);
            turn();
        }
        test::check(status == UCS_OK, "cannot connect to rank {}: {}", rank, ucs_status_string(status));
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
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
        if (other_of(each->planned) == rank && (each->requests.empty() ? !each->has_ended : !has_ended(*each))) {
            each->was_abandoned = true;
            if (!_plan.has_error_handling) {
                each->has_ended = true;
                each->status    = UCS_INPROGRESS;
            }
            for (void* const request : each->requests) {
                // A message that had come already has no request.
                if (each->planned.kind == operation_kind::message && each->planned.to == _rank &&
                    UCS_PTR_IS_PTR(request)) {
                    ucp_request_cancel(entry_for(rank).worker, request);
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
    const ucp_context_h context = entry_for(work).context.get();
    work.own.emplace(context, is_source ? planned.source : planned.target,
                     is_source ? *layouts.source : *layouts.target, seed);
    const test::spec& foreign = is_source ? *layouts.target : *layouts.source;
    work.foreign              = test::spec_memory(foreign, planned.seed + (is_source ? 200 : 100)).gather();
    if (!is_source && planned.kind != operation_kind::message) {
        test::check(_link.tell({.what   = word::key,
                                .rank   = planned.from,
                                .step   = work.step,
                                .number = work.number,
                                .first  = reinterpret_cast<std::uint64_t>(work.own->address()),
                                .bytes  = two_process::pack_key(context, work.own->memh())}),
                    "the director is gone");
    }
}

// Whoever is short of something may not get what it needs for an operation. Then both leave it out.
void participant::try_to_prepare(task& work)
{
    try {
        prepare(work);
    } catch (const std::exception& error) {
        if (_plan.little == shortage::none || _plan.has_little != _rank || !tells_shortage(error)) {
            throw;
        }
        work.own.reset();
        work.has_ended = work.is_left_out = true;
        test::check(
            _link.tell(
                {.what = word::cannot, .rank = other_of(work.planned), .step = work.step, .number = work.number}),
            "the director is gone");
    }
}

// From now on there is as little as the plan says.
void participant::become_short_of() const
{
    if (_plan.little == shortage::descriptors) {
        const int next = dup(0);
        close(next);
        limit(RLIMIT_NOFILE, static_cast<rlim_t>(next) + num_reserved_descriptors + _plan.left);
    } else {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        limit(RLIMIT_AS, pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{_plan.left} << 20));
    }
}

// Without memory for its fragments UCX ends a process, and over TCP it needs descriptors to choose a protocol, which it
// then does once for all (docs/limits.md). So there are some while operations run.
void participant::reserve()
{
    if (_plan.little == shortage::none || _plan.has_little != _rank) {
        return;
    }
    if (_plan.little == shortage::addresses) {
        _reserved_memory = mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return;
    }
    while (_reserved_descriptors.size() < num_reserved_descriptors) {
        const int each = dup(0);
        if (each < 0) {
            return;
        }
        _reserved_descriptors.push_back(each);
    }
}

void participant::release_reserve()
{
    if (_reserved_memory != MAP_FAILED) {
        munmap(std::exchange(_reserved_memory, MAP_FAILED), reserved_bytes);
    }
    std::ranges::for_each(std::exchange(_reserved_descriptors, {}), close);
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
    if (work.has_ended) {
        return; // one of the two cannot
    }
    if (is_dead(other_of(work.planned))) {
        work.has_ended = work.was_abandoned = true;
        return;
    }
    if (work.planned.from == _rank) {
        start_as_initiator(work);
    } else if (work.planned.kind == operation_kind::message) {
        const ucp_request_param_t param{};
        work.requests.push_back(ucp_tag_recv_nbx(entry_for(work).worker, work.own->address(), work.own->length(),
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

// UCX never ends the receive of an eager message of several fragments whose sender dies in between, whoever's memory it
// is (docs/limits.md). A message that is longer than 8 KB may go in this way unless the round has rendezvous for those.
bool participant::can_stay_open(const task& work) const
{
    return work.was_abandoned && work.planned.kind == operation_kind::message && work.planned.to == _rank &&
           !_plan.has_rendezvous && work.own->length() > 8000;
}

void participant::finish_all(unsigned number)
{
    const auto begin     = clock::now();
    const auto has_ended = [&](const auto& each) {
        return this->has_ended(*each) || (can_stay_open(*each) && clock::now() > begin + patience_with_ucx);
    };
    while (!std::ranges::all_of(_tasks, has_ended)) {
        if (clock::now() > begin + patience) {
            give_up(number);
        }
        turn();
    }
}

// The director finds out whether it is UCX.
void participant::give_up(unsigned number)
{
    std::string open;
    std::uint64_t others = 0;
    for (const auto& each : _tasks) {
        if (!has_ended(*each)) {
            others |= std::uint64_t{1} << other_of(each->planned);
            open += std::format(" {}, {}{};", each->number, text_of(each->planned),
                                each->was_abandoned ? ", with a dead one" : "");
        }
    }
    const std::string text = std::format("step {}: operations that never end:{}", number, open);
    const auto bytes       = std::as_bytes(std::span(text));
    test::check(_link.tell({.what  = word::stuck,
                            .rank  = _rank,
                            .step  = number,
                            .first = others,
                            .bytes = {bytes.begin(), bytes.end()}}),
                "the director is gone");
    wait_for(word::go, number); // which never comes
}

// Sends to everybody by a worker and endpoints of their own, host memory to host memory.
std::uint64_t participant::ranks_heard_by_ucx_alone()
{
    std::vector<ucp_worker_h> fresh;
    limit(RLIMIT_NOFILE, RLIM_INFINITY); // whoever is short of something has to open them, too
    limit(RLIMIT_AS, RLIM_INFINITY);
    for (const auto& each : _entries) {
        fresh.push_back(test::open_worker(each->context.get()));
    }
    const ucp_request_param_t param{};
    const std::uint64_t sent = 0;
    std::vector<std::uint64_t> received(_peers.size());
    std::vector<void*> requests(_peers.size());
    for (unsigned rank = 0; rank < _peers.size(); ++rank) {
        if (rank != _rank && !is_dead(rank)) {
            requests[rank] =
                ucp_tag_recv_nbx(entry_for(rank).worker, &received[rank], 8, probe_tag | rank, ~ucp_tag_t{0}, &param);
            ucp_tag_send_nbx(test::connect(fresh[number_for(rank)], _peers[rank].address), &sent, 8, probe_tag | _rank,
                             &param);
        }
    }
    for (const auto end = clock::now() + listening; clock::now() < end;) {
        std::ranges::for_each(fresh, ucp_worker_progress);
        progress();
    }
    std::uint64_t heard = 0;
    for (unsigned rank = 0; rank < _peers.size(); ++rank) {
        if (rank != _rank && !is_dead(rank) &&
            (!UCS_PTR_IS_PTR(requests[rank]) || ucp_request_check_status(requests[rank]) == UCS_OK)) {
            heard |= std::uint64_t{1} << rank;
        }
    }
    return heard; // what is open stays so: the round ends
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

// Who is dead may have done all of its part or none. But memory that is only read never changes, nor does any for an
// operation that nobody began, and a receive or a get that ended well has all its bytes, whoever died meanwhile.
void participant::expect_what_is_known(task& work)
{
    const operation& planned = work.planned;
    const bool is_initiator  = planned.from == _rank;
    const bool is_written    = is_initiator == (planned.kind == operation_kind::get);
    if (!work.own || !is_written || work.is_left_out) {
        return;
    }
    if (!is_initiator && planned.kind != operation_kind::message) {
        work.own->expect_nothing(); // only the other one knew the end
    } else if (work.is_flushing || (work.has_ended && work.status == UCS_OK && !work.requests.empty())) {
        expect_result(work);
    } else if (!work.requests.empty()) {
        work.own->expect_nothing();
    }
}

void participant::look(unsigned number)
{
    std::uint64_t right = 0;
    std::string wrong;
    for (const auto& each : _tasks) {
        const bool counts = each->planned.from == _rank;
        if (each->is_left_out || is_dead(other_of(each->planned))) {
            expect_what_is_known(*each);
        } else if (each->status != UCS_OK) {
            wrong += std::format("operation {}, {}: {}; ", each->number, text_of(each->planned),
                                 ucs_status_string(each->status));
            continue;
        } else {
            expect_result(*each);
            right += counts ? 1 : 0;
        }
        const std::string difference = each->own ? each->own->difference() : "";
        if (!difference.empty()) {
            wrong += std::format("operation {}, {}: {}; ", each->number, text_of(each->planned), difference);
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
        if (each->was_abandoned && !each->requests.empty() && (!_plan.has_error_handling || !has_ended(*each))) {
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
    reserve();
    for (const auto& each : _tasks) {
        try_to_prepare(*each);
    }
    release_reserve();
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
        if (number == 1 && _plan.little != shortage::none && _plan.has_little == _rank) {
            become_short_of();
        }
        run_step(number);
    }
    // The others may still progress what they have of this process.
    wait_for(word::go, static_cast<unsigned>(_plan.steps.size()));
}

} // namespace ucxl::soak
