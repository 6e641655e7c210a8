// The pairs of processes that `bench transfer` measures: ours and those of MPI libraries.
#pragma once

#include "bench/common/cpus.h"
#include "bench/common/measure.h"
#include "bench/common/scratch_folder.h"
#include "bench/common/worker.h"
#include "transfer_row.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::bench
{

// Two processes, told what to do as sides.h says.
struct pair {
    std::string name;
    std::unique_ptr<worker> process;
};

struct all_pairs {
    pair window, mapped, posix; // ours; of the last one no transport but posix
    pair stock;                 // UCP without windows
    pair limit;                 // nothing but what all of them must do
    std::vector<pair> peers;    // those whose programs were built

    // fn(pair) for each.
    template <typename Fn>
    void for_each(Fn&& fn)
    {
        for (pair* own : {&window, &mapped, &posix, &stock, &limit}) {
            fn(*own);
        }
        for (pair& peer : peers) {
            fn(peer);
        }
    }
};

// Of a program of the build folder, which is given a FIFO, the memory and more words; with settings NAME=VALUE beside
// what is set for this program.
pair start_program(scratch_folder& folder, const std::string& memory, const std::string& name,
                   const std::string& program, const std::vector<std::string>& more,
                   const std::vector<std::string>& settings);
// The pair `kind` of bench_transfer_side.
pair start_side(scratch_folder& folder, const std::string& memory, const std::string& name, const std::string& kind,
                const std::vector<std::string>& settings);

// Of limits: see limit_side.h.
pair start_limit(scratch_folder& folder, const std::string& memory);

// `memory`: the path of shared memory for all of them.
all_pairs start_all(scratch_folder& folder, const std::string& memory);

// The method of sides.h, as something to measure.
contender run_by(const std::string& name, pair& by, const std::string& method);

// Seconds of a cache line's way to the other core and back.
double measure_round_trip(pair& by);

// Of the memory of a pair with shared memory.
first_use measure_first_use(pair& by);

// From now on the processes use their memory so.
void tell_data(pair& by, data_kind data, unsigned buffers);

// Where the processes of all pairs say they are. Throws std::runtime_error when one of them is elsewhere.
void expect_pinned(all_pairs& pairs, const std::optional<cpu_pair>& cpus);

} // namespace ucxl::bench
