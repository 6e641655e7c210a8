// A few processes on one host that start together, exchange small texts, and end together.
//
// Invariant: nobody waits for ever. When a process fails, is killed, or the time limit passes, every wait of the
// others throws, and whoever is still there a second later is killed. The processes also end when the one that started
// them is killed.
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

    // Work to do while waiting for others, such as UCX progress; it may be needed for the others to arrive.
    void while_waiting(std::function<void()> idle) { _idle = std::move(idle); }
    // Throws std::runtime_error when another process has failed or the time is over. Cheap.
    void check_alive() const;
    void barrier();
    // Everybody's text, by rank. mine.size() <= max_text_bytes.
    std::vector<std::string> gather(std::string_view mine);

private:
    team_board& _board;
    unsigned _rank;
    unsigned _size;
    std::function<void()> _idle = [] {};
};

// To be called early in main by a program that forks and uses UCX in the children. UCX's libraries start a thread
// before main, for their virtual file system, and what that has locked in the moment of a fork stays locked in the
// child: ucp_init there could wait for ever. This starts the program from its beginning, as the same process, with that
// thread switched off. Throws when it cannot.
void restart_without_ucx_thread(char** argv);

// Forks `size` processes that run body; needs restart_without_ucx_thread. Calls `tick` about 50 times a second
// meanwhile, in this process. Returns how many did not end well; each has said why on stderr.
unsigned run_team(
    unsigned size, std::chrono::seconds limit, const std::function<void(team&)>& body,
    const std::function<void()>& tick = [] {});

} // namespace examples
