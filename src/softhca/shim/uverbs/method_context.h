// Methods that give a program the context of its device file.
#pragma once

#include "call.h"

namespace ucxl::softhca
{

int get_context(uverbs_call& call);
int query_context(uverbs_call& call);

} // namespace ucxl::softhca
