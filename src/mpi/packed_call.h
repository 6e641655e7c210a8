// A collective call with packed bytes in the places of its sides: packs, calls MPI, and unpacks what arrived.
//
//     return call_packed(next_MPI_Alltoall, sent, received, std::tuple(comm), form,
//                        [&](auto& from, auto& into, auto& own) {
//         from.take(number, each_block(usage::reads));
//         into.take(number, each_block(usage::updates));
//     });
#pragma once

#include "collective_sides.h"
#include "requests.h"
#include "type_uses.h"

#include <memory>
#include <new>
#include <tuple>

namespace ucxl::mpi
{

// The forms of a call, by the arguments that come last.
struct blocking {
    std::tuple<> arguments() const { return {}; }
};

struct nonblocking {
    static constexpr bool is_persistent = false;
    MPI_Request* request;

    std::tuple<MPI_Request*> arguments() const { return {request}; }
};

struct persistent {
    static constexpr bool is_persistent = true;
    MPI_Info info;
    MPI_Request* request;

    std::tuple<MPI_Info, MPI_Request*> arguments() const { return {info, request}; }
};

// The sides of a call that goes on.
template <typename Sent, typename Received>
class held_sides final : public held
{
public:
    held_sides(const Sent& sent, const Received& received) : from(sent), into(received) {}

    void begin() override
    {
        from.pack();
        into.pack();
        if (may_fail) {
            from.pack_updated();
            into.pack_updated();
        }
        own.copy();
    }
    // MPICH copies some of what this process sends to itself already when a persistent request is made. The program may
    // make its memory later.
    void begin_early() const
    {
        from.pack_if_readable();
        into.pack_if_readable();
    }
    void end() override
    {
        from.unpack();
        into.unpack();
    }
    bool must_end() const override { return from.is_received() || into.is_received(); }

    packed<Sent> from;
    packed<Received> into;
    own_part own;
    // If it fails, or gets less than it asks for, the program goes on, and not all calls say so.
    bool may_fail = false;
};

template <typename Next, typename Sent, typename Received, typename Tail, typename Take>
int call_sides(Next* next, const Sent& sent, const Received& received, const Tail& tail, blocking /*form*/, Take take)
{
    packed<Sent> from(sent);
    packed<Received> into(received);
    own_part own;
    take(from, into, own);
    from.pack();
    into.pack();
    const int result = std::apply(next, std::tuple_cat(from.arguments(), into.arguments(), tail));
    if (result == MPI_SUCCESS) {
        from.unpack();
        into.unpack();
        own.copy();
    }
    return result;
}

template <typename Next, typename Sent, typename Received, typename Tail, typename Form, typename Take>
int call_sides(Next* next, const Sent& sent, const Received& received, const Tail& tail, Form form, Take take)
{
    const auto end_of_call = std::tuple_cat(tail, form.arguments());
    const MPI_Comm comm    = std::get<std::tuple_size_v<Tail> - 1>(tail);
    using sides            = held_sides<Sent, Received>;
    std::unique_ptr<sides> things(new (std::nothrow) sides(sent, received));
    if (things != nullptr) {
        things->from.expect_starts(Form::is_persistent ? starts_of_persistent : 1);
        things->into.expect_starts(Form::is_persistent ? starts_of_persistent : 1);
        take(things->from, things->into, things->own);
    }
    if (things == nullptr || (things->from.is_empty() && things->into.is_empty() && things->own.is_empty())) {
        return std::apply(next, std::tuple_cat(sent.arguments(), received.arguments(), end_of_call));
    }
    things->is_persistent = Form::is_persistent;
    things->may_fail      = things->must_end() && !errors_are_fatal(&PMPI_Comm_get_errhandler, comm);
    if (!Form::is_persistent) {
        things->begin();
    } else if (implementation_below() == implementation::mpich) {
        things->begin_early();
    }
    const int result =
        std::apply(next, std::tuple_cat(things->from.arguments(), things->into.arguments(), end_of_call));
    if (result == MPI_SUCCESS) {
        requests::hold(*form.request, std::move(things));
    }
    return result;
}

// `take` chooses the sides that are packed, and whether MPI copies what the process sends to itself. `tail` are the
// arguments after the sides, the last of which is the communicator.
template <typename Next, typename Sent, typename Received, typename Tail, typename Form, typename Take>
int call_packed(Next* next, const Sent& sent, const Received& received, const Tail& tail, Form form, Take take)
{
    if (!sent.may_be_taken() && !received.may_be_taken()) [[likely]] {
        return std::apply(next, std::tuple_cat(sent.arguments(), received.arguments(), tail, form.arguments()));
    }
    return call_sides(next, sent, received, tail, form, take);
}

} // namespace ucxl::mpi

#define UCXL_WITHOUT_PARENTHESES(...) __VA_ARGS__

// Defines one form of a call. `call` is an expression with `next` and `form` for what differs between the forms.
#define UCXL_MPI_FORM(name, parameters, form_of_call, call)                                                            \
    UCXL_MPI_CALL own_MPI_##name parameters                                                                            \
    {                                                                                                                  \
        const auto next = next_MPI_##name;                                                                             \
        const auto form = form_of_call;                                                                                \
        return call;                                                                                                   \
    }

// Defines a call and its nonblocking form.
#define UCXL_MPI_OPERATION(name, nonblocking_name, parameters, call)                                                   \
    UCXL_MPI_FORM(name, parameters, blocking(), call)                                                                  \
    UCXL_MPI_FORM(nonblocking_name, (UCXL_WITHOUT_PARENTHESES parameters, MPI_Request * request),                      \
                  nonblocking{request}, call)

// Defines a collective call, its nonblocking form and its persistent form.
#define UCXL_MPI_COLLECTIVE(name, nonblocking_name, persistent_name, parameters, call)                                 \
    UCXL_MPI_OPERATION(name, nonblocking_name, parameters, call)                                                       \
    UCXL_MPI_FORM(persistent_name, (UCXL_WITHOUT_PARENTHESES parameters, MPI_Info info, MPI_Request * request),        \
                  (persistent{info, request}), call)
