// The exchange of one application: the places of the data at sender and receiver, and the loops that the application
// would write to pack it by hand.
//
// The same bytes are described three times on purpose: by the layout (for the library), by the blocks (plain loops to
// verify the result), and by the packing loops (to compare windows with).
//
// The n-th byte of the sender's blocks must arrive in the n-th byte of the receiver's blocks. The application chooses
// the packed form in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <ucp_layout.hpp>
#include <vector>

namespace examples
{

// Base address of every array of one side.
using array_list = std::span<std::byte* const>;

struct block {
    std::uint32_t array;
    std::size_t offset_bytes; // in that array
    std::size_t length_bytes;
};

struct pattern_side {
    std::vector<std::size_t> array_bytes;  // size of every array
    std::vector<std::size_t> base_offsets; // of the window's base address in every array
    std::function<ucx_layout::layout()> make_layout;
    std::function<std::vector<block>()> blocks;
};

struct pattern {
    std::string name;
    std::string description;
    pattern_side send;
    pattern_side receive;
    std::function<void(array_list from, std::byte* packed)> pack;
    std::function<void(const std::byte* packed, array_list to)> unpack;
};

using pattern_list = std::vector<pattern>;

// Each function adds the exchanges of one application.
void add_matrix_column(pattern_list& to);
void add_halo_faces(pattern_list& to);
void add_tile(pattern_list& to);
void add_vertices(pattern_list& to);
void add_fft_transpose(pattern_list& to);
void add_lammps(pattern_list& to);
void add_milc(pattern_list& to);
void add_wrf(pattern_list& to);
void add_nas_lu(pattern_list& to);
void add_kv_cache(pattern_list& to);

pattern_list all_patterns();

} // namespace examples
