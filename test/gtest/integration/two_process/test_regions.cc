// Windows over shared memory of all kinds, between two processes: what goes by one pass, and what happens when the
// memory, or one of the processes, goes away.
#include "passive_target.h"
#include "plain_peer.h"
#include "remote_key.h"
#include "scenario.h"
#include "transports.h"

#include "support/wait_until.h"

#include <cstdlib>
#include <cstring>
#include <format>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

constexpr std::size_t block = 1000, stride = 1300, count = 1000;
constexpr std::size_t memory_length = 4 << 20;
constexpr std::size_t length        = count * block; // packed bytes

enum class origin { allocated, posix, huge, sealed_huge, moved, several };

// Shared memory of one origin, and a window of long rows over it.
class shared_rows
{
public:
    shared_rows(ucp_context_h context, origin from)
    {
        make_memory(from);
        std::vector<ucp_layout_iov_t> parts;
        const auto row = *ucx_layout::layout::create_strided(block, {{count / 2, static_cast<std::int64_t>(stride)}});
        for (std::uint32_t half = 0; half < 2; ++half) {
            ucp_layout_iov_t part{};
            part.source         = half;
            part.element.layout = row.get();
            parts.push_back(part);
        }
        auto both = ucx_layout::layout::concatenate(parts);
        check(both.has_value(), "ucp_layout_concatenate");
        const void* const bases[] = {halves[0], halves[1]};
        auto made                 = ucx_layout::window::map(context, *both, bases);
        check(made.has_value(), "ucp_layout_map");
        window.emplace(std::move(*made));
    }
    ~shared_rows()
    {
        window.reset();
        memories.clear();
        if (file >= 0) {
            munmap(halves[0], memory_length);
            close(file);
        }
    }
    shared_rows(const shared_rows&)            = delete;
    shared_rows& operator=(const shared_rows&) = delete;

    void fill(const bytes& packed) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(row(i), packed.data() + i * block, block);
        }
    }
    bool holds(const bytes& packed) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            if (std::memcmp(row(i), packed.data() + i * block, block) != 0) {
                return false;
            }
        }
        return true;
    }
    bool begins_with(const bytes& packed) const { return std::memcmp(row(0), packed.data(), block) == 0; }
    bytes key(const session& of) const
    {
        bytes made;
        append_key(made, of.context(), window->memh(), window->address());
        return made;
    }

    std::vector<ucx_layout::memory> memories;
    std::optional<ucx_layout::window> window;
    std::byte* halves[2] = {};
    int file             = -1; // of POSIX shared memory or of huge pages, without a name
    std::vector<std::byte> heap;

private:
    std::byte* row(std::size_t i) const { return halves[i / (count / 2)] + i % (count / 2) * stride; }

    void add(ucx_layout::result<ucx_layout::memory>&& made)
    {
        check(made.has_value(), "ucp_layout_memory_create");
        memories.push_back(std::move(*made));
    }

    void make_memory(origin from)
    {
        switch (from) {
        case origin::allocated:
            add(ucx_layout::memory::allocate(memory_length));
            halves[0] = memories[0].bytes().data();
            break;
        case origin::several:
            add(ucx_layout::memory::allocate(memory_length));
            add(ucx_layout::memory::allocate(memory_length));
            halves[0] = memories[0].bytes().data() + 17;
            halves[1] = memories[1].bytes().data() + 5;
            return;
        case origin::posix:
            map_and_share(posix_file());
            break;
        case origin::huge:
            map_and_share(memfd_create("regions", MFD_CLOEXEC | MFD_HUGETLB));
            break;
        case origin::sealed_huge:
            map_and_share(memfd_create("regions", MFD_CLOEXEC | MFD_HUGETLB | MFD_ALLOW_SEALING));
            break;
        case origin::moved:
            heap.resize(memory_length, std::byte{1});
            halves[0] = heap.data();
            add(ucx_layout::memory::move(heap));
            break;
        }
        halves[1] = halves[0] + memory_length / 2;
    }

    static int posix_file()
    {
        const std::string name = std::format("/ucx_layout_regions_{}", getpid());
        const int made         = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        shm_unlink(name.c_str());
        return made;
    }

    void map_and_share(int empty)
    {
        file = empty;
        check(file >= 0 && ftruncate(file, memory_length) == 0, "no file for shared memory");
        halves[0] = static_cast<std::byte*>(mmap(nullptr, memory_length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        check(halves[0] != MAP_FAILED, "mmap");
        add(ucx_layout::memory::share({halves[0], memory_length})); // by its address alone
    }
};

ucs_status_t put(session& session, const void* from, const remote_key& to)
{
    const ucp_request_param_t param{};
    return session.wait(ucp_put_nbx(session.endpoint(), from, length, to.address(), to.get(), &param));
}

ucs_status_t get(session& session, void* to, const remote_key& from)
{
    const ucp_request_param_t param{};
    return session.wait(ucp_get_nbx(session.endpoint(), to, length, from.address(), from.get(), &param));
}

// Role 0 works in memory of role 1, which does nothing; then messages go both ways.
void used_by_a_peer(const peer_arguments& arguments, origin from)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        const shared_rows own(context.get(), from);
        own.fill(test_pattern(length, static_cast<unsigned>(arguments.role)));
        if (arguments.plays(1)) {
            session.side_channel().send(own.key(session));
            wait_passively(session);
            check(own.holds(test_pattern(length, 7)), "the memory does not hold what was put");
            session.side_channel().send({});
        } else {
            const bytes key                 = wait_passively(session);
            std::span<const std::byte> rest = key;
            const remote_key other(session.endpoint(), rest);
            bytes got(length);
            check_ok(get(session, got.data(), other), "get into host memory");
            check(got == test_pattern(length, 1), "host memory does not hold what was got");
            check_ok(get(session, own.window->address(), other), "get into a window");
            check(own.holds(got), "the window does not hold what was got");
            own.fill(test_pattern(length, 7));
            check_ok(put(session, own.window->address(), other), "put");
            session.flush();
            session.side_channel().send({});
            wait_passively(session);
        }
        const ucp_request_param_t param{};
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            const bytes sent = test_pattern(length, round);
            if ((round + static_cast<unsigned>(arguments.role)) % 2 == 0) {
                own.fill(sent);
                check_ok(
                    session.wait(ucp_tag_send_nbx(session.endpoint(), own.window->address(), length, round, &param)),
                    "send");
            } else {
                ucp_request_param_t into = param;
                check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), own.window->address(), length, round,
                                                       UINT64_MAX, &into)),
                         "receive");
                check(own.holds(sent), "something else arrived in round {}", round);
            }
            session.barrier();
        }
    }
    session.barrier();
    session.close();
}

// `gone` is what role 1 does to its memory while role 0 has it mapped.
void lost(const peer_arguments& arguments, origin from, void (*gone)(shared_rows& rows))
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        shared_rows own(context.get(), from);
        own.fill(test_pattern(length, 1));
        if (arguments.plays(1)) {
            session.side_channel().send(own.key(session));
            wait_passively(session);
            gone(own);
            session.side_channel().send({});
            wait_passively(session);
        } else {
            const bytes key                 = wait_passively(session);
            std::span<const std::byte> rest = key;
            const remote_key other(session.endpoint(), rest);
            bytes got(length);
            check_ok(get(session, got.data(), other), "get");
            session.side_channel().send({});
            wait_passively(session);
            const auto status = get(session, got.data(), other);
            check(status == UCS_ERR_INVALID_ADDR, "a get of memory that is gone ended with {}",
                  ucs_status_string(status));
            check(put(session, own.window->address(), other) != UCS_OK, "a put into memory that is gone was done");
            session.side_channel().send({});
        }
        session.barrier();
    }
    session.close();
}

void cut_off(const peer_arguments& arguments)
{
    lost(arguments, origin::posix, [](shared_rows& rows) { check(ftruncate(rows.file, 4096) == 0, "ftruncate"); });
}

void cut_off_in_huge_pages(const peer_arguments& arguments)
{
    lost(arguments, origin::huge, [](shared_rows& rows) { check(ftruncate(rows.file, 0) == 0, "ftruncate"); });
}

// A file that cannot become shorter loses its pages, and another one gets them, with all others that are free.
void punched_in_huge_pages(const peer_arguments& arguments)
{
    lost(arguments, origin::sealed_huge, [](shared_rows& rows) {
        check(ftruncate(rows.file, 0) != 0, "the file was not sealed");
        check(fallocate(rows.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, memory_length) == 0, "fallocate");
        constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE;
        while (mmap(nullptr, memory_length / 2, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) {
        }
    });
}

// Role 1 makes progress while role 0 uses its memory, so it would take part in long operations. But the system ends a
// process that touches what its own file does not have any more.
void cut_off_while_its_owner_makes_progress(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        shared_rows own(context.get(), origin::posix);
        own.fill(test_pattern(length, 1));
        const bytes key = session.exchange(own.key(session));
        if (arguments.plays(1)) {
            session.barrier();
            check(ftruncate(own.file, 4096) == 0, "ftruncate");
            session.barrier();
        } else {
            std::span<const std::byte> rest = key;
            const remote_key other(session.endpoint(), rest);
            const auto put_often = [&](ucs_status_t wanted) {
                for (unsigned i = 0; i < 20; ++i) {
                    const auto status = put(session, own.window->address(), other);
                    check(status == wanted, "put {} ended with {}", i, ucs_status_string(status));
                }
            };
            put_often(UCS_OK);
            session.barrier();
            session.barrier(); // the file is cut
            put_often(UCS_ERR_INVALID_ADDR);
        }
        session.barrier();
    }
    session.close();
}

void released(const peer_arguments& arguments)
{
    lost(arguments, origin::moved, [](shared_rows& rows) { rows.memories.clear(); });
}

// The child of role 1 writes the memory that it has, and ends; role 0 goes on with its parent.
void forked_meanwhile(const peer_arguments& arguments)
{
    lost(arguments, origin::moved, [](shared_rows& rows) {
        const pid_t child = fork();
        if (child == 0) {
            rows.fill(bytes(length));
            _exit(rows.holds(bytes(length)) ? 0 : 1);
        }
        int status = 0;
        check(waitpid(child, &status, 0) == child && status == 0, "the child did not end well");
        check(rows.holds(test_pattern(length, 1)), "the child wrote into its parent's memory");
        rows.memories.clear();
    });
}

// What role 0 has none left of when it gets the key. The limit of regions is an option's.
enum class shortage { descriptors, addresses, regions };

rlimit limit_to_what_there_is(shortage of)
{
    const auto resource = of == shortage::descriptors ? RLIMIT_NOFILE : RLIMIT_AS;
    rlimit before{};
    getrlimit(resource, &before);
    rlimit none   = before;
    none.rlim_cur = 0;
    if (of == shortage::addresses) {
        const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        char text[64]{};
        check(read(statm, text, sizeof(text) - 1) > 0, "/proc/self/statm");
        close(statm);
        none.rlim_cur = std::strtoull(text, nullptr, 10) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1 << 20);
    }
    check(setrlimit(resource, &none) == 0, "setrlimit");
    return before;
}

void short_of(const peer_arguments& arguments, shortage of)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    {
        const shared_rows own(context.get(), origin::allocated);
        own.fill(test_pattern(length, 1));
        const bytes keys = session.exchange(own.key(session));
        if (arguments.plays(0)) {
            std::span<const std::byte> rest = keys;
            bytes got(length);
            const auto before = of != shortage::regions ? std::optional(limit_to_what_there_is(of)) : std::nullopt;
            {
                const remote_key other(session.endpoint(), rest);
                if (before) {
                    setrlimit(of == shortage::descriptors ? RLIMIT_NOFILE : RLIMIT_AS, &*before);
                }
                check_ok(get(session, got.data(), other), "get");
            }
            check(got == test_pattern(length, 1), "something else was got");
        }
        session.barrier(); // role 1 makes progress, as messages need it
        if (arguments.plays(1)) {
            ucp_layout_window_attr_t attr{};
            attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
            check_ok(ucp_layout_window_query(own.window->get(), &attr), "ucp_layout_window_query");
            check(attr.statistics.bytes_read == length, "the owner has read {} bytes for messages",
                  attr.statistics.bytes_read);
        }
    }
    session.close();
}

bool is_stopped(pid_t process)
{
    std::string stat;
    std::getline(std::ifstream(std::format("/proc/{}/stat", process)), stat);
    return stat.substr(stat.rfind(')') + 2, 1) == "T";
}

// Role 0 is killed while it puts: role 1 has its memory, and goes on.
void initiator_killed(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    const shared_rows own(context.get(), origin::several);
    const pid_t self = getpid();
    bytes first(sizeof(self));
    std::memcpy(first.data(), &self, sizeof(self));
    const bytes key = own.key(session);
    first.insert(first.end(), key.begin(), key.end());
    const bytes payload             = session.exchange(first);
    std::span<const std::byte> rest = std::span(payload).subspan(sizeof(self));
    if (arguments.plays(0)) {
        const remote_key other(session.endpoint(), rest);
        own.fill(test_pattern(length, 2));
        raise(SIGSTOP); // role 1 lets it go on when it is ready to kill it
        for (;;) {
            check_ok(put(session, own.window->address(), other), "put");
        }
    }
    pid_t peer = 0;
    std::memcpy(&peer, payload.data(), sizeof(peer));
    own.fill(test_pattern(length, 1));
    check(test::wait_until([&] { return is_stopped(peer); }), "role 0 did not stop");
    kill(peer, SIGCONT);
    const auto end = static_cast<unsigned>(20000 + arguments.seed % 20000);
    for (unsigned waited = 0; waited < end || !own.begins_with(test_pattern(length, 2)); waited += 100) {
        ucp_worker_progress(session.worker());
        usleep(100);
    }
    kill(peer, SIGKILL);
    wait_for_death(peer);
    own.fill(test_pattern(length, 3));
    for (int i = 0; i < 1000; ++i) {
        ucp_worker_progress(session.worker());
    }
    check(own.holds(test_pattern(length, 3)), "somebody wrote after the peer was dead");
    session.abandon();
}

// The same memory in two contexts of each process, and a word that is smaller than a page.
void two_contexts(const peer_arguments& arguments)
{
    const context_handle context(arguments), other_context(arguments);
    auto other_arguments   = arguments; // two sessions that read one socket would take each other's messages
    other_arguments.thread = 1;
    session session(arguments, context), other_session(other_arguments, other_context);
    settle(session);
    {
        auto memory = ucx_layout::memory::allocate(100);
        check(memory.has_value(), "ucp_layout_memory_create");
        auto* const word  = reinterpret_cast<std::uint64_t*>(memory->bytes().data() + 8);
        *word             = 5;
        const auto layout = *ucx_layout::layout::create_contig(1, {.length = 8, .layout = nullptr});
        auto window       = ucx_layout::window::map(context.get(), layout, static_cast<void*>(word));
        check(window.has_value(), "ucp_layout_map");
        ucp_mem_h other_memh = nullptr;
        check_ok(ucp_layout_window_memh(window->get(), other_context.get(), &other_memh), "ucp_layout_window_memh");
        bytes keys;
        append_key(keys, context.get(), window->memh(), window->address());
        append_key(keys, other_context.get(), other_memh, window->address());
        const bytes payload             = session.exchange(keys);
        std::span<const std::byte> rest = payload;
        if (arguments.plays(0)) {
            const remote_key first(session.endpoint(), rest);
            const remote_key second(other_session.endpoint(), rest);
            std::uint64_t got = 0;
            const ucp_request_param_t param{};
            check_ok(session.wait(ucp_get_nbx(session.endpoint(), &got, 8, first.address(), first.get(), &param)),
                     "get");
            check(got == 5, "the word is {}", got);
            got = 6;
            check_ok(other_session.wait(
                         ucp_put_nbx(other_session.endpoint(), &got, 8, second.address(), second.get(), &param)),
                     "put by the other context");
            other_session.flush();
        }
        other_session.barrier(); // over TCP a flush needs the peer's progress
        check(arguments.plays(0) || *word == 6, "the word is {}", *word);
    }
    other_session.close();
    session.close();
}

const scenario over_allocated("regions.allocated", [](const auto& with) { used_by_a_peer(with, origin::allocated); });
const scenario over_posix("regions.posix", [](const auto& with) { used_by_a_peer(with, origin::posix); });
const scenario over_huge("regions.huge", [](const auto& with) { used_by_a_peer(with, origin::huge); });
const scenario over_moved("regions.moved", [](const auto& with) { used_by_a_peer(with, origin::moved); });
const scenario over_several("regions.several", [](const auto& with) { used_by_a_peer(with, origin::several); });
const scenario of_cut_file("regions.cut_off", cut_off);
const scenario of_file_cut_in_progress("regions.cut_in_progress", cut_off_while_its_owner_makes_progress);
const scenario of_cut_huge_pages("regions.huge_cut_off", cut_off_in_huge_pages);
const scenario of_punched_huge_pages("regions.huge_punched", punched_in_huge_pages);
const scenario of_released_memory("regions.released", released);
const scenario with_fork("regions.forked", forked_meanwhile);
const scenario without_descriptors("regions.no_descriptors",
                                   [](const auto& with) { short_of(with, shortage::descriptors); });
const scenario without_addresses("regions.no_addresses", [](const auto& with) { short_of(with, shortage::addresses); });
const scenario without_regions("regions.no_regions", [](const auto& with) { short_of(with, shortage::regions); });
const scenario of_killed_initiator("regions.initiator_killed", initiator_killed);
const scenario in_two_contexts("regions.two_contexts", two_contexts);

class regions : public testing::TestWithParam<setting>
{
};

TEST_P(regions, of_every_origin_are_used_by_a_peer)
{
    for (const char* name : {"regions.allocated", "regions.posix", "regions.moved", "regions.several"}) {
        EXPECT_PAIR(config_for(GetParam(), name, 6)) << name;
    }
}

TEST_P(regions, in_a_file_that_is_cut_off_fail_operations_and_no_process)
{
    auto config                   = config_for(GetParam(), "regions.cut_off", 1);
    config.expected[0].any_output = true; // the failures are logged
    EXPECT_PAIR(config);
}

TEST_P(regions, in_a_file_that_is_cut_off_do_not_end_an_owner_that_makes_progress)
{
    auto config                   = config_for(GetParam(), "regions.cut_in_progress", 1);
    config.expected[0].any_output = true; // the failures are logged
    EXPECT_PAIR(config);
}

// Huge pages that nobody has set aside are not there, and setting them aside is the administrator's.
TEST_P(regions, in_huge_pages_of_a_file_are_used_by_a_peer_and_may_be_cut_off)
{
    void* const two_sides =
        mmap(nullptr, 2 * memory_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (two_sides == MAP_FAILED) {
        GTEST_SKIP() << "this machine has no 8 MiB of huge pages set aside (vm.nr_hugepages)";
    }
    munmap(two_sides, 2 * memory_length);
    EXPECT_PAIR(config_for(GetParam(), "regions.huge", 6));
    for (const char* const name : {"regions.huge_cut_off", "regions.huge_punched"}) {
        auto config                   = config_for(GetParam(), name, 1);
        config.expected[0].any_output = true; // the failures are logged
        EXPECT_PAIR(config) << name;
    }
}

TEST_P(regions, that_are_released_while_a_peer_has_them_fail_its_operations)
{
    auto config                   = config_for(GetParam(), "regions.released", 1);
    config.expected[0].any_output = true;
    EXPECT_PAIR(config);
}

TEST_P(regions, that_were_moved_are_not_shared_with_children)
{
    auto config                   = config_for(GetParam(), "regions.forked", 1);
    config.expected[0].any_output = true;
    config.variables.emplace_back("UCX_VFS_ENABLE", "n"); // docs/limits.md
    EXPECT_PAIR(config);
}

TEST_P(regions, that_cannot_be_mapped_are_reached_by_messages)
{
    std::vector<const char*> names{"regions.no_addresses"};
#ifndef __SANITIZE_ADDRESS__ // UndefinedBehaviorSanitizer, which comes with it, looks at objects through a pipe
    names.push_back("regions.no_descriptors");
#endif
    for (const char* const name : names) {
        auto config = config_for(GetParam(), name, 1);
        config.expected[0].any_output =
            std::get<transport_set>(GetParam()).tls != nullptr; // TCP has no descriptor, too
        EXPECT_PAIR(config) << name;
    }
    auto config = config_for(GetParam(), "regions.no_regions", 1);
    config.variables.emplace_back("UCX_LAY_SHM_MAP_REGIONS", "0");
    EXPECT_PAIR(config);
}

TEST_P(regions, keep_what_their_owner_writes_after_a_peer_was_killed)
{
    auto config               = config_for(GetParam(), "regions.initiator_killed", 1);
    config.expected[0].signal = SIGKILL;
    EXPECT_PAIR(config);
}

TEST_P(regions, are_used_in_two_contexts_and_for_less_than_a_page)
{
    EXPECT_PAIR(config_for(GetParam(), "regions.two_contexts", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, regions,
                         testing::Combine(testing::Values(transport_set{"default", nullptr, false},
                                                          transport_set{"tcp", "tcp,lay_copy,lay_shm", false}),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
