// `contrib/dev bench softhca [--json FILE]`: the software device as a program sees it through the real libibverbs and
// libmlx5: latencies from posting to completion, and bandwidth beside what this machine's memory allows in the same
// run. Runs itself under softhca-run.
//
// Figures of a machine that does something else meanwhile are figures of that, too: the load is printed with them.
#include "bench/common/measure.h"
#include "softhca_direct.h"
#include "softhca_figures.h"
#include "softhca_target.h"
#include "support/end_with_failure.h"
#include "support/software_device.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/uio.h>
#include <thread>

namespace ucxl::bench
{

namespace
{

using test::address;
using test::die;
using test::endpoint;
using json = nlohmann::ordered_json;

constexpr const char* trap_variable       = "UCXL_BENCH_TRAP_US";
constexpr std::size_t bandwidth_bytes[]   = {64 << 10, 1 << 20, 8 << 20};
constexpr std::size_t largest_bytes       = 8 << 20;
constexpr unsigned outstanding            = 8;
constexpr std::size_t bytes_of_a_sample   = 64 << 20;
constexpr target_state states_of_target[] = {target_state::asleep, target_state::stopped, target_state::computing,
                                             target_state::polling, target_state::writing};

struct options {
    std::string json_file;
    std::size_t count   = 20'000;
    std::size_t samples = 15;
};

double load_of_machine()
{
    double load = 0;
    ::getloadavg(&load, 1);
    return load;
}

class measurements
{
public:
    explicit measurements(const options& how) : _how(how)
    {
        _report["cores"]       = std::thread::hardware_concurrency();
        _report["load_before"] = load_of_machine();
    }

    void run()
    {
        fmt::print("{} cores, load {:.2f}; us from posting to completion, {} samples each\n{:34} {:>9} {:>9} {:>9} "
                   "{:>9} {:>9}\n",
                   std::thread::hardware_concurrency(), load_of_machine(), _how.count, "", "p50", "p90", "p99", "p99.9",
                   "worst");
        row("reading the clock", "clock", [] {});
        target_process target(2 * largest_bytes);
        one_process();
        two_processes(target);
        _report["load_after"] = load_of_machine();
        fmt::print("load at the end {:.2f}\n", load_of_machine());
    }

    const json& report() const { return _report; }

private:
    void row(const std::string& what, const std::string& name, const std::function<void()>& once)
    {
        const percentiles found = latency_of(once, _how.count);
        fmt::print("{:34} {:9.2f} {:9.2f} {:9.2f} {:9.2f} {:9.2f}\n", what, found.p50, found.p90, found.p99, found.p999,
                   found.worst);
        std::fflush(stdout);
        _report["latency_us"][name] = {
            {"p50", found.p50}, {"p90", found.p90}, {"p99", found.p99}, {"p99.9", found.p999}, {"worst", found.worst}};
    }

    void rows(const std::string& where, const std::string& name, endpoint& here)
    {
        row(where + ": write 8 B", name + "/write", [&here] {
            here.write(0, 0, 8, 0);
            here.await_one();
        });
        row(where + ": read 8 B", name + "/read", [&here] {
            here.read(0, 0, 8, 0);
            here.await_one();
        });
        row(where + ": fetch-and-add", name + "/fetch_add", [&here] {
            here.fetch_add(0, 0, 0);
            here.await_one();
        });
    }

    void one_process()
    {
        endpoint here(2 * largest_bytes);
        endpoint there(2 * largest_bytes);
        here.connect(there.own());
        there.connect(here.own());
        rows("one process", "one_process", here);
        endpoint near(64);
        endpoint far(64);
        near.connect(far.own());
        far.connect(near.own());
        direct_row("one process", "one_process", near, far.own());
        bandwidth_rows("one process", "one_process", here, there.buffer(), 0);
    }

    // On softhca: the doorbell traps.
    void direct_row(const std::string& where, const std::string& name, endpoint& here, const address& peer)
    {
        direct_queue queue(here);
        const address own = here.own();
        row(where + ": write, own doorbell", name + "/write_own_doorbell", [&] { queue.write_and_wait(own, peer); });
        if (const char* const bare = std::getenv(trap_variable)) {
            fmt::print("{:34} {:>9}\n", "  of that the kernel's trap", bare);
            _report["latency_us"]["trap_of_the_kernel"] = std::atof(bare);
        }
    }

    void two_processes(target_process& target)
    {
        endpoint here(2 * largest_bytes);
        const address peer = target.connect(here.own());
        here.connect(peer);
        for (const target_state state : states_of_target) {
            target.enter(state);
            rows(std::string("target ") + name_of(state), std::string("target_") + name_of(state), here);
        }
        target.enter(target_state::asleep);
        bandwidth_rows("two processes", "two_processes", here, reinterpret_cast<std::byte*>(peer.buffer),
                       target.process());
    }

    // A write through the device, memcpy between buffers of that size, and the system call that copies to another
    // process, in turn.
    void bandwidth_rows(const std::string& where, const std::string& name, endpoint& here, std::byte* remote,
                        pid_t target)
    {
        fmt::print("\n{:34} {:>9} {:>9} {:>9}\n", where + ", GB/s", "write", "memcpy", target != 0 ? "syscall" : "");
        std::vector<std::byte> other(largest_bytes, std::byte{1});
        for (const std::size_t bytes : bandwidth_bytes) {
            std::vector<double> device, copy, call;
            for (std::size_t i = 0; i <= _how.samples; ++i) {
                device.push_back(rate(bytes, [&](std::size_t times) { write_many(here, bytes, times); }));
                copy.push_back(rate(bytes, [&](std::size_t times) {
                    copy_many(target == 0 ? remote : other.data(), here.buffer(), bytes, times);
                }));
                if (target != 0) {
                    call.push_back(rate(
                        bytes, [&](std::size_t times) { call_many(target, remote, here.buffer(), bytes, times); }));
                }
            }
            auto& entry     = _report["bandwidth_gb_s"][name][std::to_string(bytes)];
            entry["write"]  = after_first(device);
            entry["memcpy"] = after_first(copy);
            fmt::print("{:34} {:9.2f} {:9.2f}", fmt::format("  {} KiB", bytes >> 10), after_first(device),
                       after_first(copy));
            if (target != 0) {
                entry["process_vm_writev"] = after_first(call);
                fmt::print(" {:9.2f}", after_first(call));
            }
            fmt::print("\n");
        }
        fmt::print("\n");
    }

    // The first sample pays for memory that was never touched.
    static double after_first(const std::vector<double>& samples)
    {
        return median({samples.begin() + 1, samples.end()});
    }

    static double rate(std::size_t bytes, const std::function<void(std::size_t)>& move)
    {
        const std::size_t times   = bytes_of_a_sample / bytes;
        const std::uint64_t begin = now_ns();
        move(times);
        return static_cast<double>(times * bytes) / static_cast<double>(now_ns() - begin);
    }

    static void write_many(endpoint& here, std::size_t bytes, std::size_t times)
    {
        std::size_t posted = 0;
        for (std::size_t done = 0; done < times; ++done) {
            for (; posted < times && posted < done + outstanding; ++posted) {
                here.write(0, 0, bytes, posted);
            }
            here.await_one();
        }
    }

    static void copy_many(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t times)
    {
        for (std::size_t i = 0; i < times; ++i) {
            std::memcpy(to, from, bytes);
            asm volatile("" : : "r"(to) : "memory"); // each copy is made
        }
    }

    static void call_many(pid_t target, std::byte* to, std::byte* from, std::size_t bytes, std::size_t times)
    {
        const iovec ours{.iov_base = from, .iov_len = bytes};
        const iovec theirs{.iov_base = to, .iov_len = bytes};
        for (std::size_t i = 0; i < times; ++i) {
            if (process_vm_writev(target, &ours, 1, &theirs, 1, 0) != static_cast<ssize_t>(bytes)) {
                die("process_vm_writev failed");
            }
        }
    }

    options _how;
    json _report;
};

void write_json(const json& report, const std::string& file)
{
    const std::string text = report.dump(2) + "\n";
    if (file == "-") {
        fmt::print("{}", text);
    } else if (!(std::ofstream(file) << text)) {
        die(file + ": " + std::strerror(errno));
    }
}

// Runs this program again with the device in it.
[[noreturn]] void run_with_device(char** argv)
{
    if (const double trap = bare_trap_us(); trap != 0) {
        ::setenv(trap_variable, fmt::format("{:.2f}", trap).c_str(), 1);
    }
    test::run_below(SOFTHCA_RUN, {}, argv);
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    std::set_terminate(ucxl::test::end_with_failure);
    options chosen;
    CLI::App app("Latency and bandwidth of the software mlx5 device.", "bench_softhca");
    app.add_option("--json", chosen.json_file, "write the figures to FILE as JSON, too (-: standard output)")
        ->type_name("FILE");
    app.add_option("--count", chosen.count, "latency samples of each row")->check(CLI::Range(1, 100'000'000));
    app.add_option("--samples", chosen.samples, "bandwidth samples of each row")->check(CLI::Range(1, 100'000));
    CLI11_PARSE(app, argc, argv);
    if (std::getenv("SOFTHCA_FABRIC") == nullptr && std::getenv("UCXL_TEST_DEVICE") == nullptr) {
        run_with_device(argv);
    }
    measurements made(chosen);
    made.run();
    if (!chosen.json_file.empty()) {
        write_json(made.report(), chosen.json_file);
    }
}
