#include "export_survivor.h"

#include "device_control.h"
#include "dpu.h"

#include "integration/two_process/channel.h"
#include "support/random.h"
#include "support/sanitizer.h"
#include "support/wait_until.h"

#include <ucp_layout.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

using two_process::bytes;
using two_process::channel;

using clock = std::chrono::steady_clock;

constexpr std::size_t block = 64, number = 256, distance = 128, length = block * number;

struct partner_is_gone : std::exception {
};

// What the host tells in each round; the exported handle follows.
struct offer {
    std::byte* address;
    std::uint64_t seed;
    bool is_last;
};

bytes message_of(std::uint64_t seed)
{
    random random(seed);
    bytes message(length);
    std::ranges::generate(message, [&] { return static_cast<std::byte>(random.next()); });
    return message;
}

class partner
{
public:
    explicit partner(int fd) : _channel(fd) {}

    void send(std::span<const std::byte> message)
    {
        try {
            _channel.send(message);
        } catch (const std::runtime_error&) {
            throw partner_is_gone();
        }
    }
    bytes receive()
    {
        for (;;) {
            if (auto message = try_receive()) {
                _has_shared = true;
                return std::move(*message);
            }
            sched_yield();
        }
    }
    bool has_shared() const { return _has_shared; }
    // After an operation that failed: it may only do so because the partner has died.
    void expect_gone(const char* operation, ucs_status_t status)
    {
        const bool is_gone = wait_until(
            [&] {
                try {
                    try_receive();
                    return false;
                } catch (const partner_is_gone&) {
                    return true;
                }
            },
            std::chrono::seconds(3));
        check(is_gone, "{}: {}, and the partner lives", operation, ucs_status_string(status));
        throw partner_is_gone();
    }

private:
    std::optional<bytes> try_receive()
    {
        try {
            return _channel.try_receive();
        } catch (const std::runtime_error&) {
            throw partner_is_gone();
        }
    }

    channel _channel;
    bool _has_shared = false;
};

// The longest call.
class stopwatch
{
public:
    template <typename Fn>
    auto time(Fn&& fn)
    {
        const auto begin = clock::now();
        auto value       = fn();
        _longest         = std::max(_longest, clock::now() - begin);
        return value;
    }
    double longest_ms() const { return std::chrono::duration<double, std::milli>(_longest).count(); }

private:
    clock::duration _longest{};
};

class sharing
{
public:
    virtual ~sharing()                                                     = default;
    virtual void share(partner& with, unsigned rounds, std::uint64_t seed) = 0;
};

class sharing_host final : public sharing
{
public:
    explicit sharing_host(stopwatch& watch) : _watch(watch), _context("rc_x,lay_copy") {}

    void share(partner& with, unsigned rounds, std::uint64_t seed) override
    {
        random random(seed);
        for (unsigned round = 0; round < rounds; ++round) {
            const bool is_last = round + 1 == rounds;
            if (random.one_in(2)) {
                plain_buffer buffer(_context.get(), length);
                const finally unmapped(_watch, [&] { buffer.unmap(); });
                std::ranges::copy(message_of(random.next()), buffer.address());
                lend(with, buffer.memh(), buffer.address(), buffer.bytes(), is_last);
            } else {
                lend_window(with, random.next(), is_last);
            }
        }
    }

private:
    // How long unmapping takes, also after the DPU has died.
    template <typename Fn>
    struct finally {
        stopwatch& watch;
        Fn act;

        finally(stopwatch& timed, Fn fn) : watch(timed), act(std::move(fn)) {}
        ~finally()
        {
            watch.time([&] {
                act();
                return 0;
            });
        }
    };

    void lend(partner& with, ucp_mem_h memh, void* address, std::span<const std::byte> memory, bool is_last)
    {
        const auto packed = exported(memh);
        check(is_of_the_library(packed), "the library has not exported a key");
        bytes message(sizeof(offer));
        const offer made{.address = static_cast<std::byte*>(address), .seed = ++_seed, .is_last = is_last};
        std::memcpy(message.data(), &made, sizeof(made));
        message.insert(message.end(), memory.begin(), memory.end());
        message.insert(message.end(), packed.begin(), packed.end());
        with.send(message);
        with.receive(); // the DPU has written its answer and lets go
    }
    void lend_window(partner& with, std::uint64_t seed, bool is_last)
    {
        bytes memory(number * distance, std::byte{0x5a});
        const bytes message = message_of(seed);
        for (std::size_t i = 0; i < length; ++i) {
            memory[i / block * distance + i % block] = message[i];
        }
        const auto layout = ucx_layout::layout::create_strided(block, {{number, distance}});
        auto mapped       = ucx_layout::window::map(_context.get(), layout.value(), memory.data());
        check(mapped.has_value(), "ucp_layout_map");
        std::optional<ucx_layout::window> window(std::move(*mapped));
        {
            const finally unmapped(_watch, [&] { window.reset(); });
            lend(with, window->memh(), window->address(), message, is_last);
        }
        const bytes answer = message_of(_seed);
        for (std::size_t i = 0; i < memory.size(); ++i) {
            const auto expected = i % distance < block ? answer[i / distance * block + i % distance] : std::byte{0x5a};
            check(memory[i] == expected, "byte {} of the memory of a window", i);
        }
    }

    stopwatch& _watch;
    context _context;
    std::uint64_t _seed = 0;
};

class sharing_dpu final : public sharing
{
public:
    explicit sharing_dpu(stopwatch& watch) : _watch(watch), _context(dpu_context(false)), _dpu(_context.get()) {}

    void share(partner& with, unsigned, std::uint64_t) override
    {
        for (bool is_last = false; !is_last;) {
            const bytes message = with.receive();
            offer made{};
            std::memcpy(&made, message.data(), sizeof(made));
            is_last             = made.is_last;
            const auto expected = std::span(message).subspan(sizeof(made), length);
            const auto packed   = std::span(message).subspan(sizeof(made) + length);
            const auto imported =
                _watch.time([&] { return std::make_unique<imported_memory>(_context.get(), packed); });
            expect_ok(with, "import", imported->status());
            bytes got(length);
            expect_ok(with, "read", _watch.time([&] { return _dpu.read(*imported, made.address, got); }));
            check(std::ranges::equal(got, expected), "the DPU has read other bytes");
            const bytes answer = message_of(made.seed);
            expect_ok(with, "write", _watch.time([&] { return _dpu.write(*imported, made.address, answer); }));
            with.send({});
        }
    }

private:
    static void expect_ok(partner& with, const char* operation, ucs_status_t status)
    {
        if (status != UCS_OK) {
            with.expect_gone(operation, status);
        }
    }

    stopwatch& _watch;
    context _context;
    dpu_side _dpu;
};

void run(const sharing_process& process)
{
    stopwatch watch;
    unsigned num_gone = 0, num_in_round = 0;
    {
        std::unique_ptr<sharing> side;
        if (process.role == "host") {
            side = std::make_unique<sharing_host>(watch);
        } else {
            side = std::make_unique<sharing_dpu>(watch);
        }
        std::printf("sharing\n");
        std::fflush(stdout);
        for (unsigned i = 0; i <= process.num_killed; ++i) {
            partner with(two_process::first_channel_fd + static_cast<int>(i));
            // One that is killed shares until then.
            const bool is_last    = i == process.num_killed;
            const unsigned rounds = is_last ? process.rounds : ~0u;
            try {
                side->share(with, rounds, derive_seed(process.seed, i));
                check(is_last, "partner {} was not killed", i);
            } catch (const partner_is_gone&) {
                check(!is_last, "the last partner is gone");
                ++num_gone;
                num_in_round += with.has_shared() ? 1 : 0;
            }
        }
    }
    std::printf("%u partners gone, %u of them in a round, longest call %.3f ms\n", num_gone, num_in_round,
                watch.longest_ms());
    constexpr double no_hang_ms = 2000 * slower_by_sanitizer; // on a busy machine
    check(watch.longest_ms() < no_hang_ms, "a call took {:.0f} ms", watch.longest_ms());
}

} // namespace

void share(const sharing_process& process)
{
    try {
        run(process);
        if (process.num_killed > 0) {
            // The contexts are closed, and the last partner is about to end.
            const device_control device;
            const bool is_empty =
                wait_until([&] { return device.objects() == device_objects{}; }, std::chrono::seconds(10));
            check(is_empty, "{} keys and {} queue pairs stay on the device", device.objects().keys,
                  device.objects().queue_pairs);
        }
        std::fflush(stdout);
        _exit(0);
    } catch (const std::exception& failure) {
        std::printf("FAILED: %s\n", failure.what());
        std::fflush(stdout);
        _exit(1);
    }
}

} // namespace ucxl::test
