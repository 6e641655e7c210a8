// A profiling tool as there were many before MPI 3: it counts waits, and knows nothing of nonblocking collective calls.
// It starts MPI by another call than the program.
//
// Compiled into the program, or preloaded. BY_DLSYM: it looks for MPI itself, so nobody can stand behind it.
#include <cstdio>
#include <dlfcn.h>
#include <mpi.h>

namespace
{

long waits = 0;

} // namespace

extern "C" int MPI_Init(int* argc, char*** argv)
{
    int provided = 0;
    return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status)
{
    ++waits;
#ifdef BY_DLSYM
    static const auto next = reinterpret_cast<decltype(&PMPI_Wait)>(dlsym(RTLD_DEFAULT, "PMPI_Wait"));
    return next(request, status);
#else
    return PMPI_Wait(request, status);
#endif
}

extern "C" int MPI_Finalize()
{
    std::printf("the tool saw %ld waits\n", waits);
    return PMPI_Finalize();
}
