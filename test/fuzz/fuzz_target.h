// A fuzz target is one function of a few bytes that aborts when something is wrong. The same source is a libFuzzer
// program (test/fuzz/run) and part of the replay test (test_corpus.cc), where each has its own name.
//
// Example: UCXL_FUZZ_TARGET(layout_text) { ...; return 0; }     with data and size
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#ifdef UCXL_FUZZ_REPLAY
#define UCXL_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size)
#else
#define UCXL_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#endif

namespace ucxl::fuzz
{

inline void require(bool is_right, const std::string& what)
{
    if (!is_right) {
        std::fprintf(stderr, "fuzz target: wrong: %s\n", what.c_str());
        std::abort();
    }
}

// Takes an input apart from its front. At its end there are only zeros.
class byte_reader
{
public:
    explicit byte_reader(std::span<const std::uint8_t> bytes) : _bytes(bytes) {}

    bool is_empty() const { return _bytes.empty(); }
    std::uint8_t byte()
    {
        const auto first = part(1);
        return first.empty() ? 0 : first.front();
    }
    // At most what is left.
    std::span<const std::uint8_t> part(std::size_t wanted)
    {
        const auto first = _bytes.first(std::min(wanted, _bytes.size()));
        _bytes           = _bytes.subspan(first.size());
        return first;
    }

private:
    std::span<const std::uint8_t> _bytes;
};

} // namespace ucxl::fuzz
