#include "team.h"

#include "shared.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace examples
{

using steady = std::chrono::steady_clock;

static constexpr unsigned max_team_size = 64;

struct team_board {
    struct slot {
        std::size_t length;
        char text[team::max_text_bytes];
    };
    std::atomic<bool> broken;
    std::atomic<unsigned> arrived; // at all barriers together
    slot slots[max_team_size];
};

void team::check_alive() const
{
    if (_board.broken.load(std::memory_order_relaxed)) {
        throw std::runtime_error("gave up: another process failed, or the time limit passed");
    }
}

void team::barrier()
{
    // Counts up: the barrier of this arrival is complete at the next multiple of the team's size.
    const unsigned mine = _board.arrived.fetch_add(1, std::memory_order_acq_rel);
    const unsigned full = (mine / _size + 1) * _size;
    while (_board.arrived.load(std::memory_order_acquire) < full) {
        check_alive();
        _idle();
        sched_yield();
    }
}

std::vector<std::string> team::gather(std::string_view mine)
{
    if (mine.size() > max_text_bytes) {
        throw std::runtime_error("text to gather is longer than max_text_bytes");
    }
    auto& own  = _board.slots[_rank];
    own.length = mine.size();
    std::copy(mine.begin(), mine.end(), own.text);
    barrier();
    std::vector<std::string> all;
    for (unsigned rank = 0; rank < _size; ++rank) {
        all.emplace_back(_board.slots[rank].text, _board.slots[rank].length);
    }
    barrier(); // nobody writes its next text before all have read this one
    return all;
}

static int run_member(team_board& board, unsigned rank, unsigned size, const std::function<void(team&)>& body)
{
    try {
        team self(board, rank, size);
        body(self);
        return 0;
    } catch (const std::exception& failure) {
        board.broken.store(true);
        std::fprintf(stderr, "process %u of %u: %s\n", rank, size, failure.what());
        return 1;
    }
}

namespace
{

class members
{
public:
    members()                          = default;
    members(const members&)            = delete;
    members& operator=(const members&) = delete;
    ~members() { kill_all(); }

    void add(pid_t pid) { _running.push_back(pid); }
    bool empty() const { return _running.empty(); }
    unsigned failed() const { return _failed; }

    void kill_all()
    {
        for (const pid_t pid : _running) {
            kill(pid, SIGKILL);
        }
        while (!_running.empty()) {
            reap(0);
        }
    }

    // Records the processes that have ended; flags are those of waitpid.
    void reap(int flags)
    {
        std::erase_if(_running, [&](pid_t pid) {
            int status        = 0;
            const pid_t ended = waitpid(pid, &status, flags);
            if (ended == 0 || (ended < 0 && errno == EINTR)) {
                return false;
            }
            if (WIFSIGNALED(status)) {
                std::fprintf(stderr, "a process of the team was ended by signal %d (%s)\n", WTERMSIG(status),
                             strsignal(WTERMSIG(status)));
            }
            _failed += status != 0;
            return true;
        });
    }

private:
    std::vector<pid_t> _running;
    unsigned _failed = 0;
};

} // namespace

static bool has_no_ucx_thread()
{
    const char* const vfs_enable = std::getenv("UCX_VFS_ENABLE");
    return vfs_enable != nullptr && std::string_view(vfs_enable) == "n";
}

void restart_without_ucx_thread(char** argv)
{
    if (has_no_ucx_thread()) {
        return;
    }
    if (setenv("UCX_VFS_ENABLE", "n", 1) == 0) {
        execv("/proc/self/exe", argv);
    }
    throw std::runtime_error(std::string("the program cannot start itself again: ") + std::strerror(errno));
}

unsigned run_team(unsigned size, std::chrono::seconds limit, const std::function<void(team&)>& body,
                  const std::function<void()>& tick)
{
    if (size == 0 || size > max_team_size) {
        throw std::runtime_error("a team has 1 to 64 processes");
    }
    if (!has_no_ucx_thread()) {
        throw std::logic_error("run_team without restart_without_ucx_thread");
    }
    const auto board   = make_shared_array<team_board>(1);
    const pid_t parent = getpid();
    members all;
    std::fflush(nullptr); // so that no child writes buffered text again
    for (unsigned rank = 0; rank < size; ++rank) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(1); // the parent was gone before the line above
            }
            const int status = run_member(board[0], rank, size, body);
            std::fflush(nullptr);
            _exit(status);
        }
        if (pid < 0) {
            throw std::runtime_error("fork failed");
        }
        all.add(pid);
    }

    constexpr auto grace = std::chrono::seconds(1);
    auto deadline        = steady::now() + limit;
    for (bool ending = false; !all.empty();) {
        all.reap(WNOHANG);
        tick();
        const bool late = steady::now() > deadline;
        if (ending && late) {
            all.kill_all();
        } else if (!ending && (late || all.failed() > 0)) {
            if (late) {
                std::fprintf(stderr, "no end after %lld s\n", static_cast<long long>(limit.count()));
            }
            ending = true;
            board[0].broken.store(true);
            deadline = steady::now() + grace;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    tick();
    return all.failed();
}

} // namespace examples
