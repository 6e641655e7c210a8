// The fuzz targets as tests: the checked-in corpus, and a few thousand inputs mutated from it.
// A target that finds something aborts, after saying what.
#include "support/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int fuzz_layout_wire(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_layout_text(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_layout_algebra(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_pass_board(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_peer_messages(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_prm_command(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_prm_wqe(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_shm_import(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_shm_key(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_command(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_keys(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_queues(const std::uint8_t* data, std::size_t size);

namespace ucxl::test
{
namespace
{

struct target {
    const char* name;
    int (*run)(const std::uint8_t*, std::size_t);
    int num_mutations;
};

constexpr target targets[] = {
    {"layout_wire", fuzz_layout_wire, 6000},
    {"layout_text", fuzz_layout_text, 4000},
    {"layout_algebra", fuzz_layout_algebra, 3000},
    {"pass_board", fuzz_pass_board, 100},
    {"peer_messages", fuzz_peer_messages, 2000},
    {"prm_command", fuzz_prm_command, 4000},
    {"prm_wqe", fuzz_prm_wqe, 4000},
    {"shm_import", fuzz_shm_import, 1000},
    {"shm_key", fuzz_shm_key, 6000},
    {"softhca_command", fuzz_softhca_command, 300},
    {"softhca_keys", fuzz_softhca_keys, 3000},
    {"softhca_queues", fuzz_softhca_queues, 3000},
};

using input = std::vector<std::uint8_t>;

// In the order of their names, so that mutations are the same everywhere.
std::vector<input> read_corpus(const std::string& name)
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

input mutated(random& from, const std::vector<input>& corpus)
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

class fuzz_corpus : public ::testing::TestWithParam<target>
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

INSTANTIATE_TEST_SUITE_P(targets, fuzz_corpus, ::testing::ValuesIn(targets),
                         [](const auto& test) { return std::string(test.param.name); });

} // namespace
} // namespace ucxl::test
