// With how many processes a collective call exchanges blocks.
#pragma once

#include "mpi_functions.h"

#include <cstddef>

namespace ucxl::mpi
{

struct peers {
    std::size_t number  = 0; // of the other group, if the communicator has two
    int rank            = 0;
    bool has_two_groups = false;
    bool is_valid       = false;

    explicit peers(MPI_Comm comm)
    {
        int size = 0, between = 0;
        if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &between) != MPI_SUCCESS) {
            return;
        }
        has_two_groups = between != 0;
        if (PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS &&
            (has_two_groups ? PMPI_Comm_remote_size(comm, &size) : PMPI_Comm_size(comm, &size)) == MPI_SUCCESS) {
            number   = static_cast<std::size_t>(size);
            is_valid = true;
        }
    }

    bool is_root(int root) const { return has_two_groups ? root == MPI_ROOT : root == rank; }
    // Whether this process gives the root something, or gets something from it.
    bool faces_root(int root) const { return !has_two_groups || (root != MPI_ROOT && root != MPI_PROC_NULL); }
};

struct neighbors {
    std::size_t sources      = 0;
    std::size_t destinations = 0;
    bool is_valid            = false;
    bool may_lack_some       = false; // at a border, where nothing arrives

    explicit neighbors(MPI_Comm comm)
    {
        int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0, rank = 0;
        if (comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) {
            return;
        }
        if (kind == MPI_CART) {
            is_valid      = PMPI_Cartdim_get(comm, &in) == MPI_SUCCESS;
            may_lack_some = is_at_border(comm, in);
            out           = in *= 2;
        } else if (kind == MPI_GRAPH) {
            is_valid = PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS &&
                       PMPI_Graph_neighbors_count(comm, rank, &in) == MPI_SUCCESS;
            out = in;
        } else if (kind == MPI_DIST_GRAPH) {
            is_valid = PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) == MPI_SUCCESS;
        }
        sources      = static_cast<std::size_t>(in);
        destinations = static_cast<std::size_t>(out);
    }

private:
    static bool is_at_border(MPI_Comm comm, int dims)
    {
        for (int i = 0; i < dims; ++i) {
            int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
            if (PMPI_Cart_shift(comm, i, 1, &before, &after) != MPI_SUCCESS || before == MPI_PROC_NULL ||
                after == MPI_PROC_NULL) {
                return true;
            }
        }
        return false;
    }
};

} // namespace ucxl::mpi
