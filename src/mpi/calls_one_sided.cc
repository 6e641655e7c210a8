// One-sided operations. Puts and gets in memory that this process can map are copied at once (target_memory.h). Of
// others the side of this process becomes packed bytes, and the datatype of the target stays, because the library knows
// nothing of the target's memory.
#include "collective_sides.h"
#include "operations.h"
#include "packed_call.h"
#include "requests.h"
#include "target_memory.h"
#include "type_table.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace
{

using namespace ucxl::mpi;

template <typename Count>
struct target_side {
    int rank;
    MPI_Aint place;
    Count count;
    MPI_Datatype type;

    std::tuple<int, MPI_Aint, Count, MPI_Datatype> arguments() const { return {rank, place, count, type}; }
    // What MPI gets instead of an operation that is done without it: no elements.
    target_side nothing() const { return {rank, place, 0, MPI_BYTE}; }
};

// Memory that other processes read and write during the calls that complete an operation. What arrives there must not
// wait until these calls return.
template <typename Buffer, typename Count>
bool is_exposed(const one_block<Buffer, Count>& result, MPI_Win win)
{
    void *base = nullptr, *size = nullptr, *flavor = nullptr;
    int has_base = 0, has_size = 0, has_flavor = 0;
    if (PMPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&base), &has_base) != MPI_SUCCESS ||
        PMPI_Win_get_attr(win, MPI_WIN_SIZE, static_cast<void*>(&size), &has_size) != MPI_SUCCESS ||
        PMPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&flavor), &has_flavor) != MPI_SUCCESS ||
        has_base == 0 || has_size == 0 || has_flavor == 0) {
        return true;
    }
    const int kind = *static_cast<const int*>(flavor);
    if (kind != MPI_WIN_FLAVOR_CREATE && kind != MPI_WIN_FLAVOR_ALLOCATE) {
        return true; // its memory is not known, or that of others is shared, too
    }
    known_type* const known = find_known(result.type);
    const auto layout       = known == nullptr ? nullptr : known->layout_to_copy(result.count, direction::receive);
    if (layout == nullptr) {
        return true;
    }
    const auto start = reinterpret_cast<std::intptr_t>(base);
    const auto first = reinterpret_cast<std::intptr_t>(result.buffer) + layout->origin;
    return first < start + *static_cast<const MPI_Aint*>(size) && start < first + layout->span;
}

template <typename Side>
bool is_used(const Side& side)
{
    if constexpr (std::is_same_v<Side, no_side>) {
        return false;
    } else {
        return find_used(side.type, side.count) != nullptr;
    }
}

// The packed bytes of one side, and what MPI gets in the place of its arguments.
template <typename Side>
class operation_side;

template <>
class operation_side<no_side>
{
public:
    explicit operation_side(no_side /*own*/) {}
    std::tuple<> arguments() const { return {}; }
};

template <typename Buffer, typename Count>
class operation_side<one_block<Buffer, Count>>
{
public:
    explicit operation_side(const one_block<Buffer, Count>& own) : _passed(own) {}

    // None if MPI shall work on the caller's buffer. `is_reduced`: MPI has to know the numbers in it.
    std::optional<packed_side> take(direction way, bool is_reduced) noexcept
    {
        known_type* const known = find_known(_passed.type);
        if (known == nullptr || !known->is_worth_window(_passed.count)) {
            return std::nullopt;
        }
        auto side = packed_side::of(_passed.buffer, _passed.count, _passed.type, way);
        if (!side) {
            return std::nullopt;
        }
        const auto basic = known->basic_type();
        MPI_Count size   = 0;
        if (basic != MPI_DATATYPE_NULL && PMPI_Type_size_x(basic, &size) == MPI_SUCCESS &&
            side->length() / size <= std::numeric_limits<Count>::max()) {
            _passed = {side->data(), static_cast<Count>(side->length() / size), basic};
        } else if (is_reduced) {
            return std::nullopt;
        } else {
            _passed = {side->data(), _passed.count, side->type(0)};
        }
        return side;
    }
    std::optional<packed_side> take_unless_exposed(bool is_reduced, MPI_Win win) noexcept
    {
        return find_known(_passed.type) != nullptr && !is_exposed(_passed, win) ? take(direction::receive, is_reduced)
                                                                                : std::nullopt;
    }
    auto arguments() const { return _passed.arguments(); }

private:
    one_block<Buffer, Count> _passed;
};

// The request of an operation, which may complete before it or with it.
class held_operation final : public held
{
public:
    explicit held_operation(operation_ptr moved) : _moved(std::move(moved)) {}
    void end() override { _moved->finish(); }
    bool must_end() const override { return true; }
    void give_up() override { _moved->give_up(); }
    bool* in_call() override { return _moved->in_call(); }

private:
    operation_ptr _moved;
};

template <typename Origin>
bool pack_origin(operation_side<Origin>& origin, bool is_reduced, operation& moved) noexcept
{
    if constexpr (!std::is_same_v<Origin, no_side>) {
        if (auto side = origin.take(direction::send, is_reduced)) {
            side->pack();
            moved.set_origin(std::move(*side));
            return true;
        }
    }
    return false;
}

template <typename Result>
bool replace_result(operation_side<Result>& result, bool is_reduced, MPI_Win win, operation& moved) noexcept
{
    if constexpr (!std::is_same_v<Result, no_side>) {
        if (auto side = result.take_unless_exposed(is_reduced, win)) {
            if (!errors_are_fatal(&PMPI_Win_get_errhandler, win)) {
                side->pack_updated();
            }
            moved.set_result(std::move(*side));
            return true;
        }
    }
    return false;
}

struct operator_of {
    MPI_Op op;
    // MPI reads nothing of the origin then.
    bool reads_origin() const { return op != MPI_NO_OP; }
    std::tuple<MPI_Op> arguments() const { return {op}; }
};

// Puts and gets move bytes.
struct no_operator {
    bool reads_origin() const { return true; }
    std::tuple<> arguments() const { return {}; }
};

// MPICH gives puts and gets with a derived datatype at the target a request that has ended when it has not.
template <typename Operator, typename Form>
bool has_true_request(const Operator& /*reduced*/, const Form& /*form*/)
{
    return std::is_same_v<Form, blocking> || std::is_same_v<Operator, operator_of> ||
           implementation_below() == implementation::openmpi;
}

// A put or a get that needs no MPI: where it copies from, and into which memory.
struct direct_copy {
    struct plain_bytes {
        const void* from;
        void* into;
        std::size_t length;
    };
    std::variant<plain_bytes, packed_side> moved;

    // Numbers of one type of MPI, the most frequent ones, without a look at what their type is made of. None if they
    // are not that.
    template <typename Side, typename Target>
    static std::optional<plain_bytes> numbers(const Side& own, const Target& target, direction way,
                                              const target_memory::seen& memory) noexcept
    {
        MPI_Count length = 0;
        if (own.type != target.type || own.count != target.count) {
            return std::nullopt;
        }
        const auto size = size_of_number(own.type);
        if (!size || *size <= 0 || __builtin_mul_overflow(*size, MPI_Count(own.count), &length) ||
            length > memory.length) {
            return std::nullopt;
        }
        std::byte* const there = memory.at(target.place);
        if (there == nullptr || !memory.has(there, there + length)) {
            return std::nullopt;
        }
        void* const here = const_cast<void*>(static_cast<const void*>(own.buffer));
        return way == direction::send ? plain_bytes{here, there, static_cast<std::size_t>(length)}
                                      : plain_bytes{there, here, static_cast<std::size_t>(length)};
    }

    // None if MPI does it. `own` is the side of this process, which is the origin of a put and the result of a get.
    template <typename Side, typename Target>
    static std::optional<direct_copy> of(const Side& own, const Target& target, direction way, MPI_Win win) noexcept
    {
        const auto memory = target_memory::find(win, target.rank);
        if (!memory || own.count <= 0 || target.count <= 0) {
            return std::nullopt;
        }
        if (const auto bytes = numbers(own, target, way, *memory)) {
            return direct_copy{*bytes};
        }
        find_used(own.type, own.count);
        find_used(target.type, target.count);
        const bool is_put = way == direction::send;
        const element_block here{static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(own.buffer))),
                                 own.count, own.type, is_put ? usage::reads : usage::updates};
        const element_block there{memory->at(target.place), target.count, target.type,
                                  is_put ? usage::updates : usage::reads};
        auto moved = there.address == nullptr
                         ? std::nullopt
                         : packed_side::pair(is_put ? here : there, is_put ? there : here, packed_side::pairs::all);
        if (!moved) {
            return std::nullopt;
        }
        const auto bytes = moved->range_of(is_put ? 1 : 0);
        return memory->has(bytes.first, bytes.end) ? std::optional<direct_copy>({std::move(*moved)}) : std::nullopt;
    }

    // False without memory for it.
    bool run() const
    {
        if (const auto* const bytes = std::get_if<plain_bytes>(&moved)) {
            std::memcpy(bytes->into, bytes->from, bytes->length);
        } else if (const auto& sides = std::get<packed_side>(moved); sides.copy()) {
            sides.note_copies();
        } else {
            return false;
        }
        report::note_done();
        // The peer may read as soon as a later message, or a flag in the memory of a window, says so. And what this
        // process reads next, perhaps in that memory, must not be older.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return true;
    }
};

template <typename Origin, typename Result, typename Target>
std::optional<direct_copy> find_direct(const Origin& origin, const Result& result, const Target& target, MPI_Win win)
{
    if constexpr (std::is_same_v<Result, no_side>) {
        return direct_copy::of(origin, target, direction::send, win);
    } else {
        return direct_copy::of(result, target, direction::receive, win);
    }
}

template <typename Side>
Side nothing_of(Side side)
{
    if constexpr (!std::is_same_v<Side, no_side>) {
        side.count = 0;
        side.type  = MPI_BYTE;
    }
    return side;
}

template <typename Next, typename Origin, typename Result, typename Target, typename Operator, typename Form>
int operate(Next* next, const Origin& own_origin, const Result& own_result, const Target& target, Operator reduced,
            MPI_Win win, Form form)
{
    if constexpr (std::is_same_v<Operator, no_operator>) {
        if (const auto direct = find_direct(own_origin, own_result, target, win)) [[unlikely]] {
            // MPI says whether the program may do this now, and makes the request.
            const int status =
                std::apply(next, std::tuple_cat(nothing_of(own_origin).arguments(), nothing_of(own_result).arguments(),
                                                target.nothing().arguments(), std::tuple(win), form.arguments()));
            if (status != MPI_SUCCESS || direct->run()) {
                return status;
            }
            if constexpr (std::is_same_v<Form, nonblocking>) {
                PMPI_Wait(form.request, MPI_STATUS_IGNORE);
            }
        }
    }
    operation_side<Origin> origin(own_origin);
    operation_side<Result> result(own_result);
    pending_operations pending;
    held_ptr held_by_request;
    const bool may_take    = settings::get().takes_one_sided && win != MPI_WIN_NULL && target.rank != MPI_PROC_NULL;
    const bool uses_origin = may_take && reduced.reads_origin() && is_used(own_origin);
    const bool uses_result = may_take && is_used(own_result);
    if ((uses_origin || uses_result) && operations::has_room() &&
        (has_true_request(reduced, form) || own_types::has(target.type))) [[unlikely]] {
        constexpr bool is_reduced = std::is_same_v<Operator, operator_of>;
        try {
            pending.push_back({win, target.rank, std::make_shared<operation>()});
            operation& moved = *pending.front().moved;
            if constexpr (std::is_same_v<Form, nonblocking>) {
                held_by_request = std::make_unique<held_operation>(pending.front().moved);
            }
            const bool sends = uses_origin && pack_origin(origin, is_reduced, moved);
            if (!replace_result(result, is_reduced, win, moved) && !sends) {
                pending.clear();
            }
        } catch (const std::bad_alloc&) {
            pending.clear();
        }
    }
    const int status = std::apply(next, std::tuple_cat(origin.arguments(), result.arguments(), target.arguments(),
                                                       reduced.arguments(), std::tuple(win), form.arguments()));
    if (status == MPI_SUCCESS && !pending.empty()) {
        if constexpr (std::is_same_v<Form, nonblocking>) {
            pending.front().moved->set_request(*form.request);
            requests::hold(*form.request, std::move(held_by_request));
        }
        operations::add(std::move(pending));
    }
    return status;
}

template <typename Next, typename Unit>
int create_window(Next* next, void* base, MPI_Aint length, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* win)
{
    const int status = next(base, length, unit, info, comm, win);
    if (status == MPI_SUCCESS) {
        target_memory::add(*win, base, length, unit, comm, target_memory::made_by::program);
    }
    return status;
}

template <typename Next, typename Unit>
int allocate_window(Next* next, MPI_Aint length, Unit unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win)
{
    const int status = next(length, unit, info, comm, base, win);
    if (status == MPI_SUCCESS) {
        target_memory::add(*win, *static_cast<void**>(base), length, unit, comm, target_memory::made_by::mpi);
    }
    return status;
}

} // namespace

// `c` ends the names of the calls with large counts.
#define UCXL_OPERATIONS(c, Count)                                                                                      \
    UCXL_MPI_OPERATION(Put##c, Rput##c,                                                                                \
                       (const void* origin, Count count, MPI_Datatype type, int target, MPI_Aint place,                \
                        Count target_count, MPI_Datatype target_type, MPI_Win win),                                    \
                       operate(next, one_block{origin, count, type}, no_side(),                                        \
                               target_side{target, place, target_count, target_type}, no_operator(), win, form))       \
    UCXL_MPI_OPERATION(Get##c, Rget##c,                                                                                \
                       (void* result, Count count, MPI_Datatype type, int target, MPI_Aint place, Count target_count,  \
                        MPI_Datatype target_type, MPI_Win win),                                                        \
                       operate(next, no_side(), one_block{result, count, type},                                        \
                               target_side{target, place, target_count, target_type}, no_operator(), win, form))       \
    UCXL_MPI_OPERATION(Accumulate##c, Raccumulate##c,                                                                  \
                       (const void* origin, Count count, MPI_Datatype type, int target, MPI_Aint place,                \
                        Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win),                         \
                       operate(next, one_block{origin, count, type}, no_side(),                                        \
                               target_side{target, place, target_count, target_type}, operator_of{op}, win, form))     \
    UCXL_MPI_OPERATION(Get_accumulate##c, Rget_accumulate##c,                                                          \
                       (const void* origin, Count count, MPI_Datatype type, void* result, Count result_count,          \
                        MPI_Datatype result_type, int target, MPI_Aint place, Count target_count,                      \
                        MPI_Datatype target_type, MPI_Op op, MPI_Win win),                                             \
                       operate(next, one_block{origin, count, type}, one_block{result, result_count, result_type},     \
                               target_side{target, place, target_count, target_type}, operator_of{op}, win, form))

UCXL_OPERATIONS(, int)
#if UCXL_LARGE_COUNTS
UCXL_OPERATIONS(_c, MPI_Count)
#endif

// Defines a call that completes the operations on a window with one target, or with all.
#define UCXL_MPI_COMPLETION(name, parameters, target, arguments)                                                       \
    UCXL_MPI_CALL own_MPI_##name parameters                                                                            \
    {                                                                                                                  \
        ending_operations ending(win, target);                                                                         \
        return ending.settle(next_MPI_##name arguments);                                                               \
    }

UCXL_MPI_COMPLETION(Win_fence, (int assertion, MPI_Win win), ending_operations::all_targets, (assertion, win))
UCXL_MPI_COMPLETION(Win_complete, (MPI_Win win), ending_operations::all_targets, (win))
UCXL_MPI_COMPLETION(Win_unlock, (int rank, MPI_Win win), rank, (rank, win))
UCXL_MPI_COMPLETION(Win_unlock_all, (MPI_Win win), ending_operations::all_targets, (win))
UCXL_MPI_COMPLETION(Win_flush, (int rank, MPI_Win win), rank, (rank, win))
UCXL_MPI_COMPLETION(Win_flush_all, (MPI_Win win), ending_operations::all_targets, (win))
UCXL_MPI_COMPLETION(Win_flush_local, (int rank, MPI_Win win), rank, (rank, win))
UCXL_MPI_COMPLETION(Win_flush_local_all, (MPI_Win win), ending_operations::all_targets, (win))

UCXL_MPI_CALL own_MPI_Win_create(void* base, MPI_Aint length, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win)
{
    return create_window(next_MPI_Win_create, base, length, unit, info, comm, win);
}

UCXL_MPI_CALL own_MPI_Win_allocate(MPI_Aint length, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win)
{
    return allocate_window(next_MPI_Win_allocate, length, unit, info, comm, base, win);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL own_MPI_Win_create_c(void* base, MPI_Aint length, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                                   MPI_Win* win)
{
    return create_window(next_MPI_Win_create_c, base, length, unit, info, comm, win);
}

UCXL_MPI_CALL own_MPI_Win_allocate_c(MPI_Aint length, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                                     MPI_Win* win)
{
    return allocate_window(next_MPI_Win_allocate_c, length, unit, info, comm, base, win);
}
#endif

// Its handle may be given to the next window.
UCXL_MPI_CALL own_MPI_Win_free(MPI_Win* win)
{
    ending_operations ending(win == nullptr ? MPI_WIN_NULL : *win, ending_operations::all_targets);
    return ending.settle(next_MPI_Win_free(win));
}
