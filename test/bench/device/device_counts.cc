#include "device_counts.h"

#include "prm/wqe.h"
#include "support/fabric_records.h"

#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace ucxl::bench
{

counts counts::operator-(const counts& before) const
{
    return {.work_requests = work_requests - before.work_requests,
            .key_bindings  = key_bindings - before.key_bindings,
            .atomics       = atomics - before.atomics,
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
            .atomics       = executed(wqe_opcode::atomic_fa) + executed(wqe_opcode::atomic_cs) +
                       executed(wqe_opcode::atomic_masked_fa) + executed(wqe_opcode::atomic_masked_cs),
            .commands = std::accumulate(all.commands.begin(), all.commands.end(), std::uint64_t{0})};
}

bool has_software_device()
{
    return std::getenv(softhca::fabric_variable) != nullptr;
}

void run_with_software_device(const char* times, char** argv)
{
    std::vector<std::string> words{SOFTHCA_RUN, "--times", times, "--"};
    std::vector<char*> line;
    for (std::string& word : words) {
        line.push_back(word.data());
    }
    for (; *argv != nullptr; ++argv) {
        line.push_back(*argv);
    }
    line.push_back(nullptr);
    execv(line[0], line.data());
    throw std::system_error(errno, std::generic_category(), SOFTHCA_RUN);
}

} // namespace ucxl::bench
