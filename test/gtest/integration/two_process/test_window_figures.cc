// What people see of windows and network cards: the window's own attributes, UCX's virtual file system, and the text
// for other processes.
#include "layouts.h"
#include "scenario.h"
#include "transports.h"

#include "support/carrier_reason.h"
#include "support/printed_text.h"

#include <ucp_layout.h>
#include <ucp_layout.hpp>

#include <format>
#include <string>
#include <vector>

#include <unistd.h>

extern "C" {
#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>
}

namespace ucxl::two_process
{

namespace
{

using test::carrier_reason;

// Empty if there is no such file.
std::string file(const std::string& path)
{
    ucs_string_buffer_t text;
    ucs_string_buffer_init(&text);
    const bool is_there       = ucs_vfs_path_read_file(path.c_str(), &text) == UCS_OK;
    const std::string content = is_there ? ucs_string_buffer_cstr(&text) : "";
    ucs_string_buffer_cleanup(&text);
    return content;
}

unsigned long number(const std::string& path)
{
    const std::string content = file(path);
    check(!content.empty(), "there is no file {}", path);
    return std::stoul(content);
}

// As another process sees this one.
std::string seen_from_outside()
{
    return test::printed_text(
        [](FILE* stream) { check_ok(ucp_layout_print_windows(getpid(), stream), "ucp_layout_print_windows"); });
}

void check_seen(const std::string& wanted)
{
    const std::string seen = seen_from_outside();
    check(seen.contains(wanted), "'{}' is not in:\n{}", wanted, seen);
}

std::string line(const char* name, unsigned long value)
{
    return std::format("{:<28} {:>12}\n", name, value);
}

std::string first_device()
{
    const std::string seen = seen_from_outside();
    const auto start       = seen.find("\ndevice ");
    check(start != seen.npos, "no device in:\n{}", seen);
    return seen.substr(start + 8, seen.find('\n', start + 1) - start - 8);
}

struct figures {
    explicit figures(std::string device) : folder("/layout/keys/" + std::move(device) + "/") {}

    unsigned long operator[](const char* name) const { return number(folder + name); }

    std::string folder;
};

void use_keyed_window(ucp_context_h context, const figures& device)
{
    std::vector<std::byte> memory(64 * 8192);
    const auto rows    = ucx_layout::layout::create_strided(4096, {{64, 8192}});
    const auto binds   = device["binds"];
    const auto removed = device["invalidations"];
    {
        const auto window = ucx_layout::window::map(context, *rows, memory.data());
        check(window.has_value(), "no window");
        check(window->carrier() == UCP_LAYOUT_CARRIER_KEYS && carrier_reason(*window).empty(),
              "the CPU copies rows: {}", carrier_reason(*window));
        check(number("/layout/windows/keyed") == 1 && number("/layout/windows/copied") == 0, "other windows");
        check(device["live"] == 1 && device["suspended"] == 0, "{} keys, not 1", device["live"]);
        check(device["entries"] > 0 && device["binds"] > binds, "no bind");
        check(device["bases_registered"] >= memory.size() - 4096, "{} bytes", device["bases_registered"]);
        check(device["spare"] > 0, "no spare key");
        check_seen(line("windows with a key", 1));
        check_seen(line("  keys live", 1));
    }
    check(number("/layout/windows/keyed") == 0, "a window is left");
    check(device["live"] == 0 && device["suspended"] == 1 && device["entries"] == 0, "a key is live without a user");
    check(device["invalidations"] > removed, "no invalidation");
    const auto again = ucx_layout::window::map(context, *rows, memory.data());
    check(again.has_value() && device["live"] == 1 && device["suspended"] == 0, "the key is not in use again");
}

void use_copied_windows(ucp_context_h context)
{
    std::vector<std::byte> memory(100000 * 128);
    const std::string reason = "the device would follow 100000 translations; copying 100000 blocks is faster";
    const auto column        = ucx_layout::layout::create_strided(8, {{100000, 128}});
    const auto shorter       = ucx_layout::layout::create_strided(8, {{90000, 128}});
    {
        const auto window = ucx_layout::window::map(context, *column, memory.data());
        const auto other  = ucx_layout::window::map(context, *shorter, memory.data());
        check(window.has_value() && other.has_value(), "no window");
        check(window->carrier() == UCP_LAYOUT_CARRIER_COPIES, "a column has a key");
        check(carrier_reason(*window) == reason, "because {}", carrier_reason(*window));
        check(number("/layout/windows/copied") == 2, "not 2 copied windows");
        const std::string reasons = file("/layout/windows/reasons");
        check(reasons == "2 2 the device would follow 90000 translations; copying 90000 blocks is faster\n",
              "numbers make another reason: {}", reasons);
        check_seen(line("windows copied by the CPU", 2));
        check_seen("copied, because the device would follow 90000 translations; copying 90000 blocks is faster: 2 now, "
                   "2 in all\n");
    }
    check(number("/layout/windows/copied") == 0, "a window is left");
    check(file("/layout/windows/reasons").starts_with("0 2 "), "now: {}", file("/layout/windows/reasons"));
}

void use_unasked_window(ucp_context_h context)
{
    std::vector<std::byte> memory(4096);
    const auto layout = ucx_layout::layout::create_contig(1, {4096, nullptr});
    const auto window = ucx_layout::window::map(nullptr, *layout, memory.data());
    check(window.has_value(), "no window");
    check(window->carrier() == UCP_LAYOUT_CARRIER_UNDECIDED, "decided without a context");
    check(carrier_reason(*window).starts_with("no mlx5 device was asked"), "because {}", carrier_reason(*window));
    check(number("/layout/windows/unasked") == 1, "not counted as unasked");
    check(window->memh(context).has_value(), "no memory handle");
    check(window->carrier() == UCP_LAYOUT_CARRIER_KEYS, "no key in the context: {}", carrier_reason(*window));
    check(number("/layout/windows/unasked") == 0 && number("/layout/windows/keyed") == 1, "still unasked");
}

void use_card_memory(ucp_context_h context, const figures& device)
{
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.length      = 1024;
    params.flags       = UCP_MEM_MAP_ALLOCATE;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memory   = nullptr;
    check_ok(ucp_mem_map(context, &params, &memory), "ucp_mem_map");
    check(device["memic_chunks"] == 1, "{} chunks", device["memic_chunks"]);
    const auto free = device["memic_free"];
    check(free + 1024 <= device["memic_bytes"], "{} of {} bytes are free", free, device["memic_bytes"]);
    check_seen(line("  free bytes of its memory", free));
    check_ok(ucp_mem_unmap(context, memory), "ucp_mem_unmap");
    check(device["memic_free"] >= free + 1024, "{} bytes are free after the release", device["memic_free"]);
}

const scenario all_figures("figures.all", [](const peer_arguments& arguments) {
    std::string folder;
    {
        const context_handle context(arguments);
        session session(arguments, context);
        const figures device(first_device());
        folder = device.folder;
        check(file(folder + "unusable") == "\n", "unusable: {}", file(folder + "unusable"));
        use_keyed_window(session.context(), device);
        check(file(folder + "choices").contains("start addresses by umr"), "choices: {}", file(folder + "choices"));
        check_seen("  makes keys of: 4 levels of lists");
        use_copied_windows(session.context());
        use_unasked_window(session.context());
        use_card_memory(session.context(), device);
        session.close();
    }
    check(file(folder + "live").empty(), "the device is shown after its domains were closed");
    check(!seen_from_outside().contains("\ndevice "), "the device is shown to others");
});

class window_figures : public testing::TestWithParam<setting>
{
};

TEST_P(window_figures, follow_keys_copies_and_card_memory)
{
    EXPECT_PAIR(config_for(GetParam(), "figures.all", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, window_figures,
                         testing::Combine(testing::ValuesIn(transports({}, {"rc_x_auto"})), testing::Values("y")),
                         setting_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(window_figures); // without a device

} // namespace

} // namespace ucxl::two_process
