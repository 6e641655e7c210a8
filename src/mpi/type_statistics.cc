#include "type_statistics.h"

#include "library.h"
#include "type_contents.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <vector>

namespace ucxl::mpi
{

namespace
{

// Measuring for the report takes at most 2 % of the time of the process, and some ms.
class measuring_time
{
public:
    using clock = std::chrono::steady_clock;

    measuring_time() : _start(clock::now()) {}
    ~measuring_time() { spent() += (clock::now() - _start).count(); }
    measuring_time(const measuring_time&)            = delete;
    measuring_time& operator=(const measuring_time&) = delete;

    bool is_spent() const
    {
        static const auto begin       = _start;
        const clock::duration allowed = (_start - begin) / 50 + std::chrono::milliseconds(5);
        return spent() + (clock::now() - _start).count() > allowed.count();
    }

private:
    static std::atomic<clock::rep>& spent()
    {
        static std::atomic<clock::rep> only{0};
        return only;
    }

    const clock::time_point _start;
};

} // namespace

void type_statistics::describe(const type_facts& facts)
{
    char name[MPI_MAX_OBJECT_NAME] = {};
    int length                     = 0;
    PMPI_Type_get_name(facts.type(), name, &length);
    _figures.name.assign(name, static_cast<std::size_t>(length));
    _figures.constructor = name_of_combiner(combiner_of(facts.type()).value_or(MPI_COMBINER_NAMED));
    _saved_per_byte      = measured_saving(facts);
}

void type_statistics::note_message(std::size_t length)
{
    ++_figures.messages;
    _figures.bytes += length;
}

void type_statistics::note_copy(std::size_t length)
{
    ++_figures.copies;
    _figures.bytes += length;
}

void type_statistics::note_why_not(const char* reason)
{
    _why_not = reason;
    ++_figures.left;
}

// What a byte costs MPI beyond what it costs us: packing by both, from memory of this library. That of the program may
// not be there yet, and nobody may ever read it. An element that is longer than some MB is not measured: memory for it
// and the first touch of its pages would be what a report costs.
std::optional<double> type_statistics::measured_saving(const type_facts& facts)
{
    constexpr MPI_Count longest    = 4 << 20;
    const type_layout_ptr& element = facts.layout();
    if (element == nullptr || element->span > longest || element->extent < 0 || !library::has_world()) {
        return std::nullopt;
    }
    const measuring_time budget;
    if (budget.is_spent()) {
        return std::nullopt;
    }
    const MPI_Count count = element->extent == 0 ? 1 : std::max<MPI_Count>(1, (64 << 10) / element->extent);
    const auto elements   = facts.counted(count).layout;
    if (elements == nullptr || elements->span > 2 * longest) {
        return std::nullopt;
    }
    const auto length = static_cast<std::size_t>(elements->size);
    std::vector<char> memory(static_cast<std::size_t>(elements->span)), packed(length);
    void* const base = memory.data();
    // Where the elements are as far from it as from a buffer of the program.
    const auto buffer = reinterpret_cast<std::uintptr_t>(base) - static_cast<std::uintptr_t>(elements->origin);
    double own = std::numeric_limits<double>::max(), by_mpi = own;
    // One round of a datatype that MPI packs slowly may be all that is allowed.
    for (int round = 0; round < 3 && !(round > 0 && budget.is_spent()); ++round) {
        const auto start = measuring_time::clock::now();
        int position     = 0;
        PMPI_Pack(reinterpret_cast<const void*>(buffer), static_cast<int>(count), facts.type(), packed.data(),
                  static_cast<int>(length), &position, MPI_COMM_SELF);
        const auto middle = measuring_time::clock::now();
        ucp_layout_gather(elements->layout.get(), &base, 1, 0, length, packed.data());
        const auto end = measuring_time::clock::now();
        by_mpi         = std::min(by_mpi, std::chrono::duration<double>(middle - start).count());
        own            = std::min(own, std::chrono::duration<double>(end - middle).count());
    }
    return (by_mpi - own) / static_cast<double>(length);
}

type_figures type_statistics::figures() const
{
    type_figures made = _figures;
    made.why_not      = _why_not == nullptr ? "" : _why_not;
    if (_saved_per_byte) {
        made.seconds_saved = *_saved_per_byte * static_cast<double>(_figures.bytes);
    }
    return made;
}

} // namespace ucxl::mpi
