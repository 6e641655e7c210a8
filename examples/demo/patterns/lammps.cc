// Molecular dynamics with LAMMPS: the particles of an index list, one array per attribute, are appended to the
// receiver's arrays as ghosts. The sizes are those of DDTBench (Schneider, Gerstenberger, Hoefler: Micro-applications
// for communication data access patterns and MPI datatypes, EuroMPI 2012): LAMMPS_full, the peptide example (3,062 of
// 3,534 particles), and LAMMPS_atomic, the crack example (243 of 4,084). As in DDTBench, every attribute is stored in
// doubles.
#include "parts.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace examples
{

static constexpr std::size_t number_bytes   = sizeof(double);
static constexpr std::size_t position_bytes = 3 * number_bytes; // of the first attribute; each other one is one number

struct particles {
    std::size_t local;               // particles the process owns
    std::vector<std::size_t> border; // particles that its neighbour needs
    std::size_t attributes;          // arrays, the first holds positions

    std::size_t bytes_of(std::size_t attribute) const { return attribute == 0 ? position_bytes : number_bytes; }
};

static std::vector<block> border_blocks(const particles& all)
{
    std::vector<block> result;
    for (std::uint32_t attribute = 0; attribute < all.attributes; ++attribute) {
        for (const std::size_t particle : all.border) {
            result.push_back({attribute, particle * all.bytes_of(attribute), all.bytes_of(attribute)});
        }
    }
    return result;
}

static std::vector<block> ghost_blocks(const particles& all)
{
    std::vector<block> result;
    for (std::uint32_t attribute = 0; attribute < all.attributes; ++attribute) {
        const std::size_t bytes = all.bytes_of(attribute);
        result.push_back({attribute, all.local * bytes, all.border.size() * bytes});
    }
    return result;
}

// One list entry per particle and attribute, like MPI_Type_create_hindexed_block inside a struct.
static ucx_layout::layout border_layout(const particles& all)
{
    std::vector<ucp_layout_iov_t> parts;
    for (std::uint32_t attribute = 0; attribute < all.attributes; ++attribute) {
        const std::size_t bytes = all.bytes_of(attribute);
        for (const std::size_t particle : all.border) {
            parts.push_back({attribute, static_cast<std::ptrdiff_t>(particle * bytes), {bytes, nullptr}});
        }
    }
    return list_of(parts);
}

static ucx_layout::layout ghost_layout(const particles& all)
{
    std::vector<ucp_layout_iov_t> parts;
    for (std::uint32_t attribute = 0; attribute < all.attributes; ++attribute) {
        const std::size_t bytes = all.bytes_of(attribute);
        parts.push_back(
            {attribute, static_cast<std::ptrdiff_t>(all.local * bytes), {all.border.size() * bytes, nullptr}});
    }
    return list_of(parts);
}

// Particle by particle, as AtomVec::pack_border does; the atom style fixes the number of attributes.
template <std::size_t attributes>
static void pack(const particles& all, array_list from, std::byte* packed)
{
    for (const std::size_t particle : all.border) {
        take<position_bytes>(packed, from[0] + particle * position_bytes);
        for (std::size_t attribute = 1; attribute < attributes; ++attribute) {
            take<number_bytes>(packed, from[attribute] + particle * number_bytes);
        }
    }
}

template <std::size_t attributes>
static void unpack(const particles& all, const std::byte* packed, array_list to)
{
    for (std::size_t ghost = all.local; ghost < all.local + all.border.size(); ++ghost) {
        give<position_bytes>(packed, to[0] + ghost * position_bytes);
        for (std::size_t attribute = 1; attribute < attributes; ++attribute) {
            give<number_bytes>(packed, to[attribute] + ghost * number_bytes);
        }
    }
}

// The list is the same in every process and every run.
static std::vector<std::size_t> border_list(std::size_t local, std::size_t count)
{
    std::vector<std::size_t> list(local);
    std::iota(list.begin(), list.end(), std::size_t{0});
    std::mt19937 random(2012);
    for (std::size_t i = local; i > 1; --i) {
        std::swap(list[i - 1], list[random() % i]);
    }
    list.resize(count);
    return list;
}

template <std::size_t attributes>
static void add(pattern_list& to, const char* name, const char* description, std::size_t local, std::size_t border)
{
    const particles all{local, border_list(local, border), attributes};
    pattern_side side;
    for (std::size_t attribute = 0; attribute < attributes; ++attribute) {
        side.array_bytes.push_back((local + border) * all.bytes_of(attribute));
        side.base_offsets.push_back(0);
    }
    pattern_side send = side, receive = side;
    send.make_layout    = [all] { return border_layout(all); };
    send.blocks         = [all] { return border_blocks(all); };
    receive.make_layout = [all] { return ghost_layout(all); };
    receive.blocks      = [all] { return ghost_blocks(all); };
    to.push_back(
        {.name        = name,
         .description = description,
         .send        = send,
         .receive     = receive,
         .pack        = [all](array_list from, std::byte* packed) { pack<attributes>(all, from, packed); },
         .unpack      = [all](const std::byte* packed, array_list into) { unpack<attributes>(all, packed, into); }});
}

void add_lammps(pattern_list& to)
{
    // positions, tag, type, mask, and for the full style molecule and charge
    add<6>(to, "lammps-full", "3,062 indexed particles of 3,534, six attribute arrays", 3534, 3062);
    add<4>(to, "lammps-atomic", "243 indexed particles of 4,084, four attribute arrays", 4084, 243);
}

} // namespace examples
