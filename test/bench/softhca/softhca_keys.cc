// `contrib/dev bench softhca_keys`: what the device model itself costs for translating keys and moving bytes, without
// system calls: memory is this process's and is copied by memcpy. Figures are medians of rounds.
#include "bench/common/measure.h"
#include "softhca/core/keys/memory_transfer.h"
#include "softhca/core/keys/translation_list.h"
#include "gtest/softhca/core/key_maker.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>

#include <sys/mman.h>

namespace ucxl::bench
{

namespace
{

using namespace softhca;
using softhca::test::address_of;
using softhca::test::key_maker;
using softhca::test::klm;
using softhca::test::repeat_entry;
using softhca::test::repeat_header;

// One process, all of whose memory is there.
class plain_host final : public host
{
public:
    bool lock() override { return false; }
    void unlock() override {}
    move_status move(std::span<const piece> to, std::span<const piece> from) override
    {
        for (std::size_t i = 0; i < to.size(); ++i) {
            std::memcpy(reinterpret_cast<void*>(to[i].address), reinterpret_cast<const void*>(from[i].address),
                        to[i].length);
        }
        return move_status::ok;
    }
    bool alive(client_id) override { return true; }
    std::uint64_t now_ns() override { return 0; }
    void wake_at(std::uint64_t) override {}
    void notify(client_id, event_route&, std::uint32_t) override {}
    void spend(std::uint64_t) override {}
    void trace(std::span<const char>) override {}
    bool tracing() const override { return false; }
};

// Nanoseconds of one call.
double cost(const std::function<void()>& work)
{
    return alternate_calls({.rounds = 21, .sample_time = 1e-3, .most_time = no_limit}, {work})[0].time * 1e9;
}

std::span<std::byte> zeroed(std::size_t bytes)
{
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw std::bad_alloc();
    }
    return {static_cast<std::byte*>(at), bytes};
}

constexpr std::size_t blocks        = 112'000;
constexpr std::size_t block_bytes   = 64;
constexpr std::size_t stride_bytes  = 192;
constexpr std::size_t payload       = blocks * block_bytes;
constexpr std::size_t large_message = 1U << 20;

class measurements
{
public:
    measurements() : _near(zeroed(blocks * stride_bytes)), _far(zeroed(payload))
    {
        std::memset(_near.data(), 1, _near.size());
        std::memset(_far.data(), 1, _far.size());
    }

    void run()
    {
        report_small();
        report_large();
        report_blocks("list of 112000 entries of 64 B", list_key());
        report_blocks("repeat block, 112000 turns of 64 B", repeat_key());
        report_blocks("the same below three more levels", nested_key());
        report_entries();
    }

private:
    void move(const reference& to, const reference& from, std::uint64_t length)
    {
        const memory_side target{_make.user(), right::remote_write, {&to, 1}};
        const memory_side source{_make.user(), right::local_read, {&from, 1}};
        if (transfer(_device, target, source, length).result != transfer_result::outcome::done) {
            throw std::runtime_error("a transfer was refused");
        }
    }

    void report_small()
    {
        std::uint64_t value = 1;
        const reference in_line{.length = 8, .data = reinterpret_cast<std::byte*>(&value)};
        const reference direct{_near_key, address_of(_near), 8, nullptr};
        const reference other{_far_key, address_of(_far), 8, nullptr};
        const reference listed{_make.list({klm(8, _near_key, address_of(_near))}), 0, 8, nullptr};
        const auto print = [&](const char* what, const reference& to, const reference& from) {
            fmt::print("{:44} {:8.1f} ns\n", what, cost([&] { move(to, from, 8); }));
        };
        print("8 B, inline to a direct key", direct, in_line);
        print("8 B, between direct keys", direct, other);
        print("8 B, inline to a list of one entry", listed, in_line);
    }

    void report_large()
    {
        const double ns = cost([&] {
            move({_far_key, address_of(_far), large_message, nullptr},
                 {_near_key, address_of(_near), large_message, nullptr}, large_message);
        });
        fmt::print("{:44} {:8.1f} GB/s\n", "1 MiB, between direct keys", large_message / ns);
    }

    void report_blocks(const char* what, std::uint32_t key)
    {
        const double walk =
            cost([&] { (void)check_access(_device, _make.user(), key, 0, payload, right::local_read); });
        const double moved =
            cost([&] { move({_far_key, address_of(_far), payload, nullptr}, {key, 0, payload, nullptr}, payload); });
        std::uint64_t at  = 0;
        const double seek = cost([&] {
            at = (at + 0x9e3779b9) % (payload - block_bytes);
            (void)check_access(_device, _make.user(), key, at, block_bytes, right::local_read);
        });
        fmt::print("{:44} {:8.1f} ns per entry walked\n", what, walk / blocks);
        fmt::print("{:44} {:8.1f} ns per entry moved, {:.1f} GB/s\n", "", moved / blocks, payload / moved);
        fmt::print("{:44} {:8.1f} ns to walk 64 B somewhere in it\n", "", seek);
    }

    void report_entries()
    {
        constexpr std::size_t count = 65'536;
        const std::uint32_t empty   = _make.empty(prm::mkey_access_mode::klm, count);
        const auto list             = list_of(count);
        const double ns             = cost(
            [&] { (void)store_translations(_device.memory, _make.record(empty), 0, std::as_bytes(std::span(list))); });
        fmt::print("{:44} {:8.1f} ns per entry\n", "writing 65536 entries to a key", ns / count);
    }

    std::vector<translation_entry> list_of(std::size_t count) const
    {
        std::vector<translation_entry> entries;
        for (std::size_t i = 0; i < count; ++i) {
            entries.push_back(klm(block_bytes, _near_key, address_of(_near) + i * stride_bytes));
        }
        return entries;
    }

    std::uint32_t list_key() { return _make.list(list_of(blocks)); }

    std::uint32_t repeat_key()
    {
        return _make.list({repeat_header(block_bytes, blocks, 1),
                           repeat_entry(stride_bytes, block_bytes, _near_key, address_of(_near))});
    }

    std::uint32_t nested_key()
    {
        std::uint32_t key = repeat_key();
        for (unsigned level = 1; level < max_indirection; ++level) {
            key = _make.list({klm(payload, key, 0)});
        }
        return key;
    }

    static arena& new_arena()
    {
        arena& made = *reinterpret_cast<arena*>(zeroed(sizeof(arena)).data());
        made.card   = {};
        return made;
    }

    arena& _memory = new_arena();
    plain_host _host;
    environment _device{_memory, _host, 1};
    key_maker _make{_memory};
    std::span<std::byte> _near;
    std::span<std::byte> _far;
    std::uint32_t _near_key = _make.direct(1, _near);
    std::uint32_t _far_key  = _make.direct(1, _far);
};

} // namespace

} // namespace ucxl::bench

int main()
{
    ucxl::bench::measurements().run();
    return 0;
}
