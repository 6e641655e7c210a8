// The names and properties of tests and methods.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ucxl::perf
{

enum class test_kind : std::uint32_t {
    tag_lat,
    tag_bw,
    am_lat,
    am_bw,
    stream_lat,
    stream_bw,
    put_lat,
    put_bw,
    get,
    mem_map,
    add,
    fadd,
    swap,
    cswap,
    contended_fadd,
    xgvmi_map,
    xgvmi_get,
    xgvmi_put,
};

enum class carrier : std::uint32_t { tag, am, stream, put, get, atomic, none };

struct test_info {
    test_kind kind;
    std::string_view name;
    std::string_view description;
    carrier carried_by;
    bool ping_pong;               // both sides send; half of a round trip is reported
    std::string_view time_column; // the name in ucx_perftest
    unsigned outstanding;         // default of -O
};

inline constexpr std::array tests{
    test_info{test_kind::tag_lat, "tag_lat", "tag match latency", carrier::tag, true, "latency", 1},
    test_info{test_kind::tag_bw, "tag_bw", "tag match bandwidth", carrier::tag, false, "overhead", 32},
    test_info{test_kind::am_lat, "am_lat", "active message latency", carrier::am, true, "latency", 1},
    test_info{test_kind::am_bw, "am_bw", "active message bandwidth", carrier::am, false, "overhead", 32},
    test_info{test_kind::stream_lat, "stream_lat", "stream latency", carrier::stream, true, "latency", 1},
    test_info{test_kind::stream_bw, "stream_bw", "stream bandwidth", carrier::stream, false, "overhead", 32},
    test_info{test_kind::put_lat, "ucp_put_lat", "put latency", carrier::put, true, "latency", 1},
    test_info{test_kind::put_bw, "ucp_put_bw", "put bandwidth", carrier::put, false, "overhead", 32},
    test_info{test_kind::get, "ucp_get", "get latency / bandwidth", carrier::get, false, "latency", 1},
    test_info{test_kind::mem_map, "mem_map", "cost of mapping windows", carrier::none, false, "cost", 1},
    test_info{test_kind::add, "ucp_add", "atomic add", carrier::atomic, false, "overhead", 1},
    test_info{test_kind::fadd, "ucp_fadd", "atomic fetch-and-add", carrier::atomic, false, "latency", 1},
    test_info{test_kind::swap, "ucp_swap", "atomic swap", carrier::atomic, false, "latency", 1},
    test_info{test_kind::cswap, "ucp_cswap", "atomic compare-and-swap", carrier::atomic, false, "latency", 1},
    test_info{test_kind::contended_fadd, "contended_fadd", "fetch-and-add of several processes on one variable",
              carrier::none, false, "latency", 1},
    test_info{test_kind::xgvmi_map, "xgvmi_map", "cost of giving memory of a host to a DPU", carrier::none, false,
              "cost", 1},
    test_info{test_kind::xgvmi_get, "xgvmi_get", "get of a DPU into memory of its host", carrier::get, false, "latency",
              1},
    test_info{test_kind::xgvmi_put, "xgvmi_put", "put of a DPU from memory of its host", carrier::put, false,
              "overhead", 32},
};

inline const test_info& info_of(test_kind kind)
{
    return tests[static_cast<std::size_t>(kind)];
}

// Whether a third process, the owner, has the memory that the client uses.
inline bool has_owner(test_kind kind)
{
    return kind == test_kind::xgvmi_map || kind == test_kind::xgvmi_get || kind == test_kind::xgvmi_put;
}

enum class method_kind : std::uint8_t { window, datatype, pack, iov, contig };

struct method_info {
    method_kind kind;
    std::string_view name;
    std::string_view description;
};

inline constexpr std::array methods{
    method_info{method_kind::window, "window", "a window of ucp_layout_map, given to the stock calls"},
    method_info{method_kind::datatype, "datatype", "a datatype of ucp_layout_datatype_create, nothing mapped"},
    method_info{method_kind::pack, "pack", "loops that copy the blocks into and out of a contiguous buffer"},
    method_info{method_kind::iov, "iov", "the blocks as a UCP_DATATYPE_IOV list"},
    method_info{method_kind::contig, "contig", "as many bytes in plain buffers: the bound, no gather or scatter"},
};

inline const method_info& info_of(method_kind kind)
{
    return methods[static_cast<std::size_t>(kind)];
}

// Where plain buffers, and the words of atomic operations, are. The last two are host memory, in which only the memory
// of layouts and of words is elsewhere: shared memory of the library, and that of a preloaded heap.
enum class memory_kind : std::uint8_t { host, rdma, region, heap };

struct memory_info {
    memory_kind kind;
    std::string_view name;
};

inline constexpr std::array memories{
    memory_info{memory_kind::host, "host"},
    memory_info{memory_kind::rdma, "rdma"},
    memory_info{memory_kind::region, "region"},
    memory_info{memory_kind::heap, "heap"},
};

inline const memory_info& info_of(memory_kind kind)
{
    return memories[static_cast<std::size_t>(kind)];
}

// local: that of the side that sends, puts, gets or starts an atomic operation; remote: that of its peer.
struct memory_pair {
    memory_kind local  = memory_kind::host;
    memory_kind remote = memory_kind::host;

    bool has(memory_kind kind) const { return local == kind || remote == kind; }
};

template <typename Table>
constexpr auto find_by_name(const Table& table, std::string_view name) -> const typename Table::value_type*
{
    for (const auto& entry : table) {
        if (entry.name == name) {
            return &entry;
        }
    }
    return nullptr;
}

} // namespace ucxl::perf
