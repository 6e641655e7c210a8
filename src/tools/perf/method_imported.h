// Memory of another process, the owner, which this process uses by imported handles. It cannot look at it.
#pragma once

#include "memory_owner.h"
#include "method.h"

#include <memory>

namespace ucxl::perf
{

// index: of the method in the owner's run. images: not used.
std::unique_ptr<method> make_imported_method(session& session, memory_owner& owner, std::size_t index,
                                             image_pair& images);

} // namespace ucxl::perf
