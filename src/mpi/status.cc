#include "status.h"

#include "implementation.h"
#include "settings.h"
#include "static_arrays.h"
#include "sys/heap_memory.h"
#include "ucp_datatypes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

namespace ucxl::mpi
{

namespace
{

// By what launchers tell their processes: sessions have no world, and MPI may not have started. A process without a
// launcher is the first one.
bool is_first_process()
{
    for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
        if (const char* const rank = std::getenv(name)) {
            return std::string(rank) == "0";
        }
    }
    return true;
}

// The first line of what MPI says, up to the first comma: "Open MPI v5.0.7", "MPICH 4.2.1".
std::string name_of_mpi()
{
    std::string line(library_version().text());
    line.resize(std::min(line.find_first_of(",\n"), line.size()));
    std::ranges::replace(line, '\t', ' ');
    const auto repeated = std::ranges::unique(line, [](char a, char b) { return a == ' ' && b == ' '; });
    line.erase(repeated.begin(), repeated.end());
    constexpr std::string_view word = " Version:";
    if (const std::size_t found = line.find(word); found != std::string::npos) {
        line.erase(found, word.size());
    }
    return line.empty() ? "MPI" : line;
}

// What is shared, as the end of a sentence.
std::string shared_memory()
{
    const bool has_heap      = find_heap_memory() != nullptr;
    const std::size_t arrays = static_arrays::length() >> 20;
    std::string text         = has_heap ? ", with a heap in shared memory" : "";
    if (arrays > 0) {
        text += (has_heap ? " and " : ", with ") + std::to_string(arrays) + " MB of static arrays" +
                (has_heap ? "" : " in shared memory");
    }
    return text;
}

void print(const char* begin, const char* end)
{
    std::fprintf(stderr, "ucx-layout-mpi: %s: datatypes are %s%s\n", name_of_mpi().c_str(), begin, end);
}

} // namespace

void status::print_active() noexcept
try {
    if (settings::get().tells_status && is_first_process()) {
        print(ucp_datatypes::are_used() ? "layouts" : "windows", shared_memory().c_str());
    }
} catch (const std::bad_alloc&) {
    return; // a job without the line
}

void status::print_nothing(const char* reason) noexcept
try {
    if (settings::get().tells_status && is_first_process()) {
        print("left to MPI: ", reason);
    }
} catch (const std::bad_alloc&) {
    return;
}

} // namespace ucxl::mpi
