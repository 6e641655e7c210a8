#include "device_counts.h"

#include "prm/wqe.h"
#include "support/fabric_records.h"

#include <cstdlib>
#include <numeric>

namespace ucxl::bench
{

counts counts::operator-(const counts& before) const
{
    return {.work_requests = work_requests - before.work_requests,
            .key_bindings  = key_bindings - before.key_bindings,
            .commands      = commands - before.commands};
}

device_counts::device_counts() : _records(&test::fabric_records())
{
}

counts device_counts::now() const
{
    using prm::wqe_opcode;
    const softhca::statistics& all = _records->counts;
    const auto executed            = [&](wqe_opcode opcode) { return all.wqes[static_cast<std::size_t>(opcode)]; };
    return {.work_requests = std::accumulate(all.wqes.begin(), all.wqes.end(), std::uint64_t{0}),
            .key_bindings  = executed(wqe_opcode::umr),
            .commands      = std::accumulate(all.commands.begin(), all.commands.end(), std::uint64_t{0})};
}

bool has_software_device()
{
    return std::getenv(softhca::fabric_variable) != nullptr;
}

} // namespace ucxl::bench
