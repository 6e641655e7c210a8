#include "key_moves.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "key_bench.h"

namespace ucxl::bench
{

namespace
{

using nlohmann::json;

constexpr std::size_t page_bytes  = 4096;
constexpr std::size_t num_pages   = 16384;
constexpr std::size_t batch       = 64; // requests under way at once
constexpr const char* only_set_up = "nothing";

constexpr std::array methods{"key", "blocks", "lists"};

// Where block i is: all over the pages.
constexpr std::size_t place_of(std::size_t block)
{
    return block * 7919 % num_pages * page_bytes + block % 2 * kv_cache::block_bytes;
}

class mover
{
public:
    void by_key()
    {
        const key_region region(_domain, 65532);
        region.set(pieces());
        const ibv_sge all{0, static_cast<std::uint32_t>(_target.size()), region.lkey()};
        check(_pair.write(all, address_of(_target), _to->rkey) == IBV_WC_SUCCESS, "write");
    }

    void by_lists(std::size_t elements)
    {
        const std::vector<ibv_sge> all = pieces();
        std::size_t posted             = 0;
        for (std::size_t done = 0; done < all.size();) {
            const std::size_t count = std::min(elements, all.size() - done);
            const bool last         = done + count == all.size() || ++posted % batch == 0;
            write(std::span(all).subspan(done, count), done * kv_cache::block_bytes, last);
            done += count;
        }
    }

    bool arrived() const
    {
        for (std::size_t block = 0; block < kv_cache::blocks; ++block) {
            if (_target[block * kv_cache::block_bytes + 5] != _source[place_of(block) + 5]) {
                return false;
            }
        }
        return true;
    }

    void fill()
    {
        for (std::size_t i = 0; i < _source.size(); ++i) {
            _source[i] = static_cast<std::uint8_t>(i * 31 + i / page_bytes);
        }
    }

private:
    static std::uint64_t address_of(const std::vector<std::uint8_t>& memory)
    {
        return reinterpret_cast<std::uintptr_t>(memory.data());
    }

    std::vector<ibv_sge> pieces() const
    {
        std::vector<ibv_sge> all;
        for (std::size_t block = 0; block < kv_cache::blocks; ++block) {
            all.push_back({address_of(_source) + place_of(block), kv_cache::block_bytes, _from->lkey});
        }
        return all;
    }

    void write(std::span<const ibv_sge> from, std::uint64_t to, bool and_wait)
    {
        ibv_qp_ex* const qp = ibv_qp_to_qp_ex(_pair.qp());
        ibv_wr_start(qp);
        qp->wr_id    = 0;
        qp->wr_flags = and_wait ? IBV_SEND_SIGNALED : 0;
        ibv_wr_rdma_write(qp, _to->rkey, address_of(_target) + to);
        ibv_wr_set_sge_list(qp, from.size(), from.data());
        check(ibv_wr_complete(qp) == 0, "post");
        check(!and_wait || _pair.wait().status == IBV_WC_SUCCESS, "write");
    }

    test::verbs_pair _pair;
    key_domain _domain{_pair};
    std::vector<std::uint8_t> _source = std::vector<std::uint8_t>(num_pages * page_bytes);
    std::vector<std::uint8_t> _target = std::vector<std::uint8_t>(kv_cache::blocks * kv_cache::block_bytes);
    ibv_mr* _from                     = _pair.registered(_source.data(), _source.size());
    ibv_mr* _to                       = _pair.registered(_target.data(), _target.size());
};

json counts_of(const char* program, const char* method)
{
    char path[]    = "/tmp/keys-stats-XXXXXX";
    const int file = mkstemp(path);
    check(file >= 0, "a file for --stats");
    close(file);
    const pid_t child = fork();
    if (child == 0) {
        setenv("UCXL_TEST_DEVICE", "mlx5_0", 1);
        unsetenv("LD_PRELOAD");
        execlp("softhca-run", "softhca-run", "--stats", path, "--", program, "--move", method, nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::ifstream stream(path);
    json counts = json::parse(stream, nullptr, false);
    unlink(path);
    check(status == 0 && !counts.is_discarded(), "counting under softhca-run");
    return counts;
}

std::int64_t requests(const json& counts, const char* opcode)
{
    const auto found = counts.at("wqes").find(opcode);
    return found == counts.at("wqes").end() ? 0 : found->at("count").get<std::int64_t>();
}

} // namespace

bool move_by(const std::string& method)
{
    mover one;
    if (method == only_set_up) {
        return true;
    }
    if (std::ranges::find(methods, method) == methods.end()) {
        return false;
    }
    one.fill();
    method == "key" ? one.by_key() : one.by_lists(method == "blocks" ? 1 : test::max_elements);
    check(one.arrived(), "wrong bytes");
    return true;
}

table counted_moves(const char* program)
{
    const json before = counts_of(program, only_set_up);
    table rows        = table::array();
    for (const char* const method : methods) {
        const json after = counts_of(program, method);
        table row{{"method", method}};
        for (const char* const opcode : {"rdma_write", "umr"}) {
            row[opcode] = requests(after, opcode) - requests(before, opcode);
        }
        for (const char* const what : {"umr_inline_entries", "umr_pointer_entries", "doorbells", "completions",
                                       "translation_pieces", "bytes_moved"}) {
            row[what] = after.at(what).get<std::int64_t>() - before.at(what).get<std::int64_t>();
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

} // namespace ucxl::bench
