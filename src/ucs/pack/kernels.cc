#include "kernels.h"

#include "sys/processor.h"

#include <algorithm>
#include <array>

namespace ucxl
{

namespace generic
{
extern const kernel_library library;
}
namespace avx2
{
extern const kernel_library library;
}
namespace avx512
{
extern const kernel_library library;
}
namespace neon
{
extern const kernel_library library;
}
namespace sve
{
extern const kernel_library library;
}

namespace
{

struct usable_list {
    std::array<const kernel_library*, 3> libraries{&generic::library};
    std::size_t size = 1;

    usable_list()
    {
#ifdef __x86_64__
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
            libraries[size++] = &avx2::library;
            if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
                libraries[size++] = &avx512::library;
            }
        }
#elif defined(__aarch64__)
        libraries[size++] = &neon::library; // every such CPU has it
        if (has_sve()) {
            libraries[size++] = &sve::library;
        }
#endif
    }
};

} // namespace

void word_map::repeat(std::int64_t stride)
{
    const auto apart          = static_cast<std::uint64_t>(stride) / word;
    const std::uint64_t last  = *std::max_element(at.begin(), at.begin() + words);
    const std::uint64_t reach = (max_memory_words - 1 - last) / apart + 1;
    iterations                = static_cast<std::uint32_t>(std::min<std::uint64_t>(max_words / words, reach));
    for (std::uint32_t i = words; i < words * iterations; ++i) {
        at[i] = static_cast<std::uint8_t>(at[i - words] + apart);
    }
}

std::span<const kernel_library* const> usable_kernels()
{
    static const usable_list usable;
    return {usable.libraries.data(), usable.size};
}

} // namespace ucxl
