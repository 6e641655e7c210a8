// What a library that stands before functions of others finds behind itself.
#include "sys/search_order.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace
{

using namespace ucxl;

const void* here()
{
    return reinterpret_cast<const void*>(&here);
}

const void* in_libc()
{
    return dlsym(RTLD_DEFAULT, "malloc");
}

TEST(file_of, is_empty_for_addresses_that_no_file_holds)
{
    int on_stack = 0;
    EXPECT_EQ(file_of(&on_stack), "");
    EXPECT_EQ(file_of(nullptr), "");
    EXPECT_NE(file_of(here()), "");
}

TEST(start_of, is_the_same_for_all_addresses_of_an_object)
{
    EXPECT_NE(start_of(here()), nullptr);
    EXPECT_NE(start_of(here()), start_of(in_libc()));
    EXPECT_EQ(start_of(in_libc()), start_of(dlsym(RTLD_DEFAULT, "free")));
    EXPECT_EQ(start_of(nullptr), nullptr);
}

TEST(reached_from, finds_what_the_object_and_its_libraries_have)
{
    EXPECT_EQ(reached_from(here(), "malloc"), in_libc());
    EXPECT_EQ(reached_from(here(), "ucxl_no_such_function"), nullptr);
    EXPECT_EQ(reached_from(nullptr, "malloc"), nullptr);
}

// A library of the system that this program does not need, so its functions are in no scope of the program.
TEST(function_behind, also_finds_what_only_the_caller_reaches)
{
    void* const alone = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (alone == nullptr || dlsym(RTLD_DEFAULT, "inflate") != nullptr) {
        GTEST_SKIP() << "libz is not there, or in the scope of the program";
    }
    void* const inflate = dlsym(alone, "inflate");
    EXPECT_EQ(function_behind(here(), "inflate", here()), nullptr);
    EXPECT_EQ(function_behind(here(), "inflate", inflate), inflate);
    // A function of the object itself is not behind it.
    EXPECT_EQ(function_behind(inflate, "inflate", inflate), nullptr);
}

} // namespace
