#include "one_pass.h"

#include "collective_components.h"
#include "contexts.h"
#include "implementation.h"
#include "library.h"
#include "settings.h"
#include "static_arrays.h"
#include "sys/heap_memory.h"
#include "type_table.h"
#include "ucp_datatypes.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

namespace ucxl::mpi
{

namespace
{

// The longest of MPI's own numbers.
constexpr MPI_Count longest_number = 32;
// Of shorter blocks one process alone does what two did at the same time.
constexpr double min_block = 32;

heap_memory_function heap()
{
    static const auto found = find_heap_memory();
    return found;
}

unsigned long number_in(const char* name)
{
    const char* const text = std::getenv(name);
    return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

} // namespace

unsigned long one_pass::num_processes()
{
    for (const auto& [all, here] :
         {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, std::pair{"PMI_SIZE", "MPI_LOCALNRANKS"}}) {
        if (const unsigned long number = number_in(all); number > 0) {
            return number == number_in(here) ? number : 0;
        }
    }
    return 0;
}

void one_pass::prepare()
{
    if (may_start() && implementation_below() == implementation::openmpi) {
        setenv("OMPI_MCA_mpi_add_procs_cutoff", std::to_string(num_processes()).c_str(), 0);
    }
}

bool one_pass::may_start()
{
    const unsigned long number = num_processes();
    const settings& chosen     = settings::get();
    return chosen.is_one_pass && chosen.takes_messages && (heap() != nullptr || chosen.shares_static_arrays) &&
           number > 1 && number <= max_processes;
}

void one_pass::start()
{
    if (!may_start() || library::has_cards() || (heap() == nullptr && static_arrays::length() == 0)) {
        return;
    }
    if (ucp_datatypes::are_used() && (contexts::num_peers() < num_processes() - 1 || !contexts::may_use_windows())) {
        return;
    }
    _min_count.store(min_length / longest_number, std::memory_order_relaxed);
    _takes_collectives.store(settings::get().takes_collectives && collectives_only_send(), std::memory_order_relaxed);
    _is_on.store(true, std::memory_order_relaxed);
    log_info("messages of 512 KB and more in shared memory go in one pass");
}

bool one_pass::stop()
{
    _min_count.store(std::numeric_limits<MPI_Count>::max(), std::memory_order_relaxed);
    return _is_on.exchange(false, std::memory_order_relaxed);
}

bool one_pass::has(const void* start, std::size_t length) noexcept
{
    heap_memory piece{};
    return static_arrays::has(start, length) || find_in_heap(start, length, piece);
}

bool one_pass::find_in_heap(const void* start, std::size_t length, heap_memory& piece) noexcept
{
    if (heap() == nullptr) {
        return false;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    int kind         = heap_memory_none;
    for (unsigned i = 0; (kind = heap()(i, &piece)) != heap_memory_none; ++i) {
        const std::uintptr_t offset = first - reinterpret_cast<std::uintptr_t>(piece.start);
        if (kind == heap_memory_shared && offset < piece.length && length <= piece.length - offset) {
            return true;
        }
    }
    return false;
}

bool one_pass::is_worth(const traffic& moved)
{
    return moved.length >= min_length && (moved.num_blocks <= 1 || moved.mean_block() >= min_block);
}

known_type* one_pass::find(MPI_Datatype type, MPI_Count count) noexcept
{
    MPI_Count size = 0;
    if (!is_own_number(type) || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size <= 0 ||
        count < static_cast<MPI_Count>(min_length) / size) {
        return nullptr;
    }
    if (known_type* const known = known_types.find(type)) {
        return known;
    }
    known_type* made = nullptr;
    try {
        made = new known_type(type);
        if (known_types.add(type, made)) {
            return made;
        }
    } catch (const std::bad_alloc&) {
        // MPI moves them
    }
    if (made != nullptr) { // another thread was faster
        made->remove_user();
    }
    return known_types.find(type);
}

} // namespace ucxl::mpi
