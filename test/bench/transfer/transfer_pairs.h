// The pairs of processes that `bench transfer` measures: ours and those of MPI libraries.
#pragma once

#include "bench/common/scratch_folder.h"
#include "bench/common/worker.h"

#include <memory>
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
    std::vector<pair> peers;    // those whose programs were built

    // fn(pair) for each.
    template <typename Fn>
    void for_each(Fn&& fn)
    {
        for (pair* own : {&window, &mapped, &posix, &stock}) {
            fn(*own);
        }
        for (pair& peer : peers) {
            fn(peer);
        }
    }
};

// `memory`: the path of shared memory for all of them.
all_pairs start_all(scratch_folder& folder, const std::string& memory);

} // namespace ucxl::bench
