// The two processes of the last table of `bench transfer`: contiguous memory by stock UCP, in a program that is not
// linked with the library. Told what to do as sides.h says.
#include "ucp_side.h"

#include <cstdio>

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    if (argc != 3 && argc != 4) {
        std::fprintf(stderr, "usage: bench_tax_side FIFO MEMORY; `bench transfer` runs it\n");
        return 2;
    }
    return run_pair(argc, argv, 2, [&](int socket, bool is_first) {
        take_one(is_first);
        ucp_pair with(socket, UCP_FEATURE_TAG);
        side_loop([&] { return std::make_unique<ucp_side>(with); }, is_first, argv[2]).serve(argv[1]);
    });
}
