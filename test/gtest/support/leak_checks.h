// What LeakSanitizer is not to count. Nothing happens in programs built without it.
#pragma once

namespace ucxl::test
{

// While one lives, nothing that its thread allocates counts as leaked later.
class leaks_of_others
{
public:
    leaks_of_others();
    ~leaks_of_others();
    leaks_of_others(const leaks_of_others&)            = delete;
    leaks_of_others& operator=(const leaks_of_others&) = delete;
};

// This process ends without the check for leaks.
void skip_leak_check();

} // namespace ucxl::test
