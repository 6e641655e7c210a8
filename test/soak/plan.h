// What one round of the soak does, drawn from its seed alone: the processes, their options, the operations between them
// and who is killed when. Every process of the round draws the same plan.
#pragma once

#include "support/spec.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ucxl::soak
{

enum class operation_kind : std::uint8_t { message, put, get, add };

// Which memory a side of an operation has.
enum class memory_kind : std::uint8_t {
    contiguous, // no window
    plain,      // a window over memory of malloc: of the heap, where the process has one and the memory is long
    shared      // a window over the same that was moved into a region
};

struct operation {
    operation_kind kind = operation_kind::message;
    unsigned from       = 0; // who starts it: the sender of a message
    unsigned to         = 0;
    std::uint64_t seed  = 0;                  // of its layout and bytes
    memory_kind source  = memory_kind::plain; // of `from`
    memory_kind target  = memory_kind::plain; // of `to`; a window in all but messages
};

enum class disturbance : std::uint8_t { none, kill, stop, fork };

// What there is little of in one process of a round, from its second step on.
enum class shortage : std::uint8_t { none, descriptors, addresses };

struct step {
    std::vector<operation> operations; // at the same time
    disturbance disturbed = disturbance::none;
    unsigned victim       = 0; // a rank
    unsigned delay_us     = 0; // from the start of the operations
};

struct round_plan {
    std::uint64_t seed     = 0;
    unsigned num_processes = 2;
    unsigned num_contexts  = 1; // of each process; each endpoint is one of these
    std::uint64_t heaps    = 0; // a bit for each rank where libucx_layout_heap is preloaded
    unsigned shared_mb     = 0; // how much there may be in /dev/shm; 0: the usual
    shortage little        = shortage::none;
    unsigned has_little    = 0;     // a rank
    unsigned left          = 0;     // descriptors or megabytes that it still gets
    bool has_cards         = false; // on the software device, in its adversarial order
    // Endpoints find out when their peer dies. Without it windows of shared memory are used in one pass; what waits for
    // a process that was killed then never ends.
    bool has_error_handling = false;
    bool has_rendezvous     = false;                          // for all messages of more than 8 KB
    std::vector<std::pair<std::string, std::string>> options; // UCX_* variables
    std::vector<step> steps;

    bool has_heap(unsigned rank) const { return (heaps >> rank & 1) != 0; }
    std::span<const operation_kind> kinds() const; // that UCX can do with these options
    std::string text() const;                      // one line
};

round_plan plan_of(std::uint64_t seed);
// The layouts of both sides, of as many bytes. No byte is described twice.
struct side_layouts {
    test::spec_ptr source, target;
    std::uint64_t length = 0;
};
side_layouts layouts_of(const operation& planned);
std::string text_of(const operation& planned);

} // namespace ucxl::soak
