// Requests for remote access as a hostile peer may send them, passed to the handler that libucp registers for its
// workers. (gtest_ucp_two_process tests requests that UCP itself sends.)
#include "abi/messages.h"
#include "abi/software_atomics.h"
#include "abi/ucx.h"
#include "abi/window_types.h"
#include "patterned_window.h"
#include "support/log_guard.h"
#include "support/random.h"
#include "support/ucp_pair.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/init.h"
#include "uct/layout/messages/hooks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

// The object of libucp, which has our handler in it after uct_layout_init().
const ucxl::abi::ucp_am_handler& handler_of(const std::string& id)
{
    return *ucxl::abi::find_object<ucxl::abi::ucp_am_handler>(("ucp_am_handler_UCP_AM_ID_" + id).c_str());
}

bool is_stock(const std::string& id, const char* function)
{
    return handler_of(id).cb == ucxl::abi::find_function<uct_am_callback_t>(function);
}

constexpr window_shape shape{12, 20};
constexpr std::uint64_t nobody = 0x7fffffff; // no endpoint has this number, so nothing is answered

struct message {
    ucxl::abi::atomic_request header;
    std::array<std::byte, 16> operands; // one or two words
};

template <typename Word>
void apply_plainly(std::byte* at, uct_atomic_op_t operation, const message& message)
{
    Word word, operand, replacement;
    std::memcpy(&word, at, sizeof(Word));
    std::memcpy(&operand, message.operands.data(), sizeof(Word));
    std::memcpy(&replacement, message.operands.data() + sizeof(Word), sizeof(Word));
    switch (operation) {
    case UCT_ATOMIC_OP_ADD:
        word += operand;
        break;
    case UCT_ATOMIC_OP_AND:
        word &= operand;
        break;
    case UCT_ATOMIC_OP_OR:
        word |= operand;
        break;
    case UCT_ATOMIC_OP_XOR:
        word ^= operand;
        break;
    case UCT_ATOMIC_OP_SWAP:
        word = operand;
        break;
    case UCT_ATOMIC_OP_CSWAP:
        word = word == operand ? replacement : word;
        break;
    case UCT_ATOMIC_OP_LAST:
        break;
    }
    std::memcpy(at, &word, sizeof(Word));
}

// Whether atomic operations may use this word of the packed bytes. The memory of a patterned window is aligned.
bool is_served(std::int64_t offset, std::uint64_t window_length, std::uint64_t length)
{
    const auto from = static_cast<std::uint64_t>(offset);
    return offset >= 0 && from + length <= window_length && from % shape.block + length <= shape.block &&
           (from / shape.block * shape.stride + from % shape.block) % length == 0;
}

class remote_atomics : public ucx_test
{
protected:
    void SetUp() override
    {
        uct_layout_init();
        _pair = std::make_unique<ucp_pair>(ucp_options{.config = {}, .self = true});
    }

    void deliver(message& request, std::size_t length)
    {
        ASSERT_EQ(UCS_OK, handler_of("ATOMIC_REQ").cb(_pair->worker(0), &request, length, 0));
    }

private:
    std::unique_ptr<ucp_pair> _pair;
};

TEST_F(remote_atomics, made_up_requests_change_whole_aligned_words_of_blocks_and_nothing_else)
{
    // Refusals are logged, but with a limit per second.
    logs().allow("atomic of a peer: ");
    test::random random(run_seed());
    constexpr std::uint64_t length = 600;
    patterned_window window(shape, length, 3);
    auto expected = window.packed();
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned turn = 0; turn < 20000; ++turn) {
        const std::int64_t offset = random.between(-20, length + 20);
        const std::uint8_t word   = random.one_in(2) ? 4 : 8;
        const auto operation      = static_cast<uct_atomic_op_t>(random.below(UCT_ATOMIC_OP_LAST));
        const bool is_cut         = random.one_in(8); // no operands: as if they were 0
        message request{
            {reinterpret_cast<std::uintptr_t>(window.address()) + static_cast<std::uint64_t>(offset),
             {nobody, 1},
             word,
             static_cast<std::uint8_t>(operation)},
            std::bit_cast<std::array<std::byte, 16>>(std::array{random.below(UINT64_MAX), random.below(UINT64_MAX)})};
        if (is_served(offset, length, word)) {
            message seen = request;
            if (is_cut) {
                seen.operands = {};
            }
            if (operation == UCT_ATOMIC_OP_CSWAP && random.one_in(2) && !is_cut) {
                std::memcpy(request.operands.data(), expected.data() + offset, word);
                std::memcpy(seen.operands.data(), expected.data() + offset, word);
            }
            word == 4 ? apply_plainly<std::uint32_t>(expected.data() + offset, operation, seen)
                      : apply_plainly<std::uint64_t>(expected.data() + offset, operation, seen);
        }
        deliver(request, is_cut ? sizeof(request.header) : sizeof(request));
        ASSERT_EQ(window.packed(), expected) << "seed " << run_seed() << ", turn " << turn << ", offset " << offset
                                             << ", word of " << int{word} << ", operation " << operation;
        ASSERT_TRUE(window.gaps_untouched());
    }
}

TEST_F(remote_atomics, of_other_memory_are_left_to_libucp)
{
    std::uint64_t memory = 5;
    message request{{reinterpret_cast<std::uintptr_t>(&memory), {nobody, 1}, 8, UCT_ATOMIC_OP_ADD}, {std::byte{3}}};
    deliver(request, sizeof(request));
    EXPECT_EQ(5u, memory) << "libucp does nothing for an endpoint it does not know";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&memory), request.header.address);
}

// Puts and gets: the same handlers. Their replies are not sent, because there is no such endpoint.
class made_up_access : public ucx_test
{
protected:
    void SetUp() override
    {
        uct_layout_init();
        _pair = std::make_unique<ucp_pair>(ucp_options{.config = {}, .self = true});
    }

    // Whether the request was refused.
    bool put(std::uint64_t address, std::span<const std::byte> bytes, std::uint32_t memory_type)
    {
        std::vector<std::byte> message(sizeof(ucxl::abi::put_request) + bytes.size());
        const ucxl::abi::put_request header{address, nobody, memory_type};
        std::memcpy(message.data(), &header, sizeof(header));
        std::ranges::copy(bytes, message.begin() + sizeof(header));
        return is_refused(failure_kind::peer_write, [&] {
            EXPECT_EQ(UCS_OK, handler_of("PUT").cb(_pair->worker(0), message.data(), message.size(), 0));
        });
    }

    bool get(std::uint64_t address, std::uint64_t length, std::uint32_t memory_type)
    {
        ucxl::abi::get_request message{address, length, {nobody, 1}, memory_type};
        return is_refused(failure_kind::peer_read, [&] {
            EXPECT_EQ(UCS_OK, handler_of("GET_REQ").cb(_pair->worker(0), &message, sizeof(message), 0));
        });
    }

    ucp_worker_h worker() const { return _pair->worker(0); }

private:
    template <typename Fn>
    static bool is_refused(failure_kind kind, Fn&& deliver)
    {
        const auto before = count_failures().all[std::to_underlying(kind)];
        deliver();
        return count_failures().all[std::to_underlying(kind)] != before;
    }

    std::unique_ptr<ucp_pair> _pair;
};

TEST_F(made_up_access, reaches_windows_whatever_memory_type_it_names_and_nothing_around_them)
{
    logs().allow("are not inside a live window");
    test::random random(run_seed());
    constexpr std::uint64_t length = 600;
    patterned_window keyed(shape, length, 3);
    patterned_window staged(shape, length, 3, window_carrier::copies);
    std::array expected_of{keyed.packed(), staged.packed()};
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned turn = 0; turn < 20000; ++turn) {
        patterned_window& window  = turn % 2 == 0 ? keyed : staged;
        auto& expected            = expected_of[turn % 2];
        const auto base           = reinterpret_cast<std::uintptr_t>(window.address());
        const std::int64_t offset = random.between(-700, length + 700);
        const std::uint64_t count = 1 + random.below(700);
        const auto type           = static_cast<std::uint32_t>(random.below(UCS_MEMORY_TYPE_LAST));
        const bool is_inside      = offset >= 0 && static_cast<std::uint64_t>(offset) + count <= length;
        const std::uint64_t from  = base + static_cast<std::uint64_t>(offset);
        std::vector<std::byte> bytes(count, static_cast<std::byte>(turn));
        ASSERT_EQ(!is_inside, put(from, bytes, type)) << "seed " << run_seed() << ", turn " << turn;
        if (is_inside) {
            std::ranges::copy(bytes, expected.begin() + offset);
        }
        ASSERT_EQ(window.packed(), expected) << "seed " << run_seed() << ", turn " << turn;
        ASSERT_EQ(!is_inside, get(from, count, type)) << "seed " << run_seed() << ", turn " << turn;
    }
    ASSERT_TRUE(keyed.gaps_untouched());
    ASSERT_TRUE(staged.gaps_untouched());
}

TEST_F(made_up_access, of_memory_that_is_no_window_is_refused_if_it_is_said_to_be_one)
{
    logs().allow("are not inside a live window");
    const patterned_window window(shape, 600, 3);
    std::array<std::byte, 64> memory{};
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::vector<std::byte> bytes(64, std::byte{5});
    for (const auto type : {UCS_MEMORY_TYPE_RDMA, *ucxl::abi::types_of_windows().staged}) {
        EXPECT_TRUE(put(address, bytes, type));
        EXPECT_TRUE(get(address, 64, type));
    }
    EXPECT_TRUE(get(8, UINT64_MAX - 4, UCS_MEMORY_TYPE_HOST)) << "spans the arena";
    EXPECT_EQ(memory, (std::array<std::byte, 64>{}));
    const auto start = window_registry::instance().arena_base();
    EXPECT_TRUE(put(reinterpret_cast<std::uintptr_t>(start) - 1, bytes, UCS_MEMORY_TYPE_HOST));
    EXPECT_TRUE(get(reinterpret_cast<std::uintptr_t>(start) - 4096, 8192, UCS_MEMORY_TYPE_HOST));
}

TEST_F(made_up_access, of_host_memory_is_left_to_libucp)
{
    const patterned_window window(shape, 600, 3);
    std::array<std::byte, 64> memory{};
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    EXPECT_FALSE(put(address, std::vector<std::byte>(64, std::byte{5}), UCS_MEMORY_TYPE_HOST));
    EXPECT_FALSE(get(address, 64, UCS_MEMORY_TYPE_HOST));
    EXPECT_EQ(memory, (std::array<std::byte, 64>{})) << "libucp does nothing for an endpoint it does not know";
}

TEST_F(made_up_access, replies_and_requests_that_are_cut_off_do_nothing)
{
    logs().allow("refused by a peer");
    std::array<std::byte, 64> message{};
    test::random random(run_seed());
    for (unsigned turn = 0; turn < 20000; ++turn) {
        for (std::byte& each : message) {
            each = static_cast<std::byte>(random.below(256));
        }
        // Numbers of requests that do not exist: real numbers are pointers.
        message[0] |= std::byte{1};
        const std::size_t length = random.below(random.one_in(2) ? 17 : message.size());
        EXPECT_EQ(UCS_OK, handler_of("GET_REP").cb(worker(), message.data(), length, 0));
    }
    const ucxl::abi::get_reply notice{std::uint64_t{0x5502} << 49 | 1, 0};
    std::memcpy(message.data(), &notice, sizeof(notice));
    for (std::size_t length = 0; length <= message.size(); ++length) {
        EXPECT_EQ(UCS_OK, handler_of("GET_REP").cb(worker(), message.data(), length, 0));
    }
}

TEST_F(made_up_access, notices_of_the_first_form_are_dropped)
{
    struct {
        ucxl::abi::get_reply header{0x6c61796f75744e31, 0};
        std::uint64_t words[3]{0x3165636974656e, 0x1000, 8};
    } notice;
    const auto told = std::to_underlying(failure_kind::remote_write);
    const auto seen = count_failures().all[told];
    EXPECT_EQ(UCS_OK, handler_of("GET_REP").cb(worker(), &notice, sizeof(notice), 0));
    EXPECT_EQ(seen, count_failures().all[told]);
}

// A target that refuses more puts than its transport takes, before its initiator reads any reply.
class burst_of_refusals
{
public:
    // Ends the process: with 0 if the initiator is told of each put once.
    static void run_and_exit()
    {
        uct_layout_init();
        auto* const handler    = ucxl::abi::find_object<ucxl::abi::ucp_am_handler>("ucp_am_handler_UCP_AM_ID_PUT");
        refuse                 = *handler;
        handler->cb            = remember<&ucxl::abi::ucp_am_handler::cb>;
        handler->proxy_cb      = remember<&ucxl::abi::ucp_am_handler::proxy_cb>;
        auto* const completion = ucxl::abi::find_object<ucxl::abi::ucp_am_handler>("ucp_am_handler_UCP_AM_ID_CMPL");
        complete               = completion->cb;
        completion->cb         = drop_of_burst;
        ucp_pair pair({.config = {{"TLS", "posix,lay_copy"}}});
        const patterned_window window(shape, 600, 3);
        std::uint64_t bytes = 1;
        if (pair.put(&bytes, window.address(), sizeof(bytes), UCS_MEMORY_TYPE_RDMA) != UCS_OK || initiator == 0) {
            std::_Exit(3);
        }
        is_burst    = true;
        using range = std::pair<std::uint64_t, std::uint64_t>; // address, length
        std::vector<range> told, expected;
        watch_failures(
            [](const failure& seen, void* arg) {
                if (seen.kind == failure_kind::remote_write) {
                    static_cast<std::vector<range>*>(arg)->push_back({seen.address, seen.length});
                }
            },
            &told);
        std::vector<std::byte> message(2000);
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const auto address = reinterpret_cast<std::uintptr_t>(window.address()) + 10000 + 3 * i;
            const ucxl::abi::put_request header{address, initiator, UCS_MEMORY_TYPE_HOST};
            std::memcpy(message.data(), &header, sizeof(header));
            refuse.cb(pair.worker(1), message.data(), sizeof(header) + 1 + i, 0);
            expected.push_back({address, 1 + i});
        }
        for (unsigned turn = 0; told.size() < expected.size() && turn < 10'000'000; ++turn) {
            ucp_worker_progress(pair.worker(0));
            ucp_worker_progress(pair.worker(1));
        }
        std::ranges::sort(told);
        std::_Exit(told == expected ? 0 : 1);
    }

private:
    template <uct_am_callback_t ucxl::abi::ucp_am_handler::* Form>
    static ucs_status_t remember(void* arg, void* data, std::size_t length, unsigned flags)
    {
        ucxl::abi::put_request header{};
        std::memcpy(&header, data, std::min(length, sizeof(header)));
        initiator = header.ep_id;
        return (refuse.*Form)(arg, data, length, flags);
    }

    // The initiator of made-up puts waits for no completion.
    static ucs_status_t drop_of_burst(void* arg, void* data, std::size_t length, unsigned flags)
    {
        return is_burst ? UCS_OK : complete(arg, data, length, flags);
    }

    static inline ucxl::abi::ucp_am_handler refuse{};
    static inline uct_am_callback_t complete = nullptr;
    static inline bool is_burst              = false;
    static inline std::uint64_t initiator    = 0;
};

// In a process of its own, because of its handlers.
TEST(refused_puts_death_test, are_each_told_by_their_own_range_however_late_that_is_sent)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(burst_of_refusals::run_and_exit(), testing::ExitedWithCode(0), "");
}

TEST(hooks, are_all_listed_and_in_place)
{
    uct_layout_init();
    ASSERT_EQ(5u, all_hooks().size());
    for (const hook& each : all_hooks()) {
        EXPECT_EQ(hook_state::active, each.state) << each.name;
    }
    EXPECT_FALSE(is_stock("PUT", "ucp_put_handler"));
    EXPECT_FALSE(is_stock("GET_REQ", "ucp_get_req_handler"));
    EXPECT_FALSE(is_stock("GET_REP", "ucp_get_rep_handler"));
    EXPECT_FALSE(is_stock("ATOMIC_REQ", "ucp_atomic_req_handler"));
}

// Runs in a program of its own, because hooks are installed only once.
TEST(hooks_death_test, that_the_option_leaves_out_change_nothing)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            setenv("UCX_LAYOUT_HOOKS", "get", 1);
            uct_layout_init();
            const bool as_asked = is_stock("PUT", "ucp_put_handler") && !is_stock("GET_REQ", "ucp_get_req_handler") &&
                                  is_stock("GET_REP", "ucp_get_rep_handler") &&
                                  is_stock("ATOMIC_REQ", "ucp_atomic_req_handler") &&
                                  all_hooks()[0].state == hook_state::off && all_hooks()[1].state == hook_state::active;
            _exit(as_asked ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
    EXPECT_EXIT(
        {
            setenv("UCX_LAYOUT_HOOKS", "", 1);
            uct_layout_init();
            _exit(all_hooks()[1].state == hook_state::off && all_hooks()[3].state == hook_state::off ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
    EXPECT_EXIT(
        {
            setenv("UCX_LAYOUT_HOOKS", "get,answer", 1);
            uct_layout_init();
            const bool as_default =
                std::ranges::all_of(all_hooks(), [](const hook& each) { return each.state == hook_state::active; });
            _exit(as_default ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

void probe_of_another()
{
}

// What a build of UCX might have under the name that we know.
TEST(hooks_death_test, leave_protocols_alone_that_are_not_the_known_ones)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto is_left_alone              = [](void (*change)(ucxl::abi::ucp_protocol& protocol)) {
        auto* const post  = static_cast<ucxl::abi::ucp_protocol*>(dlsym(RTLD_DEFAULT, "ucp_get_amo_post_proto"));
        auto* const fetch = static_cast<ucxl::abi::ucp_protocol*>(dlsym(RTLD_DEFAULT, "ucp_get_amo_fetch_proto"));
        change(*fetch);
        const auto post_probe  = post->probe;
        const auto fetch_probe = fetch->probe;
        uct_layout_init();
        return all_hooks()[4].state == hook_state::unknown && post->probe == post_probe && fetch->probe == fetch_probe;
    };
    EXPECT_EXIT(_exit(is_left_alone([](auto& protocol) { protocol.name = "amo/fetch/other"; }) ? 0 : 1),
                testing::ExitedWithCode(0), "");
    EXPECT_EXIT(_exit(is_left_alone([](auto& protocol) { protocol.probe = probe_of_another; }) ? 0 : 1),
                testing::ExitedWithCode(0), "");
}

ucs_status_t libucp_function(void*, void*, std::size_t, unsigned)
{
    return UCS_OK;
}

ucs_status_t another_function(void*, void*, std::size_t, unsigned)
{
    return UCS_OK;
}

TEST(knows_handler, takes_only_an_unchanged_handler_of_libucp)
{
    using ucxl::abi::knows_handler;
    constexpr std::uint64_t features = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    const ucxl::abi::ucp_am_handler known{
        .features = features, .cb = libucp_function, .tracer = nullptr, .flags = 0, .proxy_cb = another_function};
    EXPECT_TRUE(knows_handler(&known, features, libucp_function));
    EXPECT_FALSE(knows_handler(&known, features, another_function));
    EXPECT_FALSE(knows_handler(nullptr, features, libucp_function));
    auto other     = known;
    other.features = UCP_FEATURE_AMO32;
    EXPECT_FALSE(knows_handler(&other, features, libucp_function));
    other.features = features | UCP_FEATURE_RMA; // later releases of UCX use some messages for more
    EXPECT_TRUE(knows_handler(&other, features, libucp_function));
    other    = known;
    other.cb = another_function;
    EXPECT_FALSE(knows_handler(&other, features, libucp_function));
    other.cb = nullptr;
    EXPECT_FALSE(knows_handler(&other, features, nullptr));
    other          = known;
    other.proxy_cb = nullptr;
    EXPECT_FALSE(knows_handler(&other, features, libucp_function));
}

} // namespace
