#include "order_bug.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/umr_request.h"

namespace ucxl::test
{

namespace
{

constexpr std::size_t bytes       = 4096;
constexpr std::size_t piece_bytes = 8;

// One process with two connected pairs of queues, a key, and memory for everything.
class program
{
public:
    program()
    {
        mlx5dv_mkey_init_attr wanted{};
        wanted.pd           = pair.pd();
        wanted.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
        wanted.max_entries  = 4;
        key                 = mlx5dv_create_mkey(&wanted);
        if (key == nullptr) {
            throw std::runtime_error("no key");
        }
        for (std::size_t i = 0; i < bytes; ++i) {
            from[i] = static_cast<std::uint8_t>(i % 250 + 1);
        }
    }

    ~program() { mlx5dv_destroy_mkey(key); }
    program(const program&)            = delete;
    program& operator=(const program&) = delete;

    static std::uint64_t address_of(const std::vector<std::uint8_t>& memory)
    {
        return reinterpret_cast<std::uintptr_t>(memory.data());
    }

    ibv_sge in_from(std::uint32_t length) const { return {address_of(from), length, from_mr->lkey}; }
    ibv_sge in_to(std::uint32_t length) const { return {address_of(to), length, to_mr->lkey}; }

    // As post_all() of src/uct/ib/mlx5/layout/bind.cc, for a key of two pieces, 100 bytes apart.
    void post_bind(bool with_fence)
    {
        const mlx5::resolved_entry pieces[]{{from_mr->lkey, address_of(from), piece_bytes, 0},
                                            {from_mr->lkey, address_of(from) + 100, piece_bytes, 0}};
        std::array<std::byte, 64> entries{};
        if (!mlx5::encode_entries(mlx5::key_kind::klm, 1, pieces, entries)) {
            throw std::runtime_error("entries");
        }
        std::vector<mlx5::request_bytes> requests(1);
        mlx5::encode_bind(
            {.key = key->rkey, .rights = {true, true, true, false}, .length = 2 * piece_bytes, .start_address = {}},
            pair.qp()->qp_num, {.signaled = !with_fence}, entries, requests[0]);
        if (with_fence) {
            mlx5::encode_key_fence(pair.qp()->qp_num, {.signaled = true}, requests.emplace_back());
        }
        post(requests);
    }

    void post_invalidation()
    {
        std::vector<mlx5::request_bytes> requests(1);
        mlx5::encode_invalidate(key->rkey, pair.qp()->qp_num, {.signaled = true}, requests[0]);
        post(requests);
    }

    // Whether the 16 bytes at the beginning of `to` are those of the two pieces.
    bool shows_pieces() const
    {
        return std::memcmp(to.data(), from.data(), piece_bytes) == 0 &&
               std::memcmp(to.data() + piece_bytes, from.data() + 100, piece_bytes) == 0;
    }

    std::vector<std::uint8_t> from = std::vector<std::uint8_t>(bytes);
    std::vector<std::uint8_t> to   = std::vector<std::uint8_t>(bytes);
    verbs_pair pair;
    verbs_pair second{verbs_pair::beside{pair}};
    ibv_mr* from_mr  = pair.registered(from.data(), bytes);
    ibv_mr* to_mr    = pair.registered(to.data(), bytes);
    mlx5dv_mkey* key = nullptr;

private:
    void post(const std::vector<mlx5::request_bytes>& requests)
    {
        ibv_qp_ex* const extended = ibv_qp_to_qp_ex(pair.qp());
        ibv_wr_start(extended);
        for (const mlx5::request_bytes& request : requests) {
            mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(extended), request.bytes.data());
        }
        if (ibv_wr_complete(extended) != 0) {
            throw std::runtime_error("post");
        }
    }
};

bool bind_without_fence(program& own, bool right)
{
    own.post_bind(right);
    own.pair.post_write({0, 2 * piece_bytes, own.key->lkey}, program::address_of(own.to), own.to_mr->rkey);
    const bool bound = own.pair.wait().status == IBV_WC_SUCCESS;
    return bound && own.pair.wait().status == IBV_WC_SUCCESS && own.shows_pieces();
}

bool key_used_early(program& own, bool right)
{
    own.post_bind(true);
    if (right) {
        own.pair.wait();
    }
    return own.second.read(own.in_to(2 * piece_bytes), 0, own.key->rkey) == IBV_WC_SUCCESS && own.shows_pieces();
}

// Who reads through an invalidated key must get an error, and never what is in the memory later.
bool reuse_while_invalidated(program& own, bool right)
{
    own.post_bind(true);
    own.pair.wait();
    own.post_invalidation();
    if (right) {
        own.pair.wait();
    }
    std::ranges::fill(own.from, std::uint8_t{0xee});
    return own.second.read(own.in_to(2 * piece_bytes), 0, own.key->rkey) != IBV_WC_SUCCESS && own.to[0] != 0xee;
}

bool read_without_fence(program& own, bool right)
{
    std::vector<std::uint8_t> between(8);
    const ibv_mr* const mr = own.pair.registered(between.data(), between.size());
    ibv_sge place{program::address_of(between), 8, mr->lkey};
    own.pair.post_read(place, program::address_of(own.from), own.from_mr->rkey);
    own.pair.post_write(place, program::address_of(own.to), own.to_mr->rkey, right ? IBV_SEND_FENCE : 0);
    return own.pair.wait().status == IBV_WC_SUCCESS && own.pair.wait().status == IBV_WC_SUCCESS &&
           std::memcmp(own.to.data(), own.from.data(), 8) == 0;
}

bool last_byte_polled(program& own, bool right)
{
    own.pair.post_write(own.in_from(bytes), program::address_of(own.to), own.to_mr->rkey);
    if (right) {
        return own.pair.wait().status == IBV_WC_SUCCESS && own.to == own.from;
    }
    const volatile std::uint8_t& last = own.to.back();
    while (last == 0) {
    }
    const bool whole = own.to == own.from;
    return own.pair.wait().status == IBV_WC_SUCCESS && whole;
}

constexpr bool (*programs[])(program& own, bool right) = {bind_without_fence, key_used_early, reuse_while_invalidated,
                                                          read_without_fence, last_byte_polled};
static_assert(std::size(programs) == std::size(order_bug_names));

} // namespace

int order_bug()
{
    const char* const wanted = std::getenv("UCXL_ORDER_BUG");
    const auto name          = std::ranges::find(order_bug_names, std::string(wanted != nullptr ? wanted : ""));
    if (name == std::end(order_bug_names)) {
        return order_bug_no_setup;
    }
    try {
        program own;
        const bool right = std::getenv("UCXL_ORDER_RIGHT") != nullptr;
        return programs[name - std::begin(order_bug_names)](own, right) ? order_bug_right : order_bug_wrong;
    } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        return order_bug_no_setup;
    }
}

} // namespace ucxl::test
