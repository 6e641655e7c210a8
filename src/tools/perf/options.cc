#include "options.h"

#include "settings.h"
#include "tools/common/failure.h"
#include "tools/common/number.h"
#include "tools/common/version.h"
#include "ucp_process.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <sched.h>

namespace ucxl::perf
{

namespace
{

template <typename Table>
std::string describe(const Table& table)
{
    std::string text;
    for (const auto& entry : table) {
        text += fmt::format("\n    {:12} {}", entry.name, entry.description);
    }
    return text;
}

template <typename Table>
std::string names(const Table& table)
{
    std::vector<std::string_view> all;
    for (const auto& entry : table) {
        all.push_back(entry.name);
    }
    return fmt::format("{}", fmt::join(all, ", "));
}

// Layouts contain commas only in brackets; the comma between two layouts is outside.
std::vector<std::string> split_layouts(const std::string& text)
{
    std::vector<std::string> parts(1);
    int open = 0;
    for (const char c : text) {
        open += (c == '(' || c == '[') ? 1 : 0;
        open -= (c == ')' || c == ']') ? 1 : 0;
        if (c == ',' && open == 0) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

std::vector<std::string> split(const std::string& text)
{
    return CLI::detail::split(text, ',');
}

[[noreturn]] void reject(const std::string& reason)
{
    throw CLI::ValidationError(reason);
}

// The command line as typed, before it is interpreted.
struct raw_options {
    std::string test;
    std::string sizes;
    std::string layouts;
    std::string methods;
    std::string memory;
    std::string cpus;
    std::string devices;
    unsigned threads = 1;
    bool json        = false;
    bool csv         = false;
    bool validate    = false;
    bool no_validate = false;
};

void read_methods(const std::string& text, options& into)
{
    for (const std::string& name : split(text)) {
        if (name == "all") {
            std::ranges::for_each(methods, [&](const method_info& each) { into.methods.push_back(each.kind); });
            continue;
        }
        const method_info* const found = find_by_name(methods, name);
        if (found == nullptr) {
            reject(fmt::format("--method: \"{}\" is not one of {}, all", name, names(methods)));
        }
        into.methods.push_back(found->kind);
    }
    std::vector<method_kind> once;
    for (const method_kind kind : into.methods) {
        if (std::ranges::find(once, kind) == once.end()) {
            once.push_back(kind);
        }
    }
    into.methods = once;
}

void read_cpus(const std::string& text, options& into)
{
    for (const std::string& part : split(text)) {
        const auto cpu = tools::parse_size(part);
        if (!cpu || *cpu >= CPU_SETSIZE) {
            reject(fmt::format("-c: \"{}\" is not a processor number", part));
        }
        into.cpus.push_back(static_cast<int>(*cpu));
    }
}

void read_sizes(const std::string& text, options& into)
{
    for (const std::string& part : split(text)) {
        const auto size = tools::parse_size(part);
        if (!size || *size == 0) {
            reject(fmt::format("-s: \"{}\" is not a size in bytes (1 or more; 4096, 4K, 1M, 2G)", part));
        }
        into.sizes.push_back(*size);
    }
}

void read_memory(const std::string& text, options& into)
{
    const std::vector<std::string> parts = split(text);
    const auto kind_of                   = [](const std::string& name) {
        const memory_info* const found = find_by_name(memories, name == "app" ? "host" : name);
        if (found == nullptr) {
            reject(fmt::format("-m: \"{}\" is not one of app, {}", name, names(memories)));
        }
        return found->kind;
    };
    if (parts.size() > 2) {
        reject(fmt::format("-m: {} types given; one for both sides, or the local and the remote one", parts.size()));
    }
    into.memory = {.local = kind_of(parts.front()), .remote = kind_of(parts.back())};
    if (into.test == test_kind::contended_fadd) {
        // The variable is the only memory that the option is about.
        if (parts.size() == 2 && into.memory.local != memory_kind::host) {
            reject("-m: contended_fadd fetches into host memory; give the type of the variable alone");
        }
        into.memory.local = memory_kind::host;
        if (into.memory.remote != memory_kind::host && into.memory.remote != memory_kind::rdma) {
            reject("-m: the variable of contended_fadd is in memory of type host or rdma");
        }
    }
}

// What memory of some types cannot be used for.
void check_memory(const raw_options& raw, const options& into)
{
    if (into.allocate && (into.memory.has(memory_kind::region) || into.memory.has(memory_kind::heap))) {
        reject("--allocate: -m says already where the memory is from");
    }
    if (!into.memory.has(memory_kind::rdma)) {
        return;
    }
    if (into.test == test_kind::mem_map) {
        reject("-m: mem_map maps host memory only");
    }
    if (into.test == test_kind::put_lat) {
        reject("-m: the target of ucp_put_lat polls its memory, which no CPU can with type rdma");
    }
    if (into.test == test_kind::cswap && into.memory.local == memory_kind::rdma) {
        reject("-m: UCP takes the new value of ucp_cswap from the local memory, so its type has to be host");
    }
    if (!raw.layouts.empty() || into.allocate) {
        reject(fmt::format("{}: memory of type rdma is contiguous; give -s", into.allocate ? "--allocate" : "-l"));
    }
}

// Atomic operations are on words.
void check_words(const options& into)
{
    for (const std::uint64_t size : into.sizes) {
        if (size != sizeof(std::uint32_t) && size != sizeof(std::uint64_t)) {
            reject(fmt::format("-s: atomic operations have 4 or 8 bytes, not {}", size));
        }
    }
    if (into.layouts.size() > 1) {
        reject("-l: atomic operations take one layout, that of the words in the server's memory");
    }
    if (into.pass_memh) {
        reject("-z: UCP's atomic operations take no memory handles");
    }
}

void check_contention(const CLI::App& app, const options& into)
{
    const bool owns = into.self || into.host.empty();
    for (const char* const name : {"-l", "--method", "-w", "-z", "--allocate", "--rounds", "-f", "-v", "--json", "-R",
                                   "--validate", "--no-validate"}) {
        if (app.get_option(name)->count() != 0) {
            reject(fmt::format("{}: contended_fadd does not take it", name));
        }
    }
    for (const char* const name : {"-m", "-s", "-n", "-O", "--time", "--processes"}) {
        if (!owns && !into.inherited && app.get_option(name)->count() != 0) {
            reject(fmt::format("{}: the server of contended_fadd decides it, so give it there", name));
        }
    }
    if (into.sizes.size() > 1) {
        reject("-s: contended_fadd has one variable");
    }
}

// The owner's memory is the local one of xgvmi tests.
void check_owner(const CLI::App& app, const raw_options& raw, options& into)
{
    const bool is_client = into.self || !into.host.empty();
    if (!into.test_is_set || !has_owner(into.test)) {
        for (const char* const name : {"--devices", "--owner"}) {
            if (app.get_option(name)->count() != 0) {
                reject(fmt::format("{}: only xgvmi tests take it", name));
            }
        }
        return;
    }
    if (into.memory.has(memory_kind::rdma)) {
        reject("-m: xgvmi tests are about memory of the host");
    }
    if (into.test == test_kind::xgvmi_map && into.methods.size() > 1) {
        reject("--method: xgvmi_map takes one method");
    }
    if (into.self && !into.owner.empty()) {
        reject("--owner: --self starts this process itself");
    }
    if (is_client && !into.self && into.owner.empty()) {
        reject("--owner: names the server that has the memory, HOST or HOST:PORT; or use --self");
    }
    if (!raw.devices.empty()) {
        const std::vector<std::string> parts = split(raw.devices);
        if (!into.self) {
            reject("--devices: only with --self; otherwise each process has its own UCX_NET_DEVICES");
        }
        if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
            reject(fmt::format("--devices: \"{}\" is not two devices, that of the host and that of the DPU process",
                               raw.devices));
        }
        into.host_device = parts[0];
        into.dpu_device  = parts[1];
    }
}

void interpret(const raw_options& raw, options& into)
{
    if (!raw.test.empty()) {
        const test_info* const found = find_by_name(tests, raw.test);
        if (found == nullptr) {
            reject(fmt::format("-t: \"{}\" is not one of {}", raw.test, names(tests)));
        }
        into.test        = found->kind;
        into.test_is_set = true;
    }
    if (into.processes) {
        if (into.test_is_set && into.test != test_kind::contended_fadd) {
            reject("--processes: only contended_fadd takes it");
        }
        into.test        = test_kind::contended_fadd;
        into.test_is_set = true;
    }
    if (!raw.memory.empty()) {
        read_memory(raw.memory, into);
    }
    if (!raw.layouts.empty()) {
        into.layouts = split_layouts(raw.layouts);
        if (into.layouts.size() > 2) {
            reject(fmt::format("-l: {} layouts given; one for both sides, or the send layout and the receive layout",
                               into.layouts.size()));
        }
    }
    if (!raw.sizes.empty()) {
        read_sizes(raw.sizes, into);
    }
    if (!raw.cpus.empty()) {
        read_cpus(raw.cpus, into);
    }
    check_memory(raw, into);
    const bool has_words = info_of(into.test).carried_by == carrier::atomic || into.test == test_kind::contended_fadd;
    if (has_words && into.test_is_set) {
        check_words(into);
    }
    read_methods(!raw.methods.empty() ? raw.methods : into.memory.has(memory_kind::rdma) ? "contig" : "window", into);
    if (raw.threads != 1) {
        reject("-T: only one thread per process is supported");
    }
    if (raw.json && raw.csv) {
        reject("-v and --json exclude each other");
    }
    into.format = raw.json ? output_format::json : raw.csv ? output_format::csv : output_format::table;
    // Where the time of single messages matters, the data is checked apart from the measurement anyway.
    into.validate        = raw.no_validate ? false : raw.validate || info_of(into.test).ping_pong || has_words;
    const bool is_client = into.self || !into.host.empty();
    if (into.self && !into.host.empty()) {
        reject("--self starts its own server, so no host can be given");
    }
    if (is_client && !into.test_is_set) {
        reject(fmt::format("-t TEST is missing; one of {}", names(tests)));
    }
    if (is_client && !has_words && into.sizes.empty() && into.layouts.empty()) {
        reject("give the data: -l LAYOUT, or -s SIZE for contiguous bytes");
    }
    if (into.rounds == 0) {
        reject("--rounds: at least 1 is needed");
    }
    if (into.live_data && (!info_of(into.test).ping_pong || into.memory.has(memory_kind::rdma))) {
        reject(fmt::format("--live: {} has no messages that go back and forth in memory of the host",
                           info_of(into.test).name));
    }
}

void add_setup_options(CLI::App& app, raw_options& raw, options& into)
{
    app.add_option("host", into.host, "the server's name or address; without it, this is the server");
    app.add_option("-t", raw.test, "test to run:" + describe(tests))->type_name("TEST");
    app.add_option("-l", raw.layouts, "layout of both sides, or send and receive layout; text or @FILE.json")
        ->type_name("LAYOUT[,LAYOUT]");
    app.add_option("-s", raw.sizes,
                   "message sizes; the layout is repeated up to each (its packed length). Atomic: size of the words, 4 "
                   "or 8 (8)")
        ->type_name("SIZE[,SIZE...]");
    app.add_option("--method", raw.methods,
                   "how the data is moved, or all; with several, each is compared to the first (window; contig with -m "
                   "rdma):" +
                       describe(methods))
        ->type_name("NAME[,NAME...]");
    app.add_option("-n", into.iterations, "messages per method (what takes --time seconds)")
        ->check(CLI::Range(std::uint64_t{1}, max_iterations))
        ->type_name("N");
    app.add_option("-w", into.warmup, "messages before measuring (10000, or what takes 50 ms)")
        ->check(CLI::Range(std::uint64_t{0}, max_iterations))
        ->type_name("N");
    app.add_option("-O", into.outstanding, "messages in flight (32 in bandwidth tests, as far as 64 MB hold them)")
        ->check(CLI::Range(std::uint32_t{1}, max_outstanding))
        ->type_name("N");
    app.add_option("-c", raw.cpus, "run on these processors; with --self the second one is the server's")
        ->type_name("CPU[,CPU...]");
    app.add_option("-p", into.port, "TCP port of the set-up (13337)")->check(CLI::Range(1, 65535))->type_name("PORT");
    app.add_option("-T", raw.threads, "threads per process; only 1")->type_name("N");
    app.add_option("-m", raw.memory,
                   "memory, local and remote: app or host (default); region: layouts and words are in shared memory of "
                   "the library; "
                   "heap: in the preloaded heap; rdma: plain buffers and words are in a network card")
        ->type_name("TYPE[,TYPE]");
    app.add_option("--processes", into.processes,
                   "processes of contended_fadd (4 with --self); a server with it serves as many clients")
        ->check(CLI::Range(1U, max_processes))
        ->type_name("N");
    app.add_option("--devices", raw.devices,
                   "of xgvmi tests with --self: network device of the host, and of the DPU process (mlx5_0,mlx5_1)")
        ->type_name("HOST,DPU");
    app.add_option("--owner", into.owner, "of xgvmi tests: the server that has the memory of the host")
        ->type_name("HOST[:PORT]");
    app.add_flag("-z", into.pass_memh, "give registered memory handles to every call");
    app.add_flag("--allocate", into.allocate,
                 "let ucp_layout_map allocate the memory, so that transports may share it");
    app.add_flag(
        "--live", into.live_data,
        "of latency tests: the user writes one byte of each cache line of a message before it is sent, and reads "
        "one of each when it has come, inside the time");
    app.add_flag("--self", into.self, "fork the server: one command on one host");
    app.add_option("--inherited", into.inherited)->group(""); // not for users
    app.add_option("--rounds", into.rounds, "rounds in which the methods take turns (11)")->type_name("N");
    app.add_option("--time", into.seconds, "seconds per method (1)")->check(CLI::Range(0.001, 86400.0))->type_name("S");
}

void add_output_options(CLI::App& app, raw_options& raw, options& into)
{
    app.add_flag("-f", into.final_only, "print the final numbers only");
    app.add_flag("-v", raw.csv, "print comma-separated values");
    app.add_flag("--json", raw.json, "print one JSON document");
    app.add_option("-R", into.rank, "rank of the percentile column (50)")
        ->check(CLI::Range(0.0, 100.0))
        ->type_name("P");
    app.add_flag("--validate", raw.validate, "check what arrives (always in latency tests)");
    app.add_flag("--no-validate", raw.no_validate, "check nothing");
    app.set_version_flag("-V,--version", tools::version_text("ucx_layout_perftest"), "print the version");
}

} // namespace

errand errand_of(const options& options)
{
    if (options.test == test_kind::contended_fadd) {
        return errand::contention;
    }
    return info_of(options.test).carried_by == carrier::atomic ? errand::atomics : errand::transfers;
}

std::uint64_t features_of(errand purpose)
{
    return purpose == errand::transfers || purpose == errand::exports ? base_features : base_features | atomic_features;
}

std::optional<options> parse_options(int argc, char** argv, int* exit_status)
{
    CLI::App app("Measures layout windows, and what users do without them, between two processes over UCX.",
                 "ucx_layout_perftest");
    app.usage("usage: ucx_layout_perftest [OPTIONS]                       the server\n"
              "       ucx_layout_perftest HOST -t TEST -l LAYOUT [OPTIONS]  the client\n"
              "       ucx_layout_perftest --self -t TEST -l LAYOUT [OPTIONS]  both, on this host\n"
              "       ucx_layout_perftest --processes N [OPTIONS]        the server of contended_fadd");
    options result;
    raw_options raw;
    add_setup_options(app, raw, result);
    add_output_options(app, raw, result);
    try {
        app.parse(argc, argv);
        interpret(raw, result);
        if (result.test_is_set && result.test == test_kind::contended_fadd) {
            check_contention(app, result);
        }
        check_owner(app, raw, result);
    } catch (const CLI::CallForHelp& help) {
        *exit_status = app.exit(help);
        return std::nullopt;
    } catch (const CLI::CallForVersion& version) {
        *exit_status = app.exit(version);
        return std::nullopt;
    } catch (const CLI::Error& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\ntry ucx_layout_perftest --help\n", error.what());
        *exit_status = 2;
        return std::nullopt;
    }
    return result;
}

} // namespace ucxl::perf
