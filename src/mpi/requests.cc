#include "requests.h"

#include "implementation.h"
#include "library.h"
#include "settings.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

namespace ucxl::mpi
{

namespace
{

// Chains of what requests hold, by handle. Nothing is allocated to add to it, so adding cannot fail: a request whose
// bytes are not unpacked would be a wrong result.
struct request_table {
    static constexpr std::size_t num_chains = 1024;

    std::mutex lock;
    std::condition_variable left_call;
    std::array<held*, num_chains> chains{};
    // Those that the program has freed while they were running, the oldest first.
    held* freed      = nullptr;
    held** freed_end = &freed;
    // Those whose things stay until MPI has ended.
    held* kept = nullptr;

    held*& chain_of(MPI_Request request)
    {
        return chains[((number_of(request) * 0x9e3779b97f4a7c15ULL) >> 40) % num_chains];
    }
};

// Not destroyed at exit: other threads may still be in MPI.
request_table& table()
{
    static request_table& only = *new request_table;
    return only;
}

#ifdef OPEN_MPI
// Whoever asks for the status of a request does not hear of its errors.
struct errors_set_aside {
    errors_set_aside() {}
};
#else
// MPICH calls the handlers of these communicators if it is asked for the status of a request that failed, and the usual
// handler ends the job.
class errors_set_aside
{
public:
    errors_set_aside() : _guard(lock()), _is_needed(ends_job_when_asked())
    {
        for (std::size_t i = 0; i < _comms.size() && _is_needed; ++i) {
            PMPI_Comm_get_errhandler(_comms[i], &_handlers[i]);
            if (is_set(i)) {
                PMPI_Comm_set_errhandler(_comms[i], MPI_ERRORS_RETURN);
            }
        }
    }
    errors_set_aside(const errors_set_aside&)            = delete;
    errors_set_aside& operator=(const errors_set_aside&) = delete;
    ~errors_set_aside()
    {
        for (std::size_t i = 0; i < _comms.size() && _is_needed; ++i) {
            if (is_set(i)) {
                PMPI_Comm_set_errhandler(_comms[i], _handlers[i]);
            }
            PMPI_Errhandler_free(&_handlers[i]);
        }
    }

private:
    static bool ends_job_when_asked()
    {
        return implementation_below() != implementation::openmpi && library::has_world();
    }
    // As long as the program sets none for MPI_COMM_SELF, errors go to that of MPI_COMM_WORLD, and MPI says that it is
    // the usual one. To set that would end this.
    bool is_set(std::size_t i) const { return _comms[i] != MPI_COMM_SELF || _handlers[i] != MPI_ERRORS_ARE_FATAL; }
    // Another thread must not take what is set here for what the program has set. MPI may call the program meanwhile,
    // which may come here again.
    static std::recursive_mutex& lock()
    {
        static std::recursive_mutex& only = *new std::recursive_mutex;
        return only;
    }

    const std::lock_guard<std::recursive_mutex> _guard;
    const bool _is_needed;
    const std::array<MPI_Comm, 2> _comms{MPI_COMM_WORLD, MPI_COMM_SELF};
    std::array<MPI_Errhandler, 2> _handlers{};
};
#endif

} // namespace

constinit std::atomic<std::size_t> requests::_number{0};
constinit std::atomic<bool> requests::_has_freed{false};

// Under the lock.
held* requests::remove(MPI_Request request) noexcept
{
    for (held** link = &table().chain_of(request); *link != nullptr; link = &(*link)->_next) {
        if ((*link)->_request == request) {
            held* const found = *link;
            *link             = found->_next;
            _number.fetch_sub(1, std::memory_order_relaxed);
            return found;
        }
    }
    return nullptr;
}

// Under the lock, as the next one.
void requests::enter_call(held& things) noexcept
{
    if (bool* const flag = things.in_call()) {
        *flag = true;
    }
}

void requests::leave_call(held& things) noexcept
{
    if (bool* const flag = things.in_call()) {
        *flag = false;
        table().left_call.notify_all();
    }
}

void requests::insert(held* things) noexcept
{
    held_ptr ended; // released after the lock
    const std::lock_guard guard(table().lock);
    leave_call(*things);
    // A handle that is there already is that of a request that ended unseen, or the one that MPI gives to all requests
    // that end at once. Or that of a persistent one that failed in a call of another thread, which releases it.
    ended.reset(remove(things->_request));
    if (ended != nullptr && ended->_is_asked) {
        ended.release()->_is_replaced = true;
    }
    held*& chain  = table().chain_of(things->_request);
    things->_next = chain;
    chain         = things;
    _number.fetch_add(1, std::memory_order_relaxed);
}

bool requests::has_ended(MPI_Request request) noexcept
{
    int has_ended = 0;
    return PMPI_Request_get_status(request, &has_ended, MPI_STATUS_IGNORE) == MPI_SUCCESS && has_ended != 0;
}

bool requests::has_ended_unheard(MPI_Request request, bool& has_failed) noexcept
{
    const errors_set_aside quiet;
    int has_ended = 0;
    has_failed    = PMPI_Request_get_status(request, &has_ended, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    return has_failed || has_ended != 0;
}

void requests::end(held& things, bool has_failed) noexcept
{
    const std::lock_guard guard(things._lock);
    if (things._is_running) {
        if (has_failed) {
            things.give_up();
        } else if (things.must_end()) {
            things.end();
        }
        things._is_running = false;
    }
    if (things.in_call() != nullptr) {
        const std::lock_guard table_guard(table().lock);
        leave_call(things);
    }
}

void requests::hold(MPI_Request request, held_ptr things) noexcept
{
    things->_request    = request;
    things->_is_running = !things->is_persistent;
    // MPI may give one handle to all requests that end at once, so what is to be done at their end is done now.
    if (things->_is_running && things->must_end() && has_ended(request)) {
        end(*things);
        return;
    }
    insert(things.release());
}

held_ptr requests::take(MPI_Request request) noexcept
{
    const std::lock_guard guard(table().lock);
    held_ptr things(remove(request));
    if (things != nullptr) {
        enter_call(*things);
    }
    return things;
}

held* requests::find(MPI_Request request) noexcept
{
    const std::lock_guard guard(table().lock);
    return look_up(request);
}

// Under the lock.
held* requests::look_up(MPI_Request request) noexcept
{
    for (held* each = table().chain_of(request); each != nullptr; each = each->_next) {
        if (each->_request == request) {
            return each;
        }
    }
    return nullptr;
}

bool requests::is_over(MPI_Request request, const bool& is_in_call) noexcept
{
    std::unique_lock guard(table().lock);
    table().left_call.wait(guard, [&] { return !is_in_call; });
    bool is_there = look_up(request) != nullptr;
    for (const held* each = table().freed; each != nullptr && !is_there; each = each->_next) {
        is_there = each->_request == request;
    }
    return is_there && has_ended(request);
}

bool requests::may_be_asked(MPI_Request request) noexcept
{
    held* const things = request == MPI_REQUEST_NULL ? nullptr : find(request);
    return things != nullptr && things->in_call() != nullptr;
}

void requests::begin(int count, const MPI_Request* array) noexcept
{
    if (!any() || count <= 0 || array == nullptr) [[likely]] {
        return;
    }
    for (const MPI_Request each : std::span(array, static_cast<std::size_t>(count))) {
        held* const things = find(each);
        if (things != nullptr && things->is_persistent) {
            const std::lock_guard guard(things->_lock);
            things->begin();
            things->_is_running = true;
        }
    }
}

void requests::cancel_begin(int count, const MPI_Request* array) noexcept
{
    if (!any() || count <= 0 || array == nullptr) [[likely]] {
        return;
    }
    for (const MPI_Request each : std::span(array, static_cast<std::size_t>(count))) {
        held* const things = find(each);
        if (things != nullptr && things->is_persistent) {
            const std::lock_guard guard(things->_lock);
            things->_is_running = false;
        }
    }
}

void requests::note_end(MPI_Request request) noexcept
{
    if (any()) [[unlikely]] {
        if (held* const things = find(request)) {
            end(*things);
        }
    }
}

void requests::keep_freed(held_ptr things) noexcept
{
    const std::lock_guard guard(table().lock);
    leave_call(*things);
    things->_next      = nullptr;
    *table().freed_end = things.get();
    table().freed_end  = &things.release()->_next;
    _has_freed.store(true, std::memory_order_relaxed);
}

held_ptr requests::take_freed() noexcept
{
    const std::lock_guard guard(table().lock);
    held_ptr oldest(table().freed);
    if (oldest != nullptr) {
        enter_call(*oldest);
        table().freed = oldest->_next;
        if (table().freed == nullptr) {
            table().freed_end = &table().freed;
            _has_freed.store(false, std::memory_order_relaxed);
        }
    }
    return oldest;
}

// False if it is still running.
bool requests::end_freed(held& things) noexcept
{
    MPI_Request request = things._request;
    bool has_failed     = false;
    if (!has_ended_unheard(request, has_failed)) {
        return false;
    }
    end(things, has_failed);
    PMPI_Request_free(&request);
    return true;
}

// More than are freed at a time, so that a program that always frees its requests has few that hold something.
void requests::end_some_freed() noexcept
{
    constexpr int at_most = 4;
    for (int i = 0; i < at_most; ++i) {
        held_ptr things = take_freed();
        if (things == nullptr) {
            return;
        }
        if (!end_freed(*things)) {
            keep_freed(std::move(things));
        }
    }
}

// MPICH would not complete them any more, Open MPI not all of them. But nobody may ever be there for one, so this ends
// soon. Nothing is cancelled: the peer may be about to send.
void requests::hand_over_freed() noexcept
{
    using clock             = std::chrono::steady_clock;
    constexpr auto patience = std::chrono::seconds(3);
    auto latest             = clock::now() + patience;
    unsigned num_lost       = 0;
    while (held_ptr things = take_freed()) {
        if (end_freed(*things)) {
            latest = clock::now() + patience;
        } else if (clock::now() < latest) {
            keep_freed(std::move(things)); // behind the others
            std::this_thread::yield();
        } else {
            num_lost += things->must_end() ? 1 : 0;
            PMPI_Request_free(&things->_request);
            keep_until_end(std::move(things));
        }
    }
    if (num_lost > 0) {
        log_warn("%u requests that the program has freed had not ended before MPI: what arrives for them is lost",
                 num_lost);
    }
}

void requests::keep_until_end(held_ptr things) noexcept
{
    const std::lock_guard guard(table().lock);
    leave_call(*things);
    things->_next = table().kept;
    table().kept  = things.release();
}

int requests::free(MPI_Request* request, int (*next)(MPI_Request*)) noexcept
{
    end_some_freed();
    held_ptr things = take(*request);
    if (things == nullptr) {
        return next(request);
    }
    bool has_failed       = false;
    const bool is_running = !has_ended_unheard(*request, has_failed);
    if (is_running && (things->is_message || implementation_below() != implementation::openmpi)) {
        keep_freed(std::move(things));
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    const int result = next(request);
    if (result == MPI_SUCCESS && is_running) { // nobody says any more when it has ended
        keep_until_end(std::move(things));
    } else if (result == MPI_SUCCESS) {
        end(*things, has_failed);
    } else {
        insert(things.release());
    }
    return result;
}

bool requests::keep_all() noexcept
{
    const std::lock_guard guard(table().lock);
    const auto keep = [](held*& chain) {
        while (chain != nullptr) {
            held* const each = chain;
            chain            = each->_next;
            each->_next      = table().kept;
            table().kept     = each;
        }
    };
    keep(table().freed);
    table().freed_end = &table().freed;
    _has_freed.store(false, std::memory_order_relaxed);
    for (held*& chain : table().chains) {
        keep(chain);
    }
    _number.store(0, std::memory_order_relaxed);
    bool any = false;
    for (const held* each = table().kept; each != nullptr; each = each->_next) {
        any = any || each->_is_running;
    }
    return any;
}

void requests::release_kept() noexcept
{
    held* all = nullptr;
    {
        const std::lock_guard guard(table().lock);
        all = std::exchange(table().kept, nullptr);
    }
    while (all != nullptr) {
        const held_ptr ended(all);
        all = ended->_next;
    }
}

void ending_requests::take() noexcept
{
    const std::lock_guard guard(table().lock);
    for (MPI_Request& each : std::span(_array, static_cast<std::size_t>(_count))) {
        held* const things = each == MPI_REQUEST_NULL ? nullptr : requests::look_up(each);
        if (things != nullptr && things->is_persistent) {
            if (!things->_is_asked) { // else the program names it twice
                things->_is_asked   = true;
                things->_place      = &each;
                things->_next_asked = _persistent;
                _persistent         = things;
            }
        } else if (things != nullptr) {
            requests::remove(each);
            requests::enter_call(*things);
            things->_place = &each;
            things->_next  = _taken;
            _taken         = things;
        }
    }
}

int end_results::error_class(int result) noexcept
{
    int found = MPI_SUCCESS;
    return PMPI_Error_class(result, &found) == MPI_SUCCESS ? found : MPI_ERR_UNKNOWN;
}

end_results::fate end_results::fate_of(std::ptrdiff_t index) const noexcept
{
    const std::span named(indices, indices == nullptr ? 0 : static_cast<std::size_t>(number));
    const auto found = std::ranges::find(named, index);
    if ((flag != nullptr && of_call == MPI_SUCCESS && *flag == 0) || (indices != nullptr && found == named.end())) {
        return fate::unnamed;
    }
    if (of_call == MPI_SUCCESS) {
        return fate::ended;
    }
    if (statuses == nullptr || error_class(of_call) != MPI_ERR_IN_STATUS) {
        return fate::unknown;
    }
    switch (error_class(statuses[indices == nullptr ? index : found - named.begin()].MPI_ERROR)) {
    case MPI_SUCCESS:
        return fate::ended;
    case MPI_ERR_PENDING:
        return fate::unnamed;
    default:
        return fate::failed;
    }
}

bool ending_requests::may_unpack() const noexcept
{
    bool any = _persistent != nullptr;
    for (const held* each = _taken; each != nullptr; each = each->_next) {
        any = any || each->must_end();
    }
    return any;
}

void ending_requests::put_back(const end_results& results) noexcept
{
    while (_taken != nullptr) {
        held_ptr things(_taken);
        _taken = things->_next;
        if (*things->_place == things->_request) { // still running
            requests::insert(things.release());
        } else {
            // Open MPI ends all that failed, and may name one of them only.
            requests::end(*things, results.of_call != MPI_SUCCESS &&
                                       results.fate_of(things->_place - _array) != end_results::fate::ended);
        }
    }
}

// Ends the call. What the request holds, if MPI has ended it for good: Open MPI frees a persistent one that failed, and
// may have given its handle to another one already.
held_ptr requests::leave_asked(held& things) noexcept
{
    const std::lock_guard guard(table().lock);
    things._is_asked = false;
    if (!things._is_replaced && *things._place == things._request) {
        return nullptr;
    }
    return held_ptr(things._is_replaced ? &things : remove(things._request));
}

// MPI is asked for the status only where the call does not say enough: MPICH completes a persistent request when it is
// asked, and no later call would name it.
void ending_requests::end_persistent(const end_results& results) noexcept
{
    using fate = end_results::fate;
    while (_persistent != nullptr) {
        held& things     = *_persistent;
        const fate found = results.fate_of(things._place - _array);
        _persistent      = things._next_asked;
        if (const held_ptr ended = requests::leave_asked(things)) {
            requests::end(*ended, true);
        } else if (found == fate::ended || found == fate::failed) {
            requests::end(things, found == fate::failed);
        } else if (found == fate::unknown && things._is_running && requests::has_ended(things._request)) {
            requests::end(things, true);
        }
    }
}

} // namespace ucxl::mpi
