// What the calls with memory that MPI may not touch share: see untouched_calls.cc. All processes make the same turns.
//
//     const turn now = next_turn("bcast", how);
//     guarded_elements memory(now.from, 2, use::reads);
//     call(how, now, {{&memory}, [&](std::uint64_t data) { memory.fill(data, own_rank); }}, MPI_Bcast, MPI_Ibcast,
//          MPI_Bcast_init, memory.buffer(), memory.count(2), memory.handle(), now.root(), MPI_COMM_WORLD);
#pragma once

#include "guarded_elements.h"
#include "mpi_program.h"
#include "support/random.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <type_traits>
#include <utility>
#include <vector>

namespace ucxl::test
{

extern bool is_bare; // without the library

// Memory that an MPI touches by itself. With the library it only gets plain numbers of the program in such calls.
void leave_to_mpi(guarded_elements& memory);

enum class form : unsigned char { blocking, nonblocking, persistent };
constexpr form forms[] = {form::blocking, form::nonblocking, form::persistent};

// One call of all processes: what is sent, and what is received.
struct turn {
    const element_shape& from;
    const element_shape& into;
    std::uint64_t data;

    int root() const { return static_cast<int>(data % static_cast<std::uint64_t>(num_ranks)); }
    // What the memory of a receiver has before.
    std::uint64_t junk() const { return derive_seed(data, 1); }
};

// Of other shapes at each call, of which at least one is no plain numbers.
turn next_turn(const std::string& what, form how);

enum class message_kind : unsigned char { elements, many, at_bottom, to_no_process, empty };
inline const std::pair<message_kind, const char*> message_kinds[] = {{message_kind::elements, ""},
                                                                     {message_kind::many, ", long"},
                                                                     {message_kind::at_bottom, " at MPI_BOTTOM"},
                                                                     {message_kind::to_no_process, " with no process"},
                                                                     {message_kind::empty, " of nothing"}};

inline bool has_elements(message_kind kind)
{
    return kind != message_kind::to_no_process && kind != message_kind::empty;
}

// The memory of its arguments at this process, and what it has before the call, and after it.
struct arguments_in_memory {
    std::vector<guarded_elements*> all;
    std::function<void(std::uint64_t data)> fill;
    std::function<void()> before_start = {}, after_start = {};
    bool is_read_early = false; // when a persistent request is made, and then no more
};

inline void begin(const arguments_in_memory& memory, std::uint64_t data)
{
    memory.fill(data);
    for (guarded_elements* const each : memory.all) {
        each->allow();
    }
    if (memory.before_start) {
        memory.before_start();
    }
}

inline void end(const arguments_in_memory& memory, MPI_Request* request)
{
    if (memory.after_start) {
        memory.after_start();
    }
    if (request != nullptr) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    for (guarded_elements* const each : memory.all) {
        expect(each->is_right(), "wrong bytes");
    }
}

inline void close(const arguments_in_memory& memory)
{
    for (guarded_elements* const each : memory.all) {
        each->close();
    }
}

constexpr std::nullptr_t no_such_call = nullptr;

// A call in one of its forms. The memory of a persistent request is inaccessible while it does not run.
template <typename Blocking, typename Nonblocking, typename Persistent, typename... Arguments>
void call(form how, const turn& now, const arguments_in_memory& memory, Blocking blocking, Nonblocking nonblocking,
          [[maybe_unused]] Persistent persistent, const Arguments&... arguments)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (how == form::blocking) {
        begin(memory, now.data);
        blocking(arguments...);
        end(memory, nullptr);
    } else if (how == form::nonblocking) {
        begin(memory, now.data);
        nonblocking(arguments..., &request);
        end(memory, &request);
    } else if constexpr (!std::is_null_pointer_v<Persistent>) {
        memory.fill(now.data);
        for (guarded_elements* const each : memory.all) {
            memory.is_read_early ? each->allow() : each->close();
        }
        if constexpr (std::is_invocable_v<Persistent, const Arguments&..., MPI_Info, MPI_Request*>) {
            persistent(arguments..., MPI_INFO_NULL, &request);
        } else {
            persistent(arguments..., &request);
        }
        for (std::uint64_t start = 0; start < (memory.is_read_early ? 1 : 2); ++start) {
            if (!memory.is_read_early) {
                begin(memory, now.data + start);
            }
            MPI_Start(&request);
            end(memory, &request);
            close(memory);
        }
        MPI_Request_free(&request);
    }
}

#define CALL(how, now, memory, name, small, ...)                                                                       \
    call(how, now, memory, MPI_##name, MPI_I##small, MPI_##name##_init, __VA_ARGS__)

// An address of arguments that do not count here.
template <typename Argument = void>
Argument* nowhere()
{
    static void* const page_without_access = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return static_cast<Argument*>(page_without_access);
}

struct named_call {
    const char* name;
    void (*run)();
};
void add_messages(std::vector<named_call>& calls);
void add_collectives(std::vector<named_call>& calls);
void add_operations(std::vector<named_call>& calls);

} // namespace ucxl::test
