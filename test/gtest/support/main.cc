// main() of every test program that has none of its own.
#include "run_tests.h"

int main(int argc, char** argv)
{
    return ucxl::test::run_tests(argc, argv);
}
