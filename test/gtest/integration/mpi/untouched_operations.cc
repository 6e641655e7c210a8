// One-sided operations on the window of the peer.
#include "untouched_calls.h"

#include <string>
#include <vector>

namespace ucxl::test
{
namespace
{

enum class operation : unsigned char { put, get, accumulate, get_accumulate, fetch };

struct one_sided {
    operation what;
    message_kind kind;
    bool has_request;

    bool sends() const
    {
        return what == operation::put || what == operation::accumulate || what == operation::get_accumulate;
    }
    bool brings() const
    {
        return what == operation::get || what == operation::get_accumulate || what == operation::fetch;
    }
    std::string name() const
    {
        const char* const names[] = {"put", "get", "accumulate", "get_accumulate", "fetch by MPI_NO_OP"};
        return names[static_cast<int>(what)] + std::string(has_request ? " with a request" : "");
    }
};

struct passed_memory {
    const void* origin;
    int origin_count;
    MPI_Datatype origin_type;
    void* result;
    int result_count;
    MPI_Datatype result_type;
};

void operate(const one_sided& chosen, const passed_memory& own, int target, int target_count, MPI_Win win)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Op op     = chosen.what == operation::fetch ? MPI_NO_OP : MPI_REPLACE;
    const auto with     = [&](auto plain, auto requested, auto... arguments) {
        if (chosen.has_request) {
            requested(arguments..., &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            plain(arguments...);
        }
    };
    const MPI_Aint place = 0;
    switch (chosen.what) {
    case operation::put:
        with(MPI_Put, MPI_Rput, own.origin, own.origin_count, own.origin_type, target, place, target_count, MPI_INT,
             win);
        break;
    case operation::get:
        with(MPI_Get, MPI_Rget, own.result, own.result_count, own.result_type, target, place, target_count, MPI_INT,
             win);
        break;
    case operation::accumulate:
        with(MPI_Accumulate, MPI_Raccumulate, own.origin, own.origin_count, own.origin_type, target, place,
             target_count, MPI_INT, op, win);
        break;
    case operation::get_accumulate:
    case operation::fetch:
        with(MPI_Get_accumulate, MPI_Rget_accumulate, own.origin, own.origin_count, own.origin_type, own.result,
             own.result_count, own.result_type, target, place, target_count, MPI_INT, op, win);
        break;
    }
}

void run_one_sided(const one_sided& chosen, const std::string& text)
{
    const turn now = next_turn(chosen.name() + text, form::blocking);
    const int peer = own_rank ^ 1, number = chosen.kind == message_kind::many ? 20 : 2;
    const bool is_absolute = chosen.kind == message_kind::at_bottom, moves = has_elements(chosen.kind);
    const int target = chosen.kind == message_kind::to_no_process ? MPI_PROC_NULL : peer;
    const int moved  = chosen.kind == message_kind::empty ? 0 : number;
    const element_shape numbers(element_shape::kind::plain, 0);
    guarded_elements origin(now.from, number, chosen.sends() && moves ? use::reads : use::none);
    guarded_elements result(now.into, number, chosen.brings() && moves ? use::updates : use::none);
    guarded_elements window(numbers, number, use::updates);
    MPI_Datatype types[2] = {is_absolute ? origin.make_absolute() : origin.handle(),
                             is_absolute ? result.make_absolute() : result.handle()};
    MPI_Win win;
    window.fill(now.data + 1, own_rank);
    MPI_Win_create(window.buffer(), static_cast<MPI_Aint>(element_size) * number, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    origin.fill(now.data, own_rank);
    result.fill(now.junk(), own_rank);
    for (int i = 0; i < number && moves; ++i) {
        if (chosen.brings()) {
            result.expect(i, packed_element(now.data + 1, peer, i));
        }
        if (chosen.sends()) {
            window.expect(i, packed_element(now.data, peer, i));
        }
    }
    passed_memory own{origin.buffer(), origin.count(moved), types[0], result.buffer(), result.count(moved), types[1]};
    if (is_absolute) {
        own = {MPI_BOTTOM, 1, types[0], MPI_BOTTOM, 1, types[1]};
    }
    if (chosen.what == operation::fetch) {
        own.origin = nowhere();
    }
    origin.allow();
    result.allow();
    if (chosen.has_request) {
        MPI_Win_lock_all(0, win);
        operate(chosen, own, target, numbers.count(moved), win);
        MPI_Win_unlock_all(win);
    } else {
        MPI_Win_fence(0, win);
        operate(chosen, own, target, numbers.count(moved), win);
        MPI_Win_fence(0, win);
    }
    expect(origin.is_right(), "wrong bytes in the origin");
    expect(result.is_right(), "wrong bytes in the result");
    MPI_Win_free(&win);
    expect(window.is_right(), "wrong bytes in the window");
    for (MPI_Datatype& each : types) {
        if (is_absolute) {
            MPI_Type_free(&each);
        }
    }
}

// Always between two processes, so more of them would only make windows slower.
void run_operations()
{
    if (num_ranks > 2) {
        return;
    }
    for (const operation what :
         {operation::put, operation::get, operation::accumulate, operation::get_accumulate, operation::fetch}) {
        for (const auto& [kind, text] : message_kinds) {
            for (const bool has_request : {false, true}) {
                run_one_sided({what, kind, has_request}, text);
            }
        }
    }
}

} // namespace

void add_operations(std::vector<named_call>& calls)
{
    calls.push_back({"one-sided", run_operations});
}

} // namespace ucxl::test
