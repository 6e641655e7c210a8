// With how many processes a collective call exchanges blocks.
#pragma once

#include "mpi_functions.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <vector>

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

    std::size_t own_block() const { return static_cast<std::size_t>(rank); }
    bool is_root(int root) const { return has_two_groups ? root == MPI_ROOT : root == rank; }
    // Whether this process gives the root something, or gets something from it.
    bool faces_root(int root) const { return !has_two_groups || (root != MPI_ROOT && root != MPI_PROC_NULL); }
};

// Whether they are there, in the order of the blocks. Where a neighbour is MPI_PROC_NULL there is none.
struct neighbors {
    std::vector<bool> sources, destinations;
    bool is_valid = false;

    // Throws std::bad_alloc.
    explicit neighbors(MPI_Comm comm)
    {
        int kind = MPI_UNDEFINED, rank = 0;
        if (comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) {
            return;
        }
        if (kind == MPI_CART) {
            is_valid = read_grid(comm);
        } else if (kind == MPI_GRAPH) {
            int number = 0;
            if (PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS &&
                PMPI_Graph_neighbors_count(comm, rank, &number) == MPI_SUCCESS) {
                std::vector<int> ranks(static_cast<std::size_t>(number));
                is_valid = PMPI_Graph_neighbors(comm, rank, number, ranks.data()) == MPI_SUCCESS;
                sources = destinations = are_there(ranks);
            }
        } else if (kind == MPI_DIST_GRAPH) {
            is_valid = read_graph(comm);
        }
    }

    bool has_destination() const { return std::ranges::find(destinations, true) != destinations.end(); }

private:
    static std::vector<bool> are_there(const std::vector<int>& ranks)
    {
        std::vector<bool> all;
        for (const int each : ranks) {
            all.push_back(each != MPI_PROC_NULL);
        }
        return all;
    }

    bool read_grid(MPI_Comm comm)
    {
        int dims = 0;
        if (PMPI_Cartdim_get(comm, &dims) != MPI_SUCCESS) {
            return false;
        }
        for (int i = 0; i < dims; ++i) {
            int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
            if (PMPI_Cart_shift(comm, i, 1, &before, &after) != MPI_SUCCESS) {
                return false;
            }
            sources.push_back(before != MPI_PROC_NULL);
            sources.push_back(after != MPI_PROC_NULL);
        }
        destinations = sources;
        return true;
    }

    bool read_graph(MPI_Comm comm)
    {
        int in = 0, out = 0, weighted = 0;
        if (PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) {
            return false;
        }
        std::vector<int> from(static_cast<std::size_t>(in)), to(static_cast<std::size_t>(out));
        std::vector<int> from_weights(from.size()), to_weights(to.size());
        if (PMPI_Dist_graph_neighbors(comm, in, from.data(), from_weights.data(), out, to.data(), to_weights.data()) !=
            MPI_SUCCESS) {
            return false;
        }
        sources      = are_there(from);
        destinations = are_there(to);
        return true;
    }
};

// None without memory.
inline std::optional<neighbors> neighbors_of(MPI_Comm comm) noexcept
{
    try {
        return neighbors(comm);
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

} // namespace ucxl::mpi
