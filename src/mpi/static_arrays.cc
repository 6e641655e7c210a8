#include "static_arrays.h"

#include "one_pass.h"
#include "settings.h"

#include <array>
#include <atomic>
#include <cstdint>

#include <link.h>
#include <ucp_layout.h>

namespace ucxl::mpi
{

namespace
{

struct part {
    std::uintptr_t start;
    std::size_t length;
};

// The program is the first object. It has one part, or a few where a linker script says so.
constexpr std::size_t max_parts = 4;
std::array<part, max_parts> shared_parts;
std::atomic<std::size_t> num_shared{0}; // written after its part

int share_program(dl_phdr_info* info, std::size_t, void*) noexcept
{
    for (int i = 0; i < info->dlpi_phnum && num_shared.load(std::memory_order_relaxed) < max_parts; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0 ||
            segment.p_memsz < segment.p_filesz + one_pass::min_length) {
            continue;
        }
        const part found{info->dlpi_addr + segment.p_vaddr + segment.p_filesz, segment.p_memsz - segment.p_filesz};
        ucp_layout_memory_params_t params{};
        params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                            UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS;
        params.length  = found.length;
        params.address = reinterpret_cast<void*>(found.start);
        params.flags   = UCP_LAYOUT_MEMORY_FLAG_MOVE;
        ucp_layout_memory_h memory; // as long as the process
        if (ucp_layout_memory_create(&params, &memory) == UCS_OK) {
            const std::size_t number = num_shared.load(std::memory_order_relaxed);
            shared_parts[number]     = found;
            num_shared.store(number + 1, std::memory_order_release);
        }
    }
    return 1; // no other object
}

} // namespace

void static_arrays::share() noexcept
{
    static std::atomic_flag is_done;
    if (!settings::get().shares_static_arrays || !has_ucx() || is_done.test_and_set()) {
        return;
    }
    dl_iterate_phdr(share_program, nullptr);
    log_info("%zu bytes of static arrays are shared memory", length());
}

std::size_t static_arrays::length() noexcept
{
    std::size_t sum = 0;
    for (std::size_t i = 0; i < num_shared.load(std::memory_order_acquire); ++i) {
        sum += shared_parts[i].length;
    }
    return sum;
}

bool static_arrays::has(const void* start, std::size_t length) noexcept
{
    for (std::size_t i = 0; i < num_shared.load(std::memory_order_acquire); ++i) {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(start) - shared_parts[i].start;
        if (offset < shared_parts[i].length && length <= shared_parts[i].length - offset) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl::mpi
