// Prints the capabilities that a domain found on its device: "address=umr repeat=1 atomic=1 nesting=4 ...".
#pragma once

namespace ucxl::test
{

int found_by_self_test();

} // namespace ucxl::test
