#include "process_state.h"

#include "tools/common/failure.h"
#include "tools/common/log.h"
#include "tools/common/print_layout.h"

#include <array>
#include <utility>

#include <ucp_layout.hpp>

namespace ucxl::info
{

namespace
{

constexpr auto kinds = std::to_array<std::pair<ucp_layout_failure_kind_t, const char*>>({
    {UCP_LAYOUT_FAILURE_READ, "reading a window of its own"},
    {UCP_LAYOUT_FAILURE_WRITE, "writing a window of its own"},
    {UCP_LAYOUT_FAILURE_PEER_READ, "gets by peers"},
    {UCP_LAYOUT_FAILURE_PEER_WRITE, "puts by peers"},
    {UCP_LAYOUT_FAILURE_PEER_ATOMIC, "atomics by peers"},
    {UCP_LAYOUT_FAILURE_REMOTE_READ, "gets from peers"},
    {UCP_LAYOUT_FAILURE_REMOTE_WRITE, "puts to peers"},
    {UCP_LAYOUT_FAILURE_REMOTE_ATOMIC, "atomics at peers"},
    {UCP_LAYOUT_FAILURE_DATATYPE, "layout datatypes"},
});

} // namespace

std::string hooks_as_text()
{
    return tools::print_hooks() + "\n";
}

std::string failures_as_text(pid_t pid)
{
    const tools::held_log log;
    std::string text = fmt::format("{:<28} {:>12} {:>12}\n", "failed", "all", "silent");
    for (const auto& [kind, name] : kinds) {
        ucp_layout_failure_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL | UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
        if (const auto status = ucp_layout_failure_query(pid, kind, &attr); status != UCS_OK) {
            tools::give_up("{}", log.text(ucs_status_string(status)));
        }
        text += fmt::format("{:<28} {:>12} {:>12}\n", name, attr.all, attr.silent);
    }
    return text;
}

std::string process_as_text(pid_t pid)
{
    return tools::print_windows(pid) + "\n" + tools::print_memory(pid) + "\n" + failures_as_text(pid);
}

} // namespace ucxl::info
