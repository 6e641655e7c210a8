// Messages from even processes to the next odd ones, and MPI_Pack.
#include "untouched_calls.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace ucxl::test
{
namespace
{

constexpr int message_tag = 3, ready_tag = 4;

int receive_blocking(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    return MPI_Recv(buffer, count, type, source, tag, comm, MPI_STATUS_IGNORE);
}

int receive_matched(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    MPI_Message message;
    MPI_Mprobe(source, tag, comm, &message, MPI_STATUS_IGNORE);
    return MPI_Mrecv(buffer, count, type, &message, MPI_STATUS_IGNORE);
}

int start_receive_matched(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                          MPI_Request* request)
{
    MPI_Message message;
    int is_there = 0;
    while (is_there == 0) {
        MPI_Improbe(source, tag, comm, &is_there, &message, MPI_STATUS_IGNORE);
    }
    return MPI_Imrecv(buffer, count, type, &message, request);
}

// A receiver that is ready says so.
int receive_ready(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    MPI_Request request;
    MPI_Irecv(buffer, count, type, source, tag, comm, &request);
    MPI_Send(nullptr, 0, MPI_BYTE, source, ready_tag, comm);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

struct receive_functions {
    int (*blocking)(void*, int, MPI_Datatype, int, int, MPI_Comm);
    int (*nonblocking)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    bool is_ready = false;
};
const receive_functions plain_receive{receive_blocking, MPI_Irecv};
const receive_functions matched_receive{receive_matched, start_receive_matched};
const receive_functions ready_receive{receive_ready, MPI_Irecv, true};

template <typename Blocking, typename Nonblocking, typename Persistent>
void run_message(const std::string& name, form how, message_kind kind, const receive_functions& receive,
                 Blocking send_blocking, Nonblocking send_nonblocking, Persistent send_persistent)
{
    const turn now      = next_turn(name, how);
    const int number    = kind == message_kind::many ? 40 : kind == message_kind::empty ? 0 : 2;
    const int peer      = kind == message_kind::to_no_process ? MPI_PROC_NULL : own_rank ^ 1;
    const bool has_none = !has_elements(kind), is_sender = own_rank % 2 == 0,
               is_absolute = kind == message_kind::at_bottom;
    // Room for one more, which does not come.
    const int room        = is_sender || is_absolute ? number : number + 1;
    const use of_elements = has_none ? use::none : is_sender ? use::reads : use::updates;
    guarded_elements memory(is_sender ? now.from : now.into, std::max(room, 1), of_elements);
    memory.set_use(number, room - number, use::none);
    arguments_in_memory arguments{{&memory}, {}};
    MPI_Datatype type   = is_absolute ? memory.make_absolute() : memory.handle();
    void* const buffer  = is_absolute ? MPI_BOTTOM : memory.buffer();
    const int count     = is_absolute ? 1 : memory.count(room);
    const bool has_peer = peer != MPI_PROC_NULL;
    if (is_sender) {
        arguments.fill = [&](std::uint64_t data) { memory.fill(data, own_rank); };
        if (receive.is_ready && has_peer) {
            arguments.before_start = [&] {
                MPI_Recv(nullptr, 0, MPI_BYTE, peer, ready_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            };
        }
        call(how, now, arguments, send_blocking, send_nonblocking, send_persistent, buffer, count, type, peer,
             message_tag, MPI_COMM_WORLD);
    } else {
        arguments.fill = [&](std::uint64_t data) {
            memory.fill(now.junk(), own_rank);
            for (int i = 0; i < number && !has_none; ++i) {
                memory.expect(i, packed_element(data, peer, i));
            }
        };
        if (receive.is_ready && has_peer && how != form::blocking) {
            arguments.after_start = [&] { MPI_Send(nullptr, 0, MPI_BYTE, peer, ready_tag, MPI_COMM_WORLD); };
        }
        call(how, now, arguments, receive.is_ready && !has_peer ? receive_blocking : receive.blocking,
             receive.nonblocking, MPI_Recv_init, buffer, kind == message_kind::empty ? 0 : count, type, peer,
             message_tag, MPI_COMM_WORLD);
    }
    if (is_absolute) {
        MPI_Type_free(&type);
    }
}

template <typename Blocking, typename Nonblocking, typename Persistent>
void run_messages(const char* name, const receive_functions& receive, Blocking send_blocking,
                  Nonblocking send_nonblocking, Persistent send_persistent)
{
    for (const form how : forms) {
        for (const auto& [kind, text] : message_kinds) {
            run_message(std::string(name) + text, how, kind, receive, send_blocking, send_nonblocking, send_persistent);
        }
    }
}

// MPI copies the message into the memory that the program attached.
void run_buffered()
{
    std::vector<char> attached(8 << 20);
    MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
    run_messages("bsend", plain_receive, MPI_Bsend, MPI_Ibsend, MPI_Bsend_init);
    void* detached = nullptr;
    int size       = 0;
    MPI_Buffer_detach(static_cast<void*>(&detached), &size);
}

// With which processes this one exchanges messages in one call.
struct partners {
    bool has_destination, has_source;
};

// All that may be missing, seen from one end and from the other one.
std::vector<partners> all_partners()
{
    const bool is_even = own_rank % 2 == 0;
    return {{true, true}, {is_even, !is_even}, {!is_even, is_even}, {false, false}};
}

std::string text_of(std::size_t index)
{
    const char* const names[] = {"", " from even ranks only", " from odd ranks only", " with no process"};
    return names[index];
}

int sendrecv_blocking(const void* from, int send_count, MPI_Datatype send_type, int destination, int send_tag,
                      void* into, int receive_count, MPI_Datatype receive_type, int source, int receive_tag,
                      MPI_Comm comm)
{
    return MPI_Sendrecv(from, send_count, send_type, destination, send_tag, into, receive_count, receive_type, source,
                        receive_tag, comm, MPI_STATUS_IGNORE);
}

int sendrecv_replace_blocking(void* buffer, int count, MPI_Datatype type, int destination, int send_tag, int source,
                              int receive_tag, MPI_Comm comm)
{
    return MPI_Sendrecv_replace(buffer, count, type, destination, send_tag, source, receive_tag, comm,
                                MPI_STATUS_IGNORE);
}

void run_sendrecv()
{
    constexpr int number = 2;
    const int peer       = own_rank ^ 1;
    for (const form how : {form::blocking, form::nonblocking}) {
        for (std::size_t kind = 0; kind < all_partners().size(); ++kind) {
            const partners with = all_partners()[kind];
            const turn now      = next_turn("sendrecv" + text_of(kind), how);
            // MPI_Isendrecv of MPICH between two processes frees the datatype that it sends.
            if (is_mpich() && how == form::nonblocking && with.has_destination && with.has_source) {
                continue;
            }
            guarded_elements sent(now.from, number, with.has_destination ? use::reads : use::none);
            guarded_elements room(now.into, number, with.has_source ? use::updates : use::none);
            const arguments_in_memory arguments{{&sent, &room}, [&](std::uint64_t data) {
                                                    sent.fill(data, own_rank);
                                                    room.fill(now.junk(), own_rank);
                                                    for (int i = 0; i < number && with.has_source; ++i) {
                                                        room.expect(i, packed_element(data, peer, i));
                                                    }
                                                }};
            call(how, now, arguments, sendrecv_blocking, MPI_Isendrecv, no_such_call, sent.buffer(), sent.count(number),
                 sent.handle(), with.has_destination ? peer : MPI_PROC_NULL, message_tag, room.buffer(),
                 room.count(number), room.handle(), with.has_source ? peer : MPI_PROC_NULL, message_tag,
                 MPI_COMM_WORLD);
        }
    }
}

void run_sendrecv_replace()
{
    const int peer = own_rank ^ 1;
    for (const form how : {form::blocking, form::nonblocking}) {
        // MPI_Isendrecv_replace of MPICH frees the datatype, and takes packed bytes for elements.
        if (is_mpich() && how == form::nonblocking) {
            continue;
        }
        for (std::size_t kind = 0; kind <= all_partners().size(); ++kind) {
            const bool is_empty = kind == all_partners().size();
            const partners with = is_empty ? partners{true, true} : all_partners()[kind];
            const turn now      = next_turn("sendrecv_replace" + (is_empty ? " of nothing" : text_of(kind)), how);
            const int number    = is_empty ? 0 : 2;
            const use of_both   = is_empty               ? use::none
                                  : with.has_source      ? use::updates
                                  : with.has_destination ? use::reads
                                                         : use::none;
            guarded_elements memory(now.from.is_plain() ? now.into : now.from, 2, of_both);
            const arguments_in_memory arguments{{&memory}, [&](std::uint64_t data) {
                                                    memory.fill(data, own_rank);
                                                    for (int i = 0; i < number && with.has_source; ++i) {
                                                        memory.expect(i, packed_element(data, peer, i));
                                                    }
                                                }};
            call(how, now, arguments, sendrecv_replace_blocking, MPI_Isendrecv_replace, no_such_call, memory.buffer(),
                 memory.count(number), memory.handle(), with.has_destination ? peer : MPI_PROC_NULL, message_tag,
                 with.has_source ? peer : MPI_PROC_NULL, message_tag, MPI_COMM_WORLD);
        }
    }
}

// A partition is there only when it is ready. With MPI_PROC_NULL both MPIs end, MPICH 4.2.1 by a null pointer.
void run_partitioned()
{
    if (is_openmpi() && is_bare) {
        return; // it looks for partitions of derived datatypes in the wrong places
    }
    constexpr int num_partitions = 4;
    const turn now               = next_turn("partitioned", form::persistent);
    const bool is_sender         = own_rank % 2 == 0;
    const int peer               = own_rank ^ 1;
    const auto& shape            = now.from.is_plain() ? now.into : now.from;
    guarded_elements memory(shape, num_partitions, use::none);
    memory.fill(is_sender ? now.data : now.junk(), own_rank);
    memory.close();
    MPI_Request request;
    if (is_sender) {
        MPI_Psend_init(memory.buffer(), num_partitions, memory.count(1), memory.handle(), peer, message_tag,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(memory.buffer(), num_partitions, memory.count(1), memory.handle(), peer, message_tag,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        memory.set_use(0, num_partitions, use::updates);
        memory.allow();
    }
    MPI_Start(&request);
    for (int i = 0; i < num_partitions; ++i) {
        if (is_sender) {
            memory.set_use(i, 1, use::reads);
            memory.allow();
            MPI_Pready(i, request);
        } else {
            memory.expect(i, packed_element(now.data, peer, i));
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(memory.is_right(), "wrong bytes");
    MPI_Request_free(&request);
}

void run_pack()
{
    const element_shape numbers(element_shape::kind::plain, 0);
    for (const auto& [kind, text] : message_kinds) {
        if (kind == message_kind::to_no_process) {
            continue;
        }
        const turn now      = next_turn(std::string("pack") + text, form::blocking);
        const auto& shape   = now.from.is_plain() ? now.into : now.from;
        const bool is_empty = kind == message_kind::empty, is_absolute = kind == message_kind::at_bottom;
        const int number = kind == message_kind::many ? 40 : 2, moved = is_empty ? 0 : number;
        const auto length = static_cast<int>(element_size) * number, end = static_cast<int>(element_size) * moved;
        const auto used_by = [&](use each) { return is_empty ? use::none : each; };
        guarded_elements from(shape, number, used_by(use::reads)), into(shape, number, used_by(use::updates));
        guarded_elements written(numbers, number, used_by(use::updates)), read(numbers, number, used_by(use::reads));
        from.fill(now.data, own_rank);
        read.fill(now.data, own_rank);
        into.fill(now.junk(), own_rank);
        written.fill(now.junk(), own_rank);
        for (int i = 0; i < moved; ++i) {
            into.expect(i, packed_element(now.data, own_rank, i));
            written.expect(i, packed_element(now.data, own_rank, i));
        }
        MPI_Datatype types[2] = {is_absolute ? from.make_absolute() : from.handle(),
                                 is_absolute ? into.make_absolute() : into.handle()};
        for (guarded_elements* const each : {&from, &into, &written, &read}) {
            each->allow();
        }
        int position = 0, back = 0;
        const int count = is_absolute ? 1 : moved;
        MPI_Pack(is_absolute ? MPI_BOTTOM : from.buffer(), count, types[0], written.buffer(), length, &position,
                 MPI_COMM_WORLD);
        MPI_Unpack(read.buffer(), length, &back, is_absolute ? MPI_BOTTOM : into.buffer(), count, types[1],
                   MPI_COMM_WORLD);
        expect(position == end && back == end, "another position");
        for (guarded_elements* const each : {&from, &into, &written, &read}) {
            expect(each->is_right(), "wrong bytes");
        }
        for (MPI_Datatype& each : types) {
            if (is_absolute) {
                MPI_Type_free(&each);
            }
        }
    }
}

} // namespace

void add_messages(std::vector<named_call>& calls)
{
    calls.push_back({"send", [] { run_messages("send", plain_receive, MPI_Send, MPI_Isend, MPI_Send_init); }});
    calls.push_back({"ssend", [] { run_messages("ssend", matched_receive, MPI_Ssend, MPI_Issend, MPI_Ssend_init); }});
    calls.push_back({"rsend", [] { run_messages("rsend", ready_receive, MPI_Rsend, MPI_Irsend, MPI_Rsend_init); }});
    calls.push_back({"bsend", run_buffered});
    calls.push_back({"sendrecv", run_sendrecv});
    calls.push_back({"sendrecv_replace", run_sendrecv_replace});
    calls.push_back({"partitioned", run_partitioned});
    calls.push_back({"pack", run_pack});
}

} // namespace ucxl::test
