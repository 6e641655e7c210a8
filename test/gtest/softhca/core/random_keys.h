// Random memory keys over one buffer: direct keys, device memory, lists, blocks, repeat blocks and aliases, which refer
// to each other. Some are free, destroyed or without rights, some entries are wrong. Most ranges are valid, so that
// walks get deep.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "key_maker.h"

namespace ucxl::softhca::test
{

// A number below the bound, or 0.
using choice = std::function<std::uint64_t(std::uint64_t bound)>;

class random_keys
{
public:
    random_keys(arena& memory, client_id client, std::span<const std::byte> buffer, choice choose);

    void make(unsigned count);

    struct target {
        std::uint32_t key     = 0;
        std::uint64_t address = 0;
        std::uint64_t length  = 0; // of the usable range from there on; may be 0
    };

    // An address in one of the keys: `aimed` at a valid place, otherwise anywhere.
    target pick();
    std::span<const std::uint32_t> keys() const { return _keys; }
    key_user user() const { return _make.user(); }
    key_maker& maker() { return _make; }

private:
    std::uint32_t make_one();
    std::uint32_t make_list();
    std::uint32_t make_blocks();
    std::uint32_t make_repeat_block();
    std::uint32_t make_alias();
    void spoil(std::uint32_t key);
    bool one_in(std::uint64_t times) { return _choose(times) == 0; }

    arena& _memory;
    client_id _client;
    std::span<const std::byte> _buffer;
    choice _choose;
    key_maker _make;
    std::vector<std::uint32_t> _keys;
};

} // namespace ucxl::softhca::test
