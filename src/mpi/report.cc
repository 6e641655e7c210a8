#include "report.h"

#include "library.h"
#include "mpi_functions.h"
#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <format>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include <unistd.h>

namespace ucxl::mpi
{

namespace
{

// Datatypes that look alike share a row: programs make the same one again and again.
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

void add(const type_figures& figures)
{
    if (figures.messages + figures.copies + figures.left == 0) {
        return;
    }
    auto& row = kept().all[{figures.name, {figures.length, figures.num_blocks}}];
    row.messages += figures.messages;
    row.copies += figures.copies;
    row.bytes += figures.bytes;
    row.left += figures.left;
    row.by_cpu += figures.by_cpu;
    row.seconds_saved += figures.seconds_saved;
    row.why_not = figures.why_not.empty() ? row.why_not : figures.why_not;
}

std::string text_of(const row_key& key, const type_figures& row)
{
    const auto& [name, size] = key;
    return std::format("{:<24} {:>12} {:>10} {:>10} {:>10} {:>14} {:>14} {:>10.3f} {:>10}  {}\n",
                       name.empty() ? "-" : name.substr(0, 24), size.first, size.second, row.messages, row.copies,
                       row.bytes, row.by_cpu, row.seconds_saved * 1e3, row.left, row.left > 0 ? row.why_not : "");
}

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
    std::string own = std::format("process {}", getpid());
    if (int rank = 0; library::has_world() && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS) {
        own = std::format("rank {}", rank);
    }
    std::string text = std::format("ucx-layout-mpi: datatypes of {}\n{:<24} {:>12} {:>10} {:>10} {:>10} {:>14} {:>14} "
                                   "{:>10} {:>10}  {}\n",
                                   own, "name", "longest, B", "blocks", "messages", "copies", "bytes", "by CPU",
                                   "saved, ms", "left", "why left to MPI");
    for (const auto& [key, row] : kept().all) {
        text += text_of(key, row);
    }
    // One write, so that processes do not mix their lines.
    std::fwrite(text.data(), 1, text.size(), stderr);
}

} // namespace ucxl::mpi
