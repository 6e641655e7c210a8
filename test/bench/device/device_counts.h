// What the software device has done so far, for all processes below one softhca-run.
//
// Example: const device_counts device; const counts before = device.now(); transfer();
//          const counts cost = device.now() - before;
#pragma once

#include <cstdint>
#include <memory>

namespace ucxl::softhca
{
struct arena;
}

namespace ucxl::bench
{

struct counts {
    std::uint64_t work_requests = 0; // of all kinds, also those that bind keys
    std::uint64_t key_bindings  = 0; // UMR work requests
    std::uint64_t commands      = 0;

    counts operator-(const counts& before) const;
};

class device_counts
{
public:
    // Throws std::runtime_error if this process was not started by softhca-run.
    device_counts();

    counts now() const;

private:
    const softhca::arena* _records;
};

// Whether softhca-run started this process.
bool has_software_device();

} // namespace ucxl::bench
