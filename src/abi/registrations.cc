#include "registrations.h"

#include "ucx.h"

namespace ucxl::abi
{

// UCX offers this call to programs that release memory in ways it cannot see.
void retire_registrations(void* address, std::size_t length)
{
    using released             = void (*)(void* address, std::size_t length);
    static const auto function = find_function<released>("ucm_vm_munmap");
    if (function != nullptr) {
        function(address, length);
    }
}

} // namespace ucxl::abi
