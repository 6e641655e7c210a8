#include "report.h"

#include "prm/command.h"
#include "prm/wqe.h"
#include "softhca/shim/system/process_identity.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ucxl::softhca::run
{
namespace
{

using json = nlohmann::ordered_json;

template <typename Enum>
std::string name_or_number(std::size_t value)
{
    const std::string_view name = prm::name_of(static_cast<Enum>(value));
    return name.empty() ? fmt::format("{:#x}", value) : std::string(name);
}

// By opcode: the count, and the count of failures. Opcodes that never occurred are left out.
template <typename Enum, std::size_t Count>
json by_opcode(const std::array<std::uint64_t, Count>& counts, const std::array<std::uint64_t, Count>& failed)
{
    json all = json::object();
    for (std::size_t opcode = 0; opcode < Count; ++opcode) {
        if (counts[opcode] != 0) {
            all[name_or_number<Enum>(opcode)] = {{"count", counts[opcode]}, {"failed", failed[opcode]}};
        }
    }
    return all;
}

// Processes that have died and that no other process has noticed.
std::uint64_t dead_clients(const arena& memory)
{
    return static_cast<std::uint64_t>(std::ranges::count_if(memory.clients, [](const client_record& client) {
        return client.owner.life == life::live &&
               !is_running({.process = client.process, .start_time = client.start_time});
    }));
}

} // namespace

std::string report_as_json(const arena& memory)
{
    const statistics& counts = memory.counts;
    json report;
    report["functions"]           = memory.functions;
    report["commands"]            = by_opcode<prm::command>(counts.commands, counts.failed_commands);
    report["unknown_commands"]    = counts.unknown_commands;
    report["wqes"]                = by_opcode<prm::wqe_opcode>(counts.wqes, counts.failed_wqes);
    report["flushed_wqes"]        = counts.flushed_wqes;
    report["completions"]         = counts.completions;
    report["error_completions"]   = counts.error_completions;
    report["completion_events"]   = counts.completion_events;
    report["async_events"]        = counts.async_events;
    report["lost_events"]         = counts.lost_events;
    report["doorbells"]           = counts.doorbells;
    report["rnr_waits"]           = counts.rnr_waits;
    report["transport_retries"]   = counts.transport_retries;
    report["bytes_moved"]         = counts.bytes_moved;
    report["umr_inline_entries"]  = counts.umr_inline_entries;
    report["umr_pointer_entries"] = counts.umr_pointer_entries;
    report["translation_pieces"]  = counts.translation_pieces;
    report["keys_live"]           = counts.keys_live;
    report["keys_live_max"]       = counts.keys_live_max;
    report["keys_left"]           = counts.keys_left;
    report["memic_used"]          = counts.memic_used;
    report["memic_used_max"]      = counts.memic_used_max;
    report["faults_injected"]     = counts.faults_injected;
    report["clients_lost"]        = counts.clients_lost + dead_clients(memory);
    return report.dump(2) + "\n";
}

} // namespace ucxl::softhca::run
