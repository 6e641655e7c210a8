// A row of `bench pack`, and what is asked of it.
#pragma once

#include "bench/common/arena.h"
#include "bench/common/row.h"

namespace ucxl::bench
{

inline constexpr const char* by_plan      = "plan";
inline constexpr const char* by_memcpy    = "memcpy";
inline constexpr const char* by_streaming = "stream";
inline constexpr const char* by_hand      = "hand";
inline constexpr const char* by_rt        = "rt";
inline constexpr const char* by_tuned     = "tuned";
inline constexpr const char* by_blas      = "omatcopy";
// MPI libraries: those that R compares with.
inline const std::string pack_peers[] = {"openmpi", "mpich"};

struct pack_row : row {
    family judged_as;
    bool cold;
};

std::string table_head();
std::string table_line(const pack_row& row);
// The misses of each goal.
std::string judge(const std::vector<pack_row>& rows);

} // namespace ucxl::bench
