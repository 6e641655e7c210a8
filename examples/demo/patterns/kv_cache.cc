// The KV cache of a request moves from a prefill to a decode worker of an inference engine with paged attention. The
// model is a 70 B Llama 3 with tensor parallelism 8: 80 layers, one KV head per worker, head dimension 128, 16 bit. A
// page holds 16 tokens, so a block is 16 x 128 x 2 B = 4 KiB, and each layer has a pool of such blocks for keys and
// one for values. A prompt of 2,000 tokens has 125 pages: 80 x 2 x 125 = 20,000 blocks, 82 MB. Sender and receiver
// have page tables of their own.
#include "parts.h"

#include <random>

namespace examples
{

static constexpr std::size_t pools       = 80 * 2; // layers, keys and values
static constexpr std::size_t block_bytes = 16 * 128 * 2;
static constexpr std::size_t pages       = 125;
static constexpr std::size_t pool_pages  = 160;

using page_table = std::vector<std::size_t>;

// The pages in token order, scattered as a busy allocator leaves them.
static page_table make_page_table(unsigned seed)
{
    page_table table(pool_pages);
    for (std::size_t i = 0; i < pool_pages; ++i) {
        table[i] = i;
    }
    std::mt19937 random(seed);
    for (std::size_t i = pool_pages; i > 1; --i) {
        std::swap(table[i - 1], table[random() % i]);
    }
    table.resize(pages);
    return table;
}

// Uses one page table for all pools: 125 list entries instead of 20,000.
static ucx_layout::layout cache_layout(const page_table& table)
{
    std::vector<ucp_layout_iov_t> blocks;
    for (const std::size_t page : table) {
        blocks.push_back({0, static_cast<std::ptrdiff_t>(page * block_bytes), {block_bytes, nullptr}});
    }
    const ucx_layout::layout one_pool = list_of(blocks);
    std::vector<ucp_layout_iov_t> all;
    for (std::uint32_t pool = 0; pool < pools; ++pool) {
        all.push_back({pool, 0, one_pool.as_element()});
    }
    return list_of(all);
}

static pattern_side cache_side(const page_table& table)
{
    return {.array_bytes  = std::vector<std::size_t>(pools, pool_pages * block_bytes),
            .base_offsets = std::vector<std::size_t>(pools, 0),
            .make_layout  = [table] { return cache_layout(table); },
            .blocks =
                [table] {
                    std::vector<block> all;
                    for (std::uint32_t pool = 0; pool < pools; ++pool) {
                        for (const std::size_t page : table) {
                            all.push_back({pool, page * block_bytes, block_bytes});
                        }
                    }
                    return all;
                }};
}

void add_kv_cache(pattern_list& to)
{
    const page_table sent = make_page_table(1), arrived = make_page_table(2);
    to.push_back({.name        = "kv-cache",
                  .description = "20,000 blocks of 4 KiB from the pages of 160 pools into other pages",
                  .send        = cache_side(sent),
                  .receive     = cache_side(arrived),
                  .pack =
                      [sent](array_list from, std::byte* packed) {
                          for (std::size_t pool = 0; pool < pools; ++pool) {
                              for (const std::size_t page : sent) {
                                  take<block_bytes>(packed, from[pool] + page * block_bytes);
                              }
                          }
                      },
                  .unpack =
                      [arrived](const std::byte* packed, array_list into) {
                          for (std::size_t pool = 0; pool < pools; ++pool) {
                              for (const std::size_t page : arrived) {
                                  give<block_bytes>(packed, into[pool] + page * block_bytes);
                              }
                          }
                      }});
}

} // namespace examples
