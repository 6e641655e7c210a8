// ucp_layout_print_windows: the figures of window_figures.h as text.
#include "handle.h"
#include "ucs/sys/argument.h"
#include "window_figures.h"

#include <format>
#include <string>

using namespace ucxl;

namespace
{

std::string line(const char* name, std::uint64_t number)
{
    return std::format("{:<28} {:>12}\n", name, number);
}

std::string describe(const process_figures::device& device)
{
    const domain_figures& sum = device.sum;
    std::string text          = std::format("device {}\n", printable(device.name));
    if (device.unusable[0] != 0) {
        text += std::format("  makes no keys: {}\n", printable(device.unusable));
    }
    if (device.choices[0] != 0) {
        text += std::format("  makes keys of: {}\n", printable(device.choices));
    }
    return text + line("  keys live", sum.keys_live) + line("  keys suspended", sum.keys_suspended) +
           line("  keys spare", sum.keys_spare) + line("  entries", sum.entries) + line("  binds", sum.binds) +
           line("  invalidations", sum.invalidations) + line("  bytes registered", sum.bases_registered) +
           line("  chunks of its memory", sum.memic_chunks) + line("  bytes of its memory", sum.memic_bytes) +
           line("  free bytes of its memory", sum.memic_free) + line("  exported", sum.exported) +
           line("  unused keys for export", sum.exported_spare) + line("  aliases", sum.aliases);
}

std::string describe(const process_figures& figures)
{
    std::string text = line("windows with a key", figures.keyed) + line("windows copied by the CPU", figures.copied) +
                       line("windows in no context", figures.unasked);
    for (const auto& reason : figures.reasons) {
        if (reason.all != 0) {
            text += std::format("copied, because {}: {} now, {} in all\n", printable(reason.latest), reason.now,
                                reason.all);
        }
    }
    for (const auto& device : figures.devices) {
        if (device.name[0] != 0) {
            text += describe(device);
        }
    }
    return text;
}

ucs_status_t print_windows(pid_t pid, FILE* stream)
{
    process_figures figures{};
    if (pid == 0) {
        figures = window_figures::instance().read();
    } else if (!window_figures::read_of(pid, figures)) {
        ucs_error("ucp_layout_print_windows: process %d does not exist, cannot be inspected by this process, or has "
                  "not loaded this release of the library",
                  static_cast<int>(pid));
        return UCS_ERR_NO_ELEM;
    }
    if (std::fputs(describe(figures).c_str(), stream) < 0 || std::fflush(stream) != 0) {
        ucs_error("ucp_layout_print_windows: writing failed: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_print_windows(pid_t pid, FILE* stream)
{
    return checked(__func__, {{"stream", stream}}, [&] { return print_windows(pid, stream); });
}
