#include "report.h"

#include "library.h"
#include "mpi_functions.h"
#include "settings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <format>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ucxl::mpi
{

namespace
{

// Datatypes that look alike share a row: programs make the same one again and again. Those without a name share the row
// of their constructor.
using row_key = std::pair<std::string, std::pair<std::size_t, std::size_t>>;

struct rows {
    std::mutex lock;
    std::map<row_key, type_figures> all;
};

rows& kept()
{
    static rows& only = *new rows;
    return only;
}

void add_to(type_figures& row, const type_figures& figures)
{
    row.length     = std::max(row.length, figures.length);
    row.num_blocks = std::max(row.num_blocks, figures.num_blocks);
    row.messages += figures.messages;
    row.copies += figures.copies;
    row.bytes += figures.bytes;
    row.left += figures.left;
    row.by_cpu += figures.by_cpu;
    if (figures.seconds_saved) {
        row.seconds_saved = row.seconds_saved.value_or(0) + *figures.seconds_saved;
    }
    row.why_not = figures.why_not.empty() ? row.why_not : figures.why_not;
}

void add(const type_figures& figures)
{
    if (figures.messages + figures.copies + figures.left == 0) {
        return;
    }
    add_to(figures.name.empty() ? kept().all[{"(" + figures.constructor + ")", {0, 0}}]
                                : kept().all[{figures.name, {figures.length, figures.num_blocks}}],
           figures);
}

std::string text_of(const std::string& name, const type_figures& row)
{
    return std::format("{:<24} {:>12} {:>10} {:>10} {:>10} {:>14} {:>14} {:>10} {:>10}  {}\n", name.substr(0, 24),
                       row.length, row.num_blocks, row.messages, row.copies, row.bytes, row.by_cpu,
                       row.seconds_saved ? std::format("{:.3f}", *row.seconds_saved * 1e3) : "-", row.left,
                       row.left > 0 ? row.why_not : "");
}

std::string name_of_process()
{
    int rank = 0;
    return library::has_world() && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS
               ? std::format("rank {}", rank)
               : std::format("process {}", getpid());
}

// The processes of a host write one after another, and a launcher reads what one has written before the next one
// writes. After a second each writes when it can.
class turn
{
public:
    turn()
    {
        const std::string path = std::format("/dev/shm/ucx-layout-report-{}", getuid());
        _file                  = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
        wait([this] { return _file < 0 || flock(_file, LOCK_EX | LOCK_NB) == 0; });
    }
    ~turn()
    {
        wait([] {
            int unread = 0;
            return ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0;
        });
        if (_file >= 0) {
            close(_file);
        }
    }
    turn(const turn&)            = delete;
    turn& operator=(const turn&) = delete;

private:
    template <typename Condition>
    static void wait(Condition is_true)
    {
        constexpr auto interval = std::chrono::milliseconds(2);
        for (int i = 0; i < 500 && !is_true(); ++i) {
            std::this_thread::sleep_for(interval);
        }
    }

    int _file = -1;
};

} // namespace

void report::note_end(known_type& type) noexcept
{
    if (!settings::get().has_report) {
        return;
    }
    try {
        type.release_windows();
        const std::lock_guard guard(kept().lock);
        add(type.figures());
    } catch (const std::bad_alloc&) {
        return; // a report without this datatype
    }
}

void report::print(const std::vector<known_type*>& types)
{
    if (!settings::get().has_report) {
        return;
    }
    for (known_type* const each : types) {
        note_end(*each);
    }
    const std::lock_guard guard(kept().lock);
    std::string text = std::format("ucx-layout-mpi: datatypes of {}\n{:<24} {:>12} {:>10} {:>10} {:>10} {:>14} {:>14} "
                                   "{:>10} {:>10}  {}\n",
                                   name_of_process(), "name", "longest, B", "blocks", "messages", "copies", "bytes",
                                   "by CPU", "saved, ms", "left", "why left to MPI");
    type_figures total;
    for (const auto& [key, row] : kept().all) {
        text += text_of(key.first, row);
        add_to(total, row);
    }
    if (const std::uint64_t unknown = _num_unknown.load(std::memory_order_relaxed); unknown > 0) {
        type_figures row;
        row.left    = unknown;
        row.why_not = "little was moved of each of these datatypes";
        text += text_of("(not looked at)", row);
        add_to(total, row);
    }
    total.why_not.clear();
    text += text_of("total", total);
    if (const std::uint64_t done = _num_done.load(std::memory_order_relaxed); done > 0) {
        text += std::format("ucx-layout-mpi: {} puts and gets were done without MPI\n", done);
    }
    const turn own;
    std::fwrite(text.data(), 1, text.size(), stderr);
}

void report::start() noexcept
{
    _is_counting.store(settings::get().has_report, std::memory_order_relaxed);
}

void report::print_nothing(const char* reason) noexcept
{
    if (settings::get().has_report) {
        std::fprintf(stderr, "ucx-layout-mpi: nothing is taken in %s: %s\n", name_of_process().c_str(), reason);
    }
}

} // namespace ucxl::mpi
