// A fuzz target is one function of a few bytes that aborts when something is wrong. The same source is a libFuzzer
// program (test/fuzz/run) and part of the replay test (test_corpus.cc), where each has its own name.
//
// Example: UCXL_FUZZ_TARGET(layout_text) { ...; return 0; }     with data and size
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

} // namespace ucxl::fuzz
