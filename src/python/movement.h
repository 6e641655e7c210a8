// gather(), scatter() and copy() of Python: bytes move between arrays without UCX and without the GIL.
#pragma once

#include "operand.h"

namespace ucxl::python
{

void bind_movement(nb::module_& module);

} // namespace ucxl::python
