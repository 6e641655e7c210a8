// RapidCheck's headers, without their warnings: its templates use std::aligned_storage, which C++23 deprecates. Clang
// says so wherever they are instantiated, though they are in a system header.
#pragma once

#include <gtest/gtest.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#pragma GCC diagnostic pop
