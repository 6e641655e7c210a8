// The other end of md_observer.h: what the memory domain reports.
#pragma once

namespace ucxl
{

void observe_registration(const void* md);
void observe_close(const void* md);

} // namespace ucxl
