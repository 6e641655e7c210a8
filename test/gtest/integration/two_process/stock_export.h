// A host exports a plain buffer, a DPU imports it and moves its bytes to another buffer of the host. Both sides run
// with the library or with stock UCX only: scenario "export.plain". It uses nothing of the library.
#pragma once

namespace ucxl::two_process
{

// With this variable the import is refused.
inline constexpr const char* refused_variable = "UCXL_TEST_IMPORT_IS_REFUSED";

} // namespace ucxl::two_process
