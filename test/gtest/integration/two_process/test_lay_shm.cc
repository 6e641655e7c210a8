// lay_shm between two processes: remote access to windows with memory of the library while their owner does nothing,
// and the cases in which a peer's memory cannot be mapped.
#include "passive_target.h"
#include "plain_peer.h"
#include "remote_words.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include "support/printed_text.h"

#include <cstdlib>

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

constexpr std::uint64_t gap = 0x6761706761706761;

void passive_atomics(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    auto words = initial_words();
    if (arguments.plays(0)) {
        const bytes expected            = wait_passively(session);
        std::span<const std::byte> rest = expected;
        const remote_key key(session.endpoint(), rest);
        apply(session, key, words);
        session.side_channel().send(std::as_bytes(std::span(words)));
        session.close();
        return;
    }
    const auto layout = ucx_layout::layout::create_strided(8, {{num_words, 24}});
    auto window       = ucx_layout::window::allocate(context.get(), *layout);
    check(window.has_value(), "ucp_layout_map with ALLOCATE failed");
    void* base = nullptr;
    check_ok(window->bases({&base, 1}), "ucp_layout_window_bases");
    auto* const memory = static_cast<std::uint64_t*>(base);
    std::fill_n(memory, num_words * 3 - 2, gap);
    for (std::size_t i = 0; i < num_words; ++i) {
        memory[3 * i] = words[i];
    }
    bytes key;
    append_key(key, session.context(), window->memh(), window->address());
    session.side_channel().send(key);
    const bytes wanted = wait_passively(session);
    check(wanted.size() == sizeof(words), "no words to compare with");
    std::memcpy(words.data(), wanted.data(), sizeof(words));
    for (std::size_t i = 0; i < num_words; ++i) {
        check(memory[3 * i] == words[i], "word {} is {:x}, not {:x}", i, memory[3 * i], words[i]);
        check(i + 1 == num_words || (memory[3 * i + 1] == gap && memory[3 * i + 2] == gap), "a gap was written");
    }
    session.close();
}

// As stock programs do: ucp_mem_map allocates memory of type RDMA, which the CPU can use, too.
void plain_allocation(const peer_arguments& arguments)
{
    constexpr std::size_t length = 100000;
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.length      = length;
    params.flags       = UCP_MEM_MAP_ALLOCATE;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memh     = nullptr;
    check_ok(ucp_mem_map(context.get(), &params, &memh), "ucp_mem_map");
    ucp_mem_attr_t attr{};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check_ok(ucp_mem_query(memh, &attr), "ucp_mem_query");
    auto* const memory = static_cast<std::byte*>(attr.address);
    const auto pattern = test_pattern(length, static_cast<unsigned>(arguments.role));
    std::memcpy(memory, pattern.data(), length);
    bytes key;
    append_key(key, session.context(), memh, memory);
    const bytes payload             = session.exchange(key);
    std::span<const std::byte> rest = payload;
    {
        const remote_key other(session.endpoint(), rest);
        const ucp_request_param_t param{};
        if (arguments.plays(0)) {
            // Both sides are of type RDMA and allocated in the same way.
            check_ok(
                session.wait(ucp_put_nbx(session.endpoint(), memory, length, other.address(), other.get(), &param)),
                "put");
            session.flush();
            session.side_channel().send({});
        } else {
            wait_passively(session);
        }
    }
    const auto expected = test_pattern(length, 0);
    check(std::memcmp(memory, expected.data(), length) == 0, "the memory does not hold what was put");
    session.barrier();
    check_ok(ucp_mem_unmap(context.get(), memh), "ucp_mem_unmap");
    session.close();
}

void run_remote_access(session& session)
{
    for (unsigned round = 0; round < session.arguments().rounds; ++round) {
        test::random random(test::derive_seed(session.arguments().seed, round));
        run_batch(session, random_batch(random, {.operations = {operation::tag, operation::put, operation::get},
                                                 .lengths    = {0, 1, 64, 4096, 65536, 1 << 20}}));
    }
}

// Peers that may not, or cannot, open each other's files. `users` are the user numbers that the roles assume; this also
// closes their part of /proc to all but root.
void separated(const peer_arguments& arguments, const std::array<uid_t, 2>& users)
{
    const uid_t user = users[static_cast<std::size_t>(arguments.role)];
    check(user == 0 || setresuid(user, user, user) == 0, "setresuid failed");
    const context_handle context(arguments);
    session session(arguments, context);
    run_remote_access(session);
    session.close();
}

// The owner is killed while its memory is mapped here: mapped memory stays accessible, everything else is refused.
void dead_owner(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    if (arguments.plays(1)) {
        const side first(session, {.kind = side_kind::allocated, .seed = 1}, 65536);
        const side second(session, {.kind = side_kind::allocated, .seed = 2}, 65536);
        bytes keys(sizeof(pid_t));
        const pid_t self = getpid();
        std::memcpy(keys.data(), &self, sizeof(self));
        append_key(keys, session.context(), first.memh(), first.buffer());
        append_key(keys, session.context(), second.memh(), second.buffer());
        session.side_channel().send(keys);
        wait_passively(session);
        raise(SIGKILL);
    }
    const bytes keys = wait_passively(session);
    pid_t owner      = 0;
    std::memcpy(&owner, keys.data(), sizeof(owner));
    std::span<const std::byte> rest = std::span(keys).subspan(sizeof(owner));
    {
        const remote_key mapped(session.endpoint(), rest);
        session.side_channel().send({});
        wait_for_death(owner);
        const auto sent = test_pattern(65536, 5);
        bytes got(sent.size());
        const ucp_request_param_t param{};
        const auto address = mapped.address();
        check_ok(session.wait(ucp_put_nbx(session.endpoint(), sent.data(), sent.size(), address, mapped.get(), &param)),
                 "put");
        check_ok(session.wait(ucp_get_nbx(session.endpoint(), got.data(), got.size(), address, mapped.get(), &param)),
                 "get");
        check(got == sent, "the memory of the dead peer does not hold what was put");
        const remote_key unmapped(session.endpoint(), rest);
        check(session.wait(ucp_put_nbx(session.endpoint(), sent.data(), sent.size(), unmapped.address(), unmapped.get(),
                                       &param)) != UCS_OK,
              "a put into memory of a dead peer that was not mapped was done");
        check(session.wait(ucp_get_nbx(session.endpoint(), got.data(), got.size(), unmapped.address(), unmapped.get(),
                                       &param)) != UCS_OK,
              "a get of memory of a dead peer that was not mapped was done");
    }
    session.abandon();
}

// Windows of both peers of one layout, long enough that an owner that makes progress shares puts and gets.
class long_window
{
public:
    explicit long_window(ucp_context_h context)
        : _window(ucx_layout::window::allocate(
              context, *ucx_layout::layout::create_strided(block, {{count, static_cast<std::int64_t>(stride)}})))
    {
        check(_window.has_value(), "ucp_layout_map with ALLOCATE failed");
        void* base = nullptr;
        check_ok(_window->bases({&base, 1}), "ucp_layout_window_bases");
        _memory = static_cast<std::byte*>(base);
        std::memset(_memory, gap_byte, memory_length);
    }

    static constexpr std::size_t length = 2100000; // packed bytes

    void* address() const { return _window->address(); }
    ucp_mem_h memh() const { return _window->memh(); }
    void fill(const bytes& packed)
    {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(_memory + i * stride, packed.data() + i * block, block);
        }
    }
    void check_holds(const bytes& packed) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            check(std::memcmp(_memory + i * stride, packed.data() + i * block, block) == 0, "block {} is another", i);
        }
        for (std::size_t i = 0; i < memory_length; ++i) {
            check(i % stride < block || _memory[i] == std::byte{gap_byte}, "byte {} of a gap was written", i);
        }
    }

private:
    static constexpr std::size_t block = 1000, stride = 1300, count = length / block;
    static constexpr std::size_t memory_length = (count - 1) * stride + block;
    static constexpr unsigned char gap_byte    = 0x67;

    decltype(ucx_layout::window::allocate(nullptr, std::declval<const ucx_layout::layout&>())) _window;
    std::byte* _memory = nullptr;
};

// Puts a pattern, and gets it back after the own window had another one. Returns false if UCP reports a failure.
bool put_and_get(session& session, const remote_key& key, long_window& own, std::uint64_t seed)
{
    constexpr std::size_t length = long_window::length;
    const ucp_request_param_t param{};
    const auto is_done = [&](ucs_status_ptr_t request) { return session.wait(request) == UCS_OK; };
    const auto pattern = test_pattern(length, static_cast<unsigned>(seed));
    own.fill(pattern);
    if (!is_done(ucp_put_nbx(session.endpoint(), own.address(), length, key.address(), key.get(), &param))) {
        return false;
    }
    own.fill(bytes(length));
    if (!is_done(ucp_get_nbx(session.endpoint(), own.address(), length, key.address(), key.get(), &param))) {
        return false;
    }
    own.check_holds(pattern);
    return true;
}

void busy_target(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        long_window own(context.get());
        bytes key;
        append_key(key, session.context(), own.memh(), own.address());
        const bytes payload             = session.exchange(key);
        std::span<const std::byte> rest = payload;
        const remote_key other(session.endpoint(), rest);
        if (arguments.plays(0)) {
            for (unsigned round = 0; round < arguments.rounds; ++round) {
                check(put_and_get(session, other, own, round), "a put or get failed");
            }
            session.flush();
        }
        session.barrier(); // role 1 makes progress meanwhile
        own.check_holds(test_pattern(long_window::length, arguments.rounds - 1));
    }
    session.barrier();
    session.close();
}

// The number in the line of that name of what ucp_layout_print_memory() prints of this process.
std::uint64_t memory_figure(const std::string& name)
{
    const std::string all = test::printed_text(
        [](FILE* stream) { check_ok(ucp_layout_print_memory(0, stream), "ucp_layout_print_memory"); });
    const auto found = all.find(name);
    check(found != all.npos, "there is no figure '{}' in {}", name, all);
    return std::stoull(all.substr(found + name.size()));
}

// The target starts nothing and asked for no feature but RMA: it only makes progress.
void target_that_only_makes_progress(const peer_arguments& arguments)
{
    const context_handle context(UCP_FEATURE_RMA);
    session session(arguments, context);
    {
        long_window own(context.get());
        bytes key;
        append_key(key, session.context(), own.memh(), own.address());
        const bytes payload             = session.exchange(key);
        std::span<const std::byte> rest = payload;
        if (arguments.plays(0)) {
            const remote_key other(session.endpoint(), rest);
            for (unsigned round = 0; round < 2000 && memory_figure("passes shared") < arguments.rounds; ++round) {
                check(put_and_get(session, other, own, round), "a put or get failed");
            }
            session.flush();
            check(memory_figure("passes shared") >= arguments.rounds, "{} passes were shared, {} alone",
                  memory_figure("passes shared"), memory_figure("passes alone"));
        }
        session.barrier();
        check(arguments.plays(0) || memory_figure("pieces moved for peers") >= arguments.rounds,
              "the target moved {} pieces", memory_figure("pieces moved for peers"));
    }
    session.barrier();
    session.close();
}

// Role 0 has had a key of a window of many blocks, which lie close together. `rounds`: how many windows are kept then.
void many_blocks(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        std::vector<ucp_dt_iov_t> blocks;
        bytes described(1 << 21);
        for (std::size_t i = 0, at = 0; i < (1 << 16); ++i) {
            const std::size_t length = 8 + i * i % 7;
            blocks.push_back({described.data() + at, length});
            at += length + 1 + i % 5;
        }
        const auto layout = ucx_layout::layout::from_iov(blocks, described.data());
        check(layout.has_value(), "ucp_layout_create_from_iov");
        const auto own = ucx_layout::window::allocate(context.get(), *layout);
        check(own.has_value(), "ucp_layout_map with ALLOCATE failed");
        bytes key;
        append_key(key, session.context(), own->memh(), own->address());
        const bytes payload             = session.exchange(key);
        std::span<const std::byte> rest = payload;
        if (arguments.plays(0)) {
            static_cast<void>(remote_key(session.endpoint(), rest));
            check(memory_figure("  without a key") == arguments.rounds, "{} windows are kept, not {}",
                  memory_figure("  without a key"), arguments.rounds);
        }
        session.barrier();
    }
    session.close();
}

// When the owner ends after the initiator has said that it is at work.
itimerval soon{};

// Ends at any moment, most likely in the middle of a shared operation.
void owner_killed_while_busy(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    long_window own(context.get());
    if (arguments.plays(1)) {
        const pid_t self = getpid();
        bytes keys(sizeof(self));
        std::memcpy(keys.data(), &self, sizeof(self));
        append_key(keys, session.context(), own.memh(), own.address());
        soon = {.it_interval = {}, .it_value = {0, 50000 + static_cast<long>(arguments.seed % 50000)}};
        signal(SIGUSR1, [](int) { setitimer(ITIMER_REAL, &soon, nullptr); });
        session.side_channel().send(keys);
        for (;;) {
            ucp_worker_progress(session.worker());
        }
    }
    const bytes keys = wait_passively(session);
    pid_t owner      = 0;
    std::memcpy(&owner, keys.data(), sizeof(owner));
    std::span<const std::byte> rest = std::span(keys).subspan(sizeof(owner));
    {
        const remote_key key(session.endpoint(), rest);
        const auto is_alive = [&] { return kill(owner, 0) == 0; };
        std::uint64_t turn  = 0;
        while (put_and_get(session, key, own, ++turn) && is_alive()) {
            if (turn == 1) {
                kill(owner, SIGUSR1);
            }
        }
        check(turn > 1, "the owner ended before it could share anything");
        for (int i = 0; i < 5000 && is_alive(); ++i) {
            usleep(1000);
        }
        check(!is_alive(), "a put or get failed before the owner ended");
    }
    session.abandon();
}

const scenario passive("lay_shm.passive_target",
                       [](const peer_arguments& arguments) { passive_target(arguments, side_kind::allocated); });
const scenario passive_regions("lay_shm.passive_target_in_shared_memory",
                               [](const peer_arguments& arguments) { passive_target(arguments, side_kind::shared); });
const scenario passive_words("lay_shm.passive_atomics", passive_atomics);
const scenario stock_allocation("lay_shm.plain_allocation", plain_allocation);
const scenario death("lay_shm.dead_owner", dead_owner);
const scenario to_busy_target("lay_shm.busy_target", busy_target);
const scenario to_progressing_target("lay_shm.target_that_only_makes_progress", target_that_only_makes_progress);
const scenario of_many_blocks("lay_shm.many_blocks", many_blocks);
const scenario busy_death("lay_shm.owner_killed_while_busy", owner_killed_while_busy);
const scenario of_two_users("lay_shm.two_users",
                            [](const peer_arguments& arguments) { separated(arguments, {0, 65534}); });
const scenario in_closed_processes("lay_shm.closed_processes",
                                   [](const peer_arguments& arguments) { separated(arguments, {65534, 65534}); });

const std::vector<transport_set> with_lay_shm = {
    {"default", nullptr, false},
    {"posix", "posix,lay_copy,lay_shm", false},
    {"tcp", "tcp,lay_copy,lay_shm", false},
};

class shared_memory : public testing::TestWithParam<setting>
{
};

TEST_P(shared_memory, puts_and_gets_need_nothing_of_the_target)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.passive_target", 60));
}

TEST_P(shared_memory, of_any_window_is_reached_without_its_owner)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.passive_target_in_shared_memory", 60));
}

TEST_P(shared_memory, atomics_need_nothing_of_the_target)
{
    if (std::getenv("UCXL_TEST_DEVICE") != nullptr && std::get<transport_set>(GetParam()).tls == nullptr) {
        GTEST_SKIP() << "beside a device, atomics go by messages";
    }
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.passive_atomics", 1));
}

TEST_P(shared_memory, plain_allocation_of_type_rdma_is_shared_too)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.plain_allocation", 1));
}

TEST_P(shared_memory, of_a_killed_owner_can_be_touched_as_long_as_it_is_mapped)
{
    auto config                   = config_for(GetParam(), "lay_shm.dead_owner", 1);
    config.expected[0].any_output = true; // UCX logs that messages do not reach the dead peer
    config.expected[1].signal     = SIGKILL;
    EXPECT_PAIR(config);
}

TEST_P(shared_memory, that_is_kept_counts_with_what_describes_it)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.many_blocks", 1));
    auto config = config_for(GetParam(), "lay_shm.many_blocks", 0);
    config.variables.emplace_back("UCX_LAY_SHM_IDLE_SIZE", "4m"); // the memory alone is less
    EXPECT_PAIR(config);
}

TEST_P(shared_memory, targets_that_make_progress_share_puts_and_gets)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.busy_target", 40));
}

TEST_P(shared_memory, targets_that_only_make_progress_take_part)
{
    EXPECT_PAIR(config_for(GetParam(), "lay_shm.target_that_only_makes_progress", 10));
}

TEST_P(shared_memory, an_owner_that_is_killed_in_a_shared_operation_loses_no_byte)
{
    for (std::uint64_t salt = 0; salt < 5; ++salt) {
        auto config               = config_for(GetParam(), "lay_shm.owner_killed_while_busy", 1);
        config.salt               = salt;
        config.expected[1].signal = SIGALRM;
        EXPECT_PAIR(config);
    }
}

INSTANTIATE_TEST_SUITE_P(matrix, shared_memory, testing::Combine(testing::ValuesIn(with_lay_shm), testing::Values("y")),
                         setting_name);

// Over TCP, because UCX's shared memory transports do not connect different users.
class separated_peers : public testing::TestWithParam<const char*>
{
protected:
    void SetUp() override
    {
        if (geteuid() != 0) {
            GTEST_SKIP() << "only root can become another user";
        }
    }

    static pair_config config(const char* scenario_name)
    {
        return {.scenario = scenario_name, .variables = {{"UCX_TLS", GetParam()}}, .rounds = 10};
    }
};

TEST_P(separated_peers, of_two_users_reach_each_other_otherwise)
{
    EXPECT_PAIR(config("lay_shm.two_users"));
}

TEST_P(separated_peers, with_closed_processes_reach_each_other_otherwise)
{
    EXPECT_PAIR(config("lay_shm.closed_processes"));
}

INSTANTIATE_TEST_SUITE_P(matrix, separated_peers, testing::Values("tcp,lay_copy,lay_shm"),
                         [](const auto&) { return std::string("tcp"); });

} // namespace

} // namespace ucxl::two_process
