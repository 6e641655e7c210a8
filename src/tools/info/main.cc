// ucx_layout_info: explains a layout.
#include "draw.h"
#include "explain.h"
#include "process_state.h"
#include "tools/common/failure.h"
#include "tools/common/load_layout.h"
#include "tools/common/log.h"
#include "tools/common/print_layout.h"
#include "tools/common/version.h"
#include "write_file.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

namespace
{

constexpr const char* examples = R"(
examples:
  ucx_layout_info 'strided(1024,8,8192)'                       a matrix column
  ucx_layout_info 'strided([128,128]x8,[131072,1024])'         a face of a 3-D array
  ucx_layout_info 'iov(10000,8..256,seed=1)' --blocks 10       random blocks, the first ten listed
  ucx_layout_info 'strided(1024,8,8192)' --svg column.svg      a picture
  ucx_layout_info @halo.json --json                            a description in a file, for programs
  ucx_layout_info --device mlx5_0 'strided(1024,8,8192)'       what a network card makes of it, and why
  ucx_layout_info --device mlx5_0                              what the card can do, and what of it is used
The grammar is in the manual page ucx_layout_info(1).)";

struct options {
    std::string layout;
    std::string serialized;            // file, or "hex"
    std::string picture;               // file, or "-"
    std::optional<std::string> device; // empty: the first device
    std::size_t num_blocks = 0;
    bool json              = false;
    bool limits            = false;
    bool hooks             = false;
    std::optional<pid_t> failures; // process number
    std::optional<pid_t> process;  // the same
};

// A device's name has none of these.
bool is_layout(const std::string& argument)
{
    return argument.find_first_of("@(") != std::string::npos;
}

void run(const options& options)
{
    using namespace ucxl::info;
    if (options.limits) {
        print(limits_as_text());
        return;
    }
    if (options.hooks) {
        print(hooks_as_text());
        return;
    }
    if (options.failures) {
        print(failures_as_text(*options.failures));
        return;
    }
    if (options.process) {
        print(process_as_text(*options.process));
        return;
    }
    const char* const device = options.device && !options.device->empty() ? options.device->c_str() : nullptr;
    if (options.layout.empty()) {
        print(ucxl::tools::print_device(device) + "\n");
        return;
    }
    const ucx_layout::layout layout = ucxl::tools::load_layout(options.layout);
    if (options.device) {
        print(ucxl::tools::print_device_plan(layout, device) + "\n");
        return;
    }
    if (options.picture == "-") {
        print(draw_as_svg(layout));
        return;
    }
    if (!options.picture.empty()) {
        write_file(options.picture, draw_as_svg(layout));
        return;
    }
    if (options.serialized == "hex") {
        print(to_hex(serialized_bytes(layout)));
        return;
    }
    if (!options.serialized.empty()) {
        write_file(options.serialized, serialized_bytes(layout));
    }
    print(options.json ? explain_as_json(layout, options.num_blocks) : explain_as_text(layout, options.num_blocks));
}

void add_options(CLI::App& app, options& into)
{
    app.usage("usage: ucx_layout_info LAYOUT|@FILE.json [OPTIONS]");
    app.footer(examples);
    app.add_option("layout", into.layout, "a layout as text, or @ and a file with its JSON description");
    app.add_option("--blocks", into.num_blocks, "list the first N blocks")->type_name("N");
    app.add_option("--device", into.device,
                   "print what a network card makes of the layout, or without a layout what the card can do "
                   "(no NAME: the first one)")
        ->type_name("[NAME]")
        ->expected(0, 1);
    app.add_option("--serialize", into.serialized,
                   "write the layout, serialized, to FILE, or print it in hexadecimal (hex)")
        ->type_name("FILE|hex");
    app.add_option("--svg", into.picture, "draw the layout into FILE, or onto standard output (-), as SVG")
        ->type_name("FILE|-");
    app.add_flag("--json", into.json, "print JSON")->excludes("--svg");
    app.add_flag("--limits", into.limits, "print the limits of a layout");
    app.add_flag("--hooks", into.hooks, "print where the library changes stock UCX, and why");
    app.add_option("--failures", into.failures, "print how many operations on windows failed in the process PID")
        ->type_name("PID")
        ->check(CLI::PositiveNumber);
    app.add_option("--process", into.process,
                   "print who moves the bytes of the windows of the process PID, and what its devices have for it")
        ->type_name("PID")
        ->check(CLI::PositiveNumber);
    app.set_version_flag("-V,--version", ucxl::tools::version_text("ucx_layout_info"), "print the version");
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app("Explains a layout: where its bytes are, its normal form, its cost.", "ucx_layout_info");
    options options;
    try {
        ucxl::tools::log_to_stderr();
        add_options(app, options);
        app.parse(argc, argv);
        // The name of a device may be left out before a layout.
        if (options.layout.empty() && options.device && is_layout(*options.device)) {
            options.layout = std::exchange(*options.device, "");
        }
        if (options.layout.empty() && !options.device && !options.limits && !options.hooks && !options.failures &&
            !options.process) {
            std::fputs(app.help().c_str(), stderr);
            return 2;
        }
        run(options);
        return EXIT_SUCCESS;
    } catch (const CLI::Success& shown) {
        return app.exit(shown);
    } catch (const CLI::Error& error) {
        fmt::print(stderr, "ucx_layout_info: {}\ntry ucx_layout_info --help\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_info: {}\n", error.what());
        return EXIT_FAILURE;
    }
}
