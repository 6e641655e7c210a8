#include "kernels.h"

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
#endif
    }
};

} // namespace

std::span<const kernel_library* const> usable_kernels()
{
    static const usable_list usable;
    return {usable.libraries.data(), usable.size};
}

} // namespace ucxl
