/* All-to-all, all-reduce and one-sided operations over all ranks, every byte compared; rank 0 prints how many. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void require(int holds, const char* what, long where)
{
    if (!holds) {
        fprintf(stderr, "rank %d: wrong %s at %ld\n", rank, what, where);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* What `from` sends to `to` at an index, different for every round. */
static uint32_t word(int from, int to, long index, int round)
{
    return (uint32_t)from * 2654435761U + (uint32_t)to * 40503U + (uint32_t)index * 69069U + (uint32_t)round;
}

static void* allocate(size_t bytes)
{
    void* memory = malloc(bytes);

    require(memory != NULL, "allocation", (long)bytes);
    return memory;
}

static void all_to_all(long words, int round)
{
    uint32_t* out = allocate(sizeof(*out) * (size_t)(words * ranks));
    uint32_t* in  = allocate(sizeof(*in) * (size_t)(words * ranks));

    for (long i = 0; i < words * ranks; ++i) {
        out[i] = word(rank, (int)(i / words), i % words, round);
        in[i]  = 0;
    }
    MPI_Alltoall(out, (int)words, MPI_UINT32_T, in, (int)words, MPI_UINT32_T, MPI_COMM_WORLD);
    for (long i = 0; i < words * ranks; ++i) {
        require(in[i] == word((int)(i / words), rank, i % words, round), "all-to-all", i);
    }
    free(out);
    free(in);
}

static void all_reduce(long values, int round)
{
    double* out = allocate(sizeof(*out) * (size_t)values);
    double* in  = allocate(sizeof(*in) * (size_t)values);

    for (long i = 0; i < values; ++i) {
        out[i] = (double)((rank + 1) * (i % 1000 + round));
        in[i]  = -1;
    }
    MPI_Allreduce(out, in, (int)values, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < values; ++i) {
        const long sum = (i % 1000 + round) * ranks * (ranks + 1) / 2;
        require(in[i] == (double)sum, "sum", i);
    }
    MPI_Allreduce(out, in, (int)values, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (long i = 0; i < values; ++i) {
        require(in[i] == (double)((i % 1000 + round) * ranks), "maximum", i);
    }
    free(out);
    free(in);
}

/* Every rank puts into its neighbour's window and counts itself in at rank 0. */
static void one_sided(long words, int round)
{
    uint32_t *memory, *out = allocate(sizeof(*out) * (size_t)words);
    int64_t *counter, one = 1, before = -1;
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Win window, counters;

    MPI_Win_allocate((MPI_Aint)sizeof(*memory) * words, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    MPI_Win_allocate(sizeof(*counter), sizeof(*counter), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &counters);
    *counter = 0;
    for (long i = 0; i < words; ++i) {
        out[i]    = word(rank, right, i, round);
        memory[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Put(out, (int)words, MPI_UINT32_T, right, 0, (int)words, MPI_UINT32_T, window);
    MPI_Win_unlock_all(window);
    MPI_Win_lock_all(0, counters);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, counters);
    MPI_Win_unlock_all(counters);
    MPI_Barrier(MPI_COMM_WORLD);
    require(before >= 0 && before < ranks, "fetch and add", (long)before);
    require(rank != 0 || *counter == ranks, "counter", (long)*counter);
    for (long i = 0; i < words; ++i) {
        require(memory[i] == word(left, rank, i, round), "put", i);
    }
    MPI_Win_free(&counters);
    MPI_Win_free(&window);
    free(out);
}

int main(int argc, char** argv)
{
    static const long counts[] = {1, 7, 256, 2048, 16384, 100000};
    int checked                = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); ++i) {
            all_to_all(counts[i], round);
            all_reduce(counts[i], round);
            one_sided(counts[i], round);
            checked += 3;
        }
    }
    if (rank == 0) {
        printf("%d ranks, %d exchanges right\n", ranks, checked);
    }
    MPI_Finalize();
    return 0;
}
