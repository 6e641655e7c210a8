/* Writes a block of a variable by PnetCDF from memory with a border, which a datatype of MPI describes,
   transposes another one by its mapped calls, reads all of it again and compares. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 512, COLUMNS = 768, BORDER = 2, TURNS = 8 };

static void check(int status, int line)
{
    if (status != NC_NOERR) {
        fprintf(stderr, "line %d: %s\n", line, ncmpi_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define CHECK(call) check((call), __LINE__)

static double expected(int turn, int row, int column)
{
    return turn * 1e7 + row * 1e3 + column;
}

int main(int argc, char** argv)
{
    int rank = 0;
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    int file = 0;
    int dimensions[3];
    int variable = 0;
    CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    CHECK(ncmpi_def_dim(file, "turn", NC_UNLIMITED, &dimensions[0]));
    CHECK(ncmpi_def_dim(file, "row", ROWS, &dimensions[1]));
    CHECK(ncmpi_def_dim(file, "column", (MPI_Offset)COLUMNS * size, &dimensions[2]));
    CHECK(ncmpi_def_var(file, "field", NC_DOUBLE, 3, dimensions, &variable));
    CHECK(ncmpi_enddef(file));

    const int sizes[2] = {ROWS + 2 * BORDER, COLUMNS + 2 * BORDER};
    const int own[2]   = {ROWS, COLUMNS};
    const int first[2] = {BORDER, BORDER};
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, sizes, own, first, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);
    double* const memory     = calloc((size_t)sizes[0] * sizes[1], sizeof(double));
    double* const transposed = calloc((size_t)ROWS * COLUMNS, sizeof(double));
    const MPI_Offset imap[3] = {(MPI_Offset)ROWS * COLUMNS, 1, ROWS};
    long wrong               = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        const MPI_Offset start[3] = {turn, 0, (MPI_Offset)COLUMNS * rank};
        const MPI_Offset count[3] = {1, ROWS, COLUMNS};
        for (int row = 0; row < ROWS; row++) {
            for (int column = 0; column < COLUMNS; column++) {
                const double value = expected(turn, row, column + COLUMNS * rank);
                memory[(size_t)(row + BORDER) * sizes[1] + BORDER + column] = value;
                transposed[(size_t)column * ROWS + row]                     = value;
            }
        }
        if (turn % 2 == 0) {
            CHECK(ncmpi_put_vara_all(file, variable, start, count, memory, 1, inner));
        } else {
            CHECK(ncmpi_put_varm_double_all(file, variable, start, count, NULL, imap, transposed));
        }
        for (long i = 0; i < (long)sizes[0] * sizes[1]; i++) {
            memory[i] = -1;
        }
        // The columns of the other process, so that they have been written by it.
        const int other          = (rank + 1) % size;
        const MPI_Offset from[3] = {turn, 0, (MPI_Offset)COLUMNS * other};
        CHECK(ncmpi_get_vara_all(file, variable, from, count, memory, 1, inner));
        for (int row = 0; row < sizes[0]; row++) {
            for (int column = 0; column < sizes[1]; column++) {
                const int is_inner =
                    row >= BORDER && row < ROWS + BORDER && column >= BORDER && column < COLUMNS + BORDER;
                const double value = is_inner ? expected(turn, row - BORDER, column - BORDER + COLUMNS * other) : -1;
                wrong += memory[(size_t)row * sizes[1] + column] != value;
            }
        }
    }
    CHECK(ncmpi_close(file));
    printf("%d turns, %ld wrong\n", TURNS, wrong);
    MPI_Type_free(&inner);
    free(memory);
    free(transposed);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
