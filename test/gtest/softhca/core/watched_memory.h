// The environment of hostile_queues: bytes that decide, and memory of two processes that watches every move.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "softhca/core/arena/host.h"

namespace ucxl::softhca::test
{

// The bytes that decide; zeros after their end.
class decisions
{
public:
    explicit decisions(std::span<const std::uint8_t> bytes) : _bytes(bytes) {}

    bool at_end() const { return _bytes.empty(); }
    std::uint8_t byte();
    std::uint32_t word();
    std::uint32_t below(std::uint32_t bound) { return word() % bound; }
    void fill(std::span<std::byte> with);

private:
    std::span<const std::uint8_t> _bytes;
};

// The memory of two processes, in ranges that the model may read, write, or neither.
class watched_memory final : public host
{
public:
    static constexpr std::size_t bytes_each = 1U << 16;

    watched_memory();

    // Memory of a live process, aligned to 64 bytes, with forbidden bytes before and after it.
    std::span<std::byte> take(client_id client, std::size_t bytes, bool written);

    bool lock() override { return false; }
    void unlock() override {}
    move_status move(std::span<const piece> to, std::span<const piece> from) override;
    bool alive(client_id client) override { return client < dead.size() && !dead[client]; }
    std::uint64_t now_ns() override { return time_ns; }
    void wake_at(std::uint64_t) override {}
    void notify(client_id, event_route& route, std::uint32_t) override { ++route.sent; }
    void spend(std::uint64_t) override {}
    void trace(std::span<const char> text) override { traced += text.size(); }
    bool tracing() const override { return trace_wanted; }

    std::array<bool, 3> dead{};
    std::uint64_t time_ns = 1;
    std::uint64_t traced  = 0;
    bool trace_wanted     = false;
    std::string violation;

private:
    struct range {
        client_id client;
        std::uint64_t first;
        std::uint64_t length;
        bool written;
    };

    enum class verdict : std::uint8_t {
        fine,
        fault,
        gone,
    };

    verdict judge(const piece& asked, bool writes);

    std::vector<std::byte> _bytes;
    std::array<std::size_t, 3> _used{};
    std::vector<range> _ranges;
};

} // namespace ucxl::softhca::test
