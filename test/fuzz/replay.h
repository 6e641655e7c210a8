// Fuzz targets as tests: the checked-in corpus of each, and a few thousand inputs mutated from it. A target that finds
// something aborts, after saying what. For one source of each test program, which has the table of its targets:
//
//     constexpr replayed_target targets[] = {{"layout_text", fuzz_layout_text, 4000}};
//     UCXL_REPLAY(targets);
#pragma once

#include "support/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace ucxl::test
{

struct replayed_target {
    const char* name;
    int (*run)(const std::uint8_t*, std::size_t);
    int num_mutations;
};

using input = std::vector<std::uint8_t>;

// In the order of their names, so that mutations are the same everywhere.
inline std::vector<input> read_corpus(const std::string& name)
{
    std::vector<std::filesystem::path> paths;
    for (const auto& file : std::filesystem::directory_iterator(std::string(UCXL_FUZZ_CORPUS "/") + name)) {
        paths.push_back(file.path());
    }
    std::ranges::sort(paths);
    std::vector<input> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

inline input mutated(random& from, const std::vector<input>& corpus)
{
    input bytes = corpus[from.below(corpus.size())];
    for (std::uint64_t times = 1 + from.below(4); times > 0; --times) {
        const std::size_t at = from.below(bytes.size() + 1);
        const auto position  = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (from.below(5)) {
        case 0:
            bytes.insert(position, static_cast<std::uint8_t>(from.next()));
            break;
        case 1:
            bytes.resize(at);
            break;
        case 2: {
            const input& other = corpus[from.below(corpus.size())];
            bytes.insert(position, other.begin(),
                         other.begin() + static_cast<std::ptrdiff_t>(from.below(other.size() + 1)));
            break;
        }
        default:
            if (at < bytes.size()) {
                bytes[at] = static_cast<std::uint8_t>(from.one_in(2) ? bytes[at] ^ (1u << from.below(8)) : from.next());
            }
        }
    }
    return bytes;
}

class fuzz_corpus : public ::testing::TestWithParam<replayed_target>
{
};

TEST_P(fuzz_corpus, is_handled)
{
    const std::vector<input> corpus = read_corpus(GetParam().name);
    ASSERT_GE(corpus.size(), 4u);
    for (const input& bytes : corpus) {
        EXPECT_EQ(GetParam().run(bytes.data(), bytes.size()), 0);
    }
}

TEST_P(fuzz_corpus, is_handled_when_mutated)
{
    const std::vector<input> corpus = read_corpus(GetParam().name);
    ASSERT_FALSE(corpus.empty());
    random from(run_seed());
    RecordProperty("seed", std::to_string(run_seed()));
    for (int i = 0; i < GetParam().num_mutations; ++i) {
        const input bytes = mutated(from, corpus);
        EXPECT_EQ(GetParam().run(bytes.data(), bytes.size()), 0);
    }
}

#define UCXL_REPLAY(table)                                                                                             \
    INSTANTIATE_TEST_SUITE_P(targets, fuzz_corpus, ::testing::ValuesIn(table),                                         \
                             [](const auto& test) { return std::string(test.param.name); })

} // namespace ucxl::test
