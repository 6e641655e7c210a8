// Standard output, whose loss is a failure.
#pragma once

namespace ucxl::tools
{

// Throws a failure if anything that was printed so far is lost.
void flush_output();

} // namespace ucxl::tools
