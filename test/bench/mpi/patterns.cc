#include "patterns.h"

#include <cstddef>

namespace ucxl::bench
{

namespace
{

MPI_Datatype done(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

MPI_Datatype freed(MPI_Datatype part, MPI_Datatype whole)
{
    MPI_Type_free(&part);
    return whole;
}

MPI_Datatype subarray(std::vector<int> sizes, std::vector<int> parts, std::vector<int> starts, MPI_Datatype child)
{
    MPI_Datatype type;
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), parts.data(), starts.data(), MPI_ORDER_C,
                             child, &type);
    return type;
}

MPI_Datatype vector(int count, int length, int stride, MPI_Datatype child)
{
    MPI_Datatype type;
    MPI_Type_vector(count, length, stride, child, &type);
    return type;
}

MPI_Datatype hvector(int count, int length, MPI_Aint stride, MPI_Datatype child)
{
    MPI_Datatype type;
    MPI_Type_create_hvector(count, length, stride, child, &type);
    return type;
}

// Arrays of several variables, one after the other in memory.
MPI_Datatype structure(const std::vector<MPI_Datatype>& parts, MPI_Aint distance)
{
    MPI_Datatype type;
    const std::vector<int> ones(parts.size(), 1);
    std::vector<MPI_Aint> places;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        places.push_back(static_cast<MPI_Aint>(i) * distance);
    }
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), places.data(), parts.data(), &type);
    return type;
}

// The halo of WRF: some 3-D fields of floats in one message. Along x its rows are short, along y they are long.
template <bool IsX>
MPI_Datatype wrf()
{
    constexpr int x = 150, y = 100, z = 28, width = 3, fields = 4;
    const std::vector<int> parts = IsX ? std::vector{y, z, width} : std::vector{width, z, x};
    std::vector<MPI_Datatype> all;
    for (int i = 0; i < fields; ++i) {
        all.push_back(subarray({y, z, x}, parts, {1 - IsX, 0, 2 * IsX}, MPI_FLOAT));
    }
    const MPI_Datatype type = structure(all, MPI_Aint{x} * y * z * 4);
    for (MPI_Datatype& each : all) {
        MPI_Type_free(&each);
    }
    return done(type);
}

// MILC: the z face of a lattice of 16^4 points with a complex vector of three floats each.
MPI_Datatype milc()
{
    constexpr int side = 16;
    MPI_Datatype point;
    MPI_Type_contiguous(6, MPI_FLOAT, &point);
    const MPI_Datatype plane = freed(point, vector(side, side * side, side * side * side, point));
    return done(plane);
}

// NAS LU: faces of a 3-D array with five doubles at each point.
MPI_Datatype lu_y()
{
    constexpr int side = 102;
    MPI_Datatype point;
    MPI_Type_contiguous(5, MPI_DOUBLE, &point);
    return done(freed(point, vector(side, 1, side, point)));
}

MPI_Datatype lu_x()
{
    constexpr int side     = 102;
    const MPI_Datatype row = vector(side, 5, 5 * side, MPI_DOUBLE);
    return done(freed(row, hvector(8, 1, MPI_Aint{5} * side * side * 8, row)));
}

// NAS MG: faces of 130^3 doubles.
template <int Axis>
MPI_Datatype mg()
{
    constexpr int side = 130;
    std::vector<int> parts(3, side - 2), starts(3, 1);
    parts[Axis] = 1;
    return done(subarray({side, side, side}, parts, starts, MPI_DOUBLE));
}

// Increasing places with gaps of no pattern, some `gap` apart.
std::vector<int> scattered(int number, int gap)
{
    std::vector<int> places;
    unsigned state = 1;
    int place      = 0;
    for (int i = 0; i < number; ++i) {
        places.push_back(place);
        state = state * 1664525u + 1013904223u;
        place += 1 + static_cast<int>((state >> 16) % static_cast<unsigned>(2 * gap - 1));
    }
    return places;
}

// LAMMPS: atoms from a list, of each some variables in arrays of their own.
MPI_Datatype lammps(const std::vector<int>& doubles, int num_integers)
{
    constexpr int num_atoms = 1500, gap = 6, all_atoms = num_atoms * 2 * gap;
    const std::vector<int> atoms = scattered(num_atoms, gap);
    std::vector<MPI_Datatype> parts;
    const auto add = [&](int length, MPI_Datatype child) {
        std::vector<int> places;
        for (const int each : atoms) {
            places.push_back(each * length);
        }
        MPI_Datatype type;
        MPI_Type_create_indexed_block(num_atoms, length, places.data(), child, &type);
        parts.push_back(type);
    };
    for (const int length : doubles) {
        add(length, MPI_DOUBLE);
    }
    for (int i = 0; i < num_integers; ++i) {
        add(1, MPI_INT);
    }
    const MPI_Datatype type = structure(parts, MPI_Aint{all_atoms} * 3 * 8);
    for (MPI_Datatype& each : parts) {
        MPI_Type_free(&each);
    }
    return done(type);
}

MPI_Datatype lammps_full()
{
    return lammps({3, 1}, 4);
}

MPI_Datatype lammps_atomic()
{
    return lammps({3}, 3);
}

// SPECFEM3D: points of a mesh from lists, with a float (outer core) or three of two arrays (crust and mantle).
MPI_Datatype points(int number, int length)
{
    std::vector<int> places = scattered(number, 4);
    for (int& each : places) {
        each *= length;
    }
    MPI_Datatype type;
    MPI_Type_create_indexed_block(number, length, places.data(), MPI_FLOAT, &type);
    return type;
}

MPI_Datatype specfem_oc()
{
    return done(points(6000, 1));
}

MPI_Datatype specfem_cm()
{
    std::vector<MPI_Datatype> parts{points(3000, 3), points(2000, 3)};
    const MPI_Datatype type = structure(parts, MPI_Aint{3000} * 2 * 4 * 3 * 4);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    return done(type);
}

// FFT2: the transpose of a matrix of complex numbers: a column of blocks for one process.
MPI_Datatype fft2()
{
    constexpr int side = 512, part = 64;
    MPI_Datatype number, column;
    MPI_Type_contiguous(2, MPI_DOUBLE, &number);
    const MPI_Datatype tall = freed(number, vector(side, 1, side, number));
    MPI_Type_create_resized(tall, 0, 16, &column);
    MPI_Type_free(&const_cast<MPI_Datatype&>(tall));
    MPI_Datatype columns;
    MPI_Type_contiguous(part, column, &columns);
    return done(freed(column, columns));
}

// A halo of 128^3 doubles, two cells wide: all three kinds of faces.
template <int Axis>
MPI_Datatype halo3d()
{
    constexpr int side = 128;
    std::vector<int> parts(3, side - 4), starts(3, 2);
    parts[Axis] = 2;
    return done(subarray({side, side, side}, parts, starts, MPI_DOUBLE));
}

// Columns of a matrix, one after the other.
template <int Columns>
MPI_Datatype panel()
{
    constexpr int rows = 1024, pitch = 1024;
    const MPI_Datatype column = vector(rows, 1, pitch, MPI_DOUBLE);
    return done(freed(column, hvector(Columns, 1, 8, column)));
}

// Records of a few members, every other one.
template <int Count>
MPI_Datatype nested()
{
    const int lengths[]      = {1, 2, 1};
    const MPI_Aint places[]  = {0, 8, 28};
    const MPI_Datatype all[] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Datatype record, padded;
    MPI_Type_create_struct(3, lengths, places, all, &record);
    MPI_Type_create_resized(record, 0, 32, &padded);
    MPI_Type_free(&record);
    return done(freed(padded, vector(Count / 4, 4, 8, padded)));
}

template <int Count, int Length, int Stride>
MPI_Datatype blocks()
{
    return done(hvector(Count, Length, Stride, MPI_BYTE));
}

template <int Length>
MPI_Datatype contiguous()
{
    MPI_Datatype type;
    MPI_Type_contiguous(Length, MPI_BYTE, &type);
    return done(type);
}

} // namespace

const std::vector<pattern>& all_patterns()
{
    static const std::vector<pattern> all{
        {"WRF x", wrf<true>, "ddt"},
        {"WRF y", wrf<false>, "ddt"},
        {"MILC", milc, "ddt"},
        {"NAS LU x", lu_x, "ddt"},
        {"NAS LU y", lu_y, "ddt"},
        {"NAS MG x", mg<2>, "ddt"},
        {"NAS MG y", mg<1>, "ddt"},
        {"NAS MG z", mg<0>, "ddt"},
        {"LAMMPS full", lammps_full, "ddt"},
        {"LAMMPS atomic", lammps_atomic, "ddt"},
        {"SPECFEM3D oc", specfem_oc, "ddt"},
        {"SPECFEM3D cm", specfem_cm, "ddt"},
        {"FFT2", fft2, "ddt"},
        {"halo3d x", halo3d<2>, "ddt"},
        {"halo3d y", halo3d<1>, "ddt"},
        {"halo3d z", halo3d<0>, "ddt"},
        {"panel of 4", panel<4>, "panel"},
        {"panel of 16", panel<16>, "panel"},
        {"nested 4 KB", nested<160>, "nested"},
        {"nested 64 KB", nested<2560>, "nested"},
        {"nested 1 MB", nested<40960>, "nested"},
        {"64 of 128, 1 KB", blocks<16, 64, 128>, "blocks"},
        {"64 of 128, 4 KB", blocks<64, 64, 128>, "blocks"},
        {"64 of 128, 64 KB", blocks<1024, 64, 128>, "blocks"},
        {"64 of 128, 1 MB", blocks<16384, 64, 128>, "blocks"},
        {"64 of 128, 4 MB", blocks<65536, 64, 128>, "blocks"},
        {"64 of 128, 16 MB", blocks<262144, 64, 128>, "blocks"},
        {"8 of 32, 4 KB", blocks<512, 8, 32>, "blocks"},
        {"8 of 32, 64 KB", blocks<8192, 8, 32>, "blocks"},
        {"8 of 32, 1 MB", blocks<131072, 8, 32>, "blocks"},
        {"column, 8 KB", blocks<1024, 8, 8192>, "blocks"},
        {"256 of 512, 64 KB", blocks<256, 256, 512>, "blocks"},
        {"256 of 512, 1 MB", blocks<4096, 256, 512>, "blocks"},
        {"4 KB of 8 KB, 64 KB", blocks<16, 4096, 8192>, "blocks"},
        {"4 KB of 8 KB, 1 MB", blocks<256, 4096, 8192>, "blocks"},
        {"4 KB of 8 KB, 4 MB", blocks<1024, 4096, 8192>, "blocks"},
        {"contiguous, 4 KB", contiguous<4096>, "contiguous"},
        {"contiguous, 64 KB", contiguous<65536>, "contiguous"},
        {"contiguous, 512 KB", contiguous<524288>, "contiguous"},
        {"contiguous, 1 MB", contiguous<1 << 20>, "contiguous"},
        {"contiguous, 4 MB", contiguous<4 << 20>, "contiguous"},
        {"contiguous, 16 MB", contiguous<16 << 20>, "contiguous"},
    };
    return all;
}

} // namespace ucxl::bench
