#include "failing_new.h"

#include <cstdlib>
#include <new>

thread_local long ucxl::test::allocations_left = -1;

namespace
{

using ucxl::test::allocations_left;

void* allocate(std::size_t length)
{
    if (allocations_left == 0) {
        return nullptr;
    }
    if (allocations_left > 0) {
        --allocations_left;
    }
    return std::malloc(length > 0 ? length : 1);
}

} // namespace

void* operator new(std::size_t length)
{
    void* made = allocate(length);
    return made != nullptr ? made : throw std::bad_alloc();
}
void* operator new(std::size_t length, const std::nothrow_t&) noexcept
{
    return allocate(length);
}
void operator delete(void* what) noexcept
{
    std::free(what);
}
void operator delete(void* what, std::size_t) noexcept
{
    std::free(what);
}
