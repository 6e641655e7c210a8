// Windows over memory that the program got by malloc, with libucx_layout_heap preloaded. They are direct: their owner
// does nothing while the other peer puts and gets, so nobody but that peer can have copied.
#include "passive_target.h"
#include "remote_key.h"
#include "scenario.h"
#include "transports.h"

#include "support/random.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <sys/wait.h>
#include <ucp_layout.hpp>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

constexpr std::size_t pitch  = 1024; // of a matrix of bytes
constexpr std::size_t rows   = 128;
constexpr std::size_t column = 16;
constexpr std::size_t put_at = 64; // columns of role 1's matrix
constexpr std::size_t got_at = 512;

struct freed {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using block = std::unique_ptr<std::byte, freed>;

// Blocks of many lengths, so that the heap grows while there are windows, and freed ones are used again.
block allocate(test::random& random)
{
    const std::size_t all_rows = rows + random.below(random.one_in(8) ? 100000 : 4000);
    return block(static_cast<std::byte*>(std::malloc(all_rows * pitch)));
}

struct column_window {
    column_window(const session& session, std::byte* matrix, std::size_t place)
        : layout(ucx_layout::layout::create_strided(column, {{rows, pitch}})),
          window(ucx_layout::window::map(session.context(), *layout, matrix + place))
    {
        check(window.has_value(), "ucp_layout_map failed");
    }

    std::expected<ucx_layout::layout, ucs_status_t> layout;
    std::expected<ucx_layout::window, ucs_status_t> window;
};

// As programs do that share their arrays themselves. These are shared already, and stay so.
void share_and_release(std::byte* memory, std::size_t length)
{
    ucp_layout_memory_params_t params{};
    params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                        UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS;
    params.length              = length;
    params.address             = memory;
    params.flags               = UCP_LAYOUT_MEMORY_FLAG_MOVE;
    ucp_layout_memory_h shared = nullptr;
    check(ucp_layout_memory_create(&params, &shared) == UCS_OK, "memory of the heap cannot be shared");
    ucp_layout_memory_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS | UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH;
    check(ucp_layout_memory_query(shared, &attr) == UCS_OK && attr.address == memory && attr.length == length,
          "it is {} bytes at {}", attr.length, attr.address);
    check(ucp_layout_memory_destroy(shared) == UCS_OK, "memory of the heap cannot be released");
}

// After a round: the column that was put, and the bytes that the owner wrote.
void verify(const block& matrix)
{
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < pitch; ++i) {
            const bool is_put   = i >= put_at && i < put_at + column;
            const auto expected = static_cast<std::byte>(is_put ? 255 - row : row);
            check(matrix.get()[row * pitch + i] == expected, "row {}, byte {}", row, i);
        }
    }
}

// Role 0 puts a pattern into one column of role 1's matrix, and gets another column.
void round_of_owner(session& session, test::random& random, std::vector<block>& kept)
{
    block matrix = allocate(random);
    if (random.one_in(2)) {
        share_and_release(matrix.get(), rows * pitch);
    }
    for (std::size_t row = 0; row < rows; ++row) {
        std::memset(matrix.get() + row * pitch, static_cast<int>(row), pitch);
    }
    const column_window into(session, matrix.get(), put_at), from(session, matrix.get(), got_at);
    bytes keys;
    append_key(keys, session.context(), into.window->memh(), into.window->address());
    append_key(keys, session.context(), from.window->memh(), from.window->address());
    session.side_channel().send(keys);
    wait_passively(session);
    verify(matrix);
    kept.push_back(std::move(matrix));
    if (random.one_in(3)) {
        kept.erase(kept.begin());
    }
    session.side_channel().send({});
}

void get_column(session& session, const remote_key& from)
{
    bytes received(rows * column);
    const ucp_request_param_t param{};
    check_ok(session.wait(
                 ucp_get_nbx(session.endpoint(), received.data(), received.size(), from.address(), from.get(), &param)),
             "ucp_get_nbx");
    session.flush();
    for (std::size_t i = 0; i < received.size(); ++i) {
        check(received[i] == static_cast<std::byte>(i / column), "byte {} that was got", i);
    }
}

void round_of_peer(session& session)
{
    const bytes keys                = wait_passively(session);
    std::span<const std::byte> rest = keys;
    const remote_key into(session.endpoint(), rest), from(session.endpoint(), rest);
    bytes sent(rows * column);
    for (std::size_t row = 0; row < rows; ++row) {
        std::memset(sent.data() + row * column, static_cast<int>(255 - row), column);
    }
    const ucp_request_param_t param{};
    check_ok(
        session.wait(ucp_put_nbx(session.endpoint(), sent.data(), sent.size(), into.address(), into.get(), &param)),
        "ucp_put_nbx");
    get_column(session, from);
    session.side_channel().send({});
    wait_passively(session);
}

void passive_owner(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    std::vector<block> kept;
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        arguments.plays(1) ? round_of_owner(session, random, kept) : round_of_peer(session);
    }
    session.close();
}

// One matrix of an earlier round is got again.
void show_kept(session& session, const std::vector<block>& kept)
{
    if (kept.empty()) {
        session.side_channel().send({});
        return;
    }
    const column_window from(session, kept.front().get(), got_at);
    bytes key;
    append_key(key, session.context(), from.window->memh(), from.window->address());
    session.side_channel().send(key);
    wait_passively(session);
}

void get_kept(session& session)
{
    const bytes key = wait_passively(session);
    if (!key.empty()) {
        std::span<const std::byte> rest = key;
        get_column(session, remote_key(session.endpoint(), rest));
        session.side_channel().send({});
    }
}

// Role 1 forks. What the child writes, frees and allocates reaches neither the parent nor the peer.
void forking_owner(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    std::vector<block> kept;
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        if (arguments.plays(0)) {
            round_of_peer(session);
            get_kept(session);
            continue;
        }
        const pid_t child = fork();
        if (child == 0) {
            for (const block& each : kept) {
                std::memset(each.get(), 0xee, rows * pitch);
            }
            kept.clear();
            for (int i = 0; i < 20; ++i) {
                const block own = allocate(random);
                std::memset(own.get(), 0xee, rows * pitch);
            }
            _exit(0);
        }
        round_of_owner(session, random, kept);
        int status = -1;
        check(waitpid(child, &status, 0) == child && status == 0, "the child ended with status {}", status);
        std::ranges::for_each(kept, verify);
        show_kept(session, kept);
    }
    session.close();
}

const scenario of_passive_owner("heap.passive_owner", passive_owner);
const scenario of_forking_owner("heap.forking_owner", forking_owner);

pair_config with_heap(const char* scenario, unsigned rounds)
{
    return {
        .scenario = scenario, .variables = {{"LD_PRELOAD", HEAP_LIBRARY}, {"UCX_VFS_ENABLE", "n"}}, .rounds = rounds};
}

} // namespace

TEST(heap_windows, over_memory_of_malloc_are_reached_without_its_owner)
{
    EXPECT_PAIR(with_heap("heap.passive_owner", 60));
}

TEST(heap_windows, of_a_process_that_forks_are_not_those_of_the_child)
{
    EXPECT_PAIR(with_heap("heap.forking_owner", 20));
}

} // namespace ucxl::two_process
