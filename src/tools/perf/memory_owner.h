// The process on the host whose memory a DPU process uses, as that DPU process (the client) sees it. The owner fills
// and checks its memory when it is told to, and takes no part in transfers. owner_process.h is its other end.
//
//     memory_owner owner(socket);      owner.begin(settings, layouts);      // maps and exports, for each method
//     imported_memory::create(context, owner.source_of(0));      owner.fill(0, 7);      owner.end();
#pragma once

#include "exported_memory.h"
#include "settings.h"

#include <optional>
#include <string>
#include <vector>

namespace ucxl::perf
{

enum class owner_step : std::uint32_t { fill = 1, check, map, unmap, end };

struct owner_command {
    owner_step step;
    std::uint32_t method; // index into the chosen methods
    std::uint64_t message;
};

// Of the owner, for one buffer, in seconds.
struct owner_times {
    double map;
    double pack;
    double unmap;
};

class memory_owner
{
public:
    explicit memory_owner(oob_socket& owner) : _owner(owner) {}

    // Of one run. Without methods there is only map() and unmap().
    void begin(const settings& settings, const layout_pair& layouts);
    const exported_memory& source_of(std::size_t method) const { return _exported[method].source; }
    const exported_memory& destination_of(std::size_t method) const { return _exported[method].destination; }
    void fill(std::size_t method, std::uint64_t message);
    // "" or what is wrong.
    std::string check(std::size_t method, std::uint64_t message);
    // A new buffer with the send layout, or as much plain memory.
    exported_memory map(method_kind kind);
    owner_times unmap();
    void end();
    // No further run.
    void leave();

private:
    struct exported_pair {
        exported_memory source;
        exported_memory destination;
    };

    void order(owner_step step, std::size_t method = 0, std::uint64_t message = 0);

    oob_socket& _owner;
    std::vector<exported_pair> _exported;
};

} // namespace ucxl::perf
