// memory() and share() of Python: memory that other processes of the host reach in one pass.
#pragma once

#include "array.h"

#include <optional>

namespace ucxl::python
{

// Whether fork() has made another process of the one in which the object was made.
class made_here
{
public:
    made_here();
    bool is_here() const;

private:
    int _process;
};

void bind_memory(nb::module_& module);

} // namespace ucxl::python
