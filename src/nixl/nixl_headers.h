// NIXL's headers for backends. They log by Abseil, which is of no use here and which a backend would have to be linked
// with in the very version that NIXL has. So what they want of it is defined here first, and their own header of it is
// left out.
#pragma once

#define __NIXL_LOG_H
#define NIXL_ERROR std::cerr
#define NIXL_ASSERT(condition) assert(condition)

#include <cassert>
#include <iostream>

#include <backend/backend_engine.h>
#include <backend/backend_plugin.h>
