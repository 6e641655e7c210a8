#include "leak_checks.h"

// clang says it in another way.
#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#endif

#ifdef __SANITIZE_ADDRESS__

#include <sanitizer/lsan_interface.h>

namespace
{

bool skipped = false;

} // namespace

// LeakSanitizer asks for it by this name when a process ends.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off()
{
    return skipped ? 1 : 0;
}

namespace ucxl::test
{

leaks_of_others::leaks_of_others()
{
    __lsan_disable();
}

leaks_of_others::~leaks_of_others()
{
    __lsan_enable();
}

void skip_leak_check()
{
    skipped = true;
}

} // namespace ucxl::test

#else

namespace ucxl::test
{

leaks_of_others::leaks_of_others()  = default;
leaks_of_others::~leaks_of_others() = default;

void skip_leak_check()
{
}

} // namespace ucxl::test

#endif
