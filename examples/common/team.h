// A few processes on one host that start together, exchange short texts, and end together.
//
// Invariant: nobody waits for ever. If a process fails, is killed, or the time limit passes, every wait of the others
// throws, and a second later the remaining processes are killed. The processes also end when their parent is killed.
//
// Example:
//     int main(int, char** argv)
//     {
//         restart_without_ucx_thread(argv);
//         return run_team(2, 60s, [](team& all) { all.gather("hello from " + std::to_string(all.rank())); });
//     }
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace examples
{

struct team_board; // memory shared by the processes

class team
{
public:
    static constexpr std::size_t max_text_bytes = std::size_t{1} << 16;

    team(team_board& board, unsigned rank, unsigned size) : _board(board), _rank(rank), _size(size) {}

    unsigned rank() const { return _rank; }
    unsigned size() const { return _size; }

    // Work to do while waiting for others, such as UCX progress. The others may need it to arrive.
    void while_waiting(std::function<void()> idle) { _idle = std::move(idle); }
    // Throws std::runtime_error if another process has failed or the time is over. Cheap.
    void check_alive() const;
    void barrier();
    // The texts of all processes, by rank. mine.size() <= max_text_bytes.
    std::vector<std::string> gather(std::string_view mine);

private:
    team_board& _board;
    unsigned _rank;
    unsigned _size;
    std::function<void()> _idle = [] {};
};

// For programs that fork and use UCX in the children: call it early in main. UCX's libraries start a thread before
// main, for their virtual file system. A lock that this thread holds at a fork stays locked in the child, where
// ucp_init could wait for it for ever. This call restarts the program from its beginning, as the same process, without
// that thread. Throws if it cannot.
void restart_without_ucx_thread(char** argv);

// Forks `size` processes that run body; needs restart_without_ucx_thread. Meanwhile it calls `tick` about 50 times a
// second in this process. Returns how many processes failed; each has reported its error on stderr.
unsigned run_team(
    unsigned size, std::chrono::seconds limit, const std::function<void(team&)>& body,
    const std::function<void()>& tick = [] {});

} // namespace examples
