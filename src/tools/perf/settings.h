// What both processes must agree on before a run: a test, its methods, and the layouts of both ends.
//
// The client decides and sends the settings; the server may insist on its own layouts (its option -l). encode() and
// decode() convert them for the socket; decode() trusts nothing.
#pragma once

#include "layout_image.h"
#include "test_kinds.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <ucp_layout.hpp>
#include <vector>

namespace ucxl::perf
{

inline image_place place_of(memory_kind kind)
{
    return kind == memory_kind::region ? image_place::region
           : kind == memory_kind::heap ? image_place::heap
                                       : image_place::own;
}

struct settings {
    test_kind test = test_kind::tag_lat;
    std::vector<method_kind> chosen;
    std::uint64_t message_size = 0;
    std::uint32_t outstanding  = 1;
    bool allocate              = false; // the library allocates the memory of the windows
    bool pass_memh             = false; // every call gets a memory handle
    bool live_data             = false; // the user writes what is sent, and reads what has come
    bool validate              = true;  // checks arriving data before and after the measured rounds
    std::uint32_t word_bytes   = 0;     // of an atomic operation; 0 in other tests
    memory_pair memory;

    bool is_atomic() const { return info_of(test).carried_by == carrier::atomic; }
    // What one operation moves.
    std::uint64_t operation_bytes() const { return is_atomic() ? word_bytes : message_size; }
    // Of the layouts' two ends. Only a get moves data towards the side that asks; an atomic operation has no source.
    memory_kind source_memory() const
    {
        return is_atomic() ? memory_kind::host : is_get() ? memory.remote : memory.local;
    }
    memory_kind destination_memory() const { return is_get() ? memory.local : memory.remote; }

    // Of the memory of the layouts.
    image_place source_place() const { return allocate ? image_place::window : place_of(source_memory()); }
    image_place destination_place() const { return allocate ? image_place::window : place_of(destination_memory()); }

private:
    bool is_get() const { return info_of(test).carried_by == carrier::get; }
};

// The layouts of sender and receiver. In tests that go both ways, each process is both.
struct layout_pair {
    ucx_layout::layout send;
    ucx_layout::layout receive;
};

struct agreed_run {
    settings test_settings;
    layout_pair layouts;
};

inline constexpr std::size_t max_setup_length  = std::size_t{1} << 28;
inline constexpr std::uint32_t max_outstanding = 4096;
inline constexpr std::uint32_t max_processes   = 1024;
inline constexpr std::uint64_t max_iterations  = std::uint64_t{1} << 40;

std::vector<std::byte> encode(const settings& settings, const layout_pair& layouts);
agreed_run decode(std::span<const std::byte> bytes);

// The layouts of one run: `layout` repeated at its extent up to message_size bytes.
ucx_layout::layout repeat_to(const ucx_layout::layout& layout, std::uint64_t message_size, const char* side);

// Why this method cannot run this test; nothing if it can.
std::optional<std::string> refusal(method_kind method, const settings& settings, const layout_pair& layouts);

// Throws if the layouts do not fit the run or each other.
void require_fitting(const settings& settings, const layout_pair& layouts);

} // namespace ucxl::perf
