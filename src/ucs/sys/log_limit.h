// Limits messages per second, because peers that cause a message as often as they like must not fill the disk.
//
// Example: static log_limit limit;  std::uint64_t left_out;  if (limit.take(left_out)) { ucs_error(...) }
#pragma once

#include <atomic>
#include <cstdint>

#include <time.h>

namespace ucxl
{

class log_limit
{
public:
    static constexpr std::uint32_t messages_per_second = 10;

    // Whether one more message may be logged. Sets left_out to the number dropped since the last one. Any thread.
    bool take(std::uint64_t& left_out)
    {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        const std::uint64_t this_second = static_cast<std::uint64_t>(now.tv_sec) << 32;
        std::uint64_t seen              = _budget.load(std::memory_order_relaxed);
        for (;;) {
            const bool is_new = (seen ^ this_second) >> 32 != 0;
            if (!is_new && static_cast<std::uint32_t>(seen) >= messages_per_second) {
                _left_out.fetch_add(1, std::memory_order_relaxed);
                return false;
            }
            if (_budget.compare_exchange_weak(seen, is_new ? this_second | 1 : seen + 1, std::memory_order_relaxed)) {
                left_out = _left_out.exchange(0, std::memory_order_relaxed);
                return true;
            }
        }
    }

private:
    std::atomic<std::uint64_t> _budget{0}; // the second << 32 | messages in that second
    std::atomic<std::uint64_t> _left_out{0};
};

} // namespace ucxl
