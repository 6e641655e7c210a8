// lay_cma without UCP and without a second process: what its operations do to windows over memory of the application.
#include "lay_shm_fixture.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/property.h"
#include "support/random.h"
#include "support/random_spec.h"
#include "support/wait_until.h"
#include "uct/layout/peer/rkey.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

// A window over memory of the application, and the same memory for the reference walker.
class application_window
{
public:
    explicit application_window(const spec& of, std::uint64_t seed = 1)
        : _actual(of, seed), _expected(of, seed), _plan(must(pack_plan::compile(must(build(of))))),
          _window(must(window_registry::instance().create({_plan, {_actual.bases().begin(), _actual.bases().end()}})))
    {
    }
    ~application_window() { window_registry::instance().destroy(_window); }
    application_window(const application_window&)            = delete;
    application_window& operator=(const application_window&) = delete;

    std::byte* address() const { return _window->address(); }
    std::uint64_t remote(std::uint64_t offset = 0) const
    {
        return reinterpret_cast<std::uintptr_t>(address()) + offset;
    }
    std::uint64_t length() const { return _window->length(); }
    shm_key key(std::size_t min_block = 1) const { return export_process_window(address(), min_block); }
    spec_memory& expected() { return _expected; }
    std::string difference() const { return _actual.first_difference(_expected); }

    void bind_to(const spec_memory& other)
    {
        ASSERT_TRUE(window_registry::instance()
                        .rebind(*_window, {_plan, {other.bases().begin(), other.bases().end()}})
                        .has_value());
        update_exported_window(address());
    }

private:
    spec_memory _actual, _expected;
    pack_plan_ptr _plan;
    window* _window;
};

TEST_F(lay_cma, every_operation_moves_the_bytes_of_random_layouts_and_no_others)
{
    const auto draw = [](test::random& from) {
        return random_spec(from, {.max_bytes = 20000, .num_sources = 3, .overlapping = overlapping::never});
    };
    const auto check = [this](test::random& from, const spec& described) {
        application_window target(described, from.next());
        if (target.length() == 0) {
            return;
        }
        const imported key(target.key());
        ASSERT_TRUE(key);
        for (int i = 0; i < 6; ++i) {
            const auto offset = from.below(target.length());
            const auto length = from.below(target.length() - offset + 1);
            auto data         = random_bytes(from.next(), length);
            const auto iov    = iov_of(data.data(), length);
            if (i % 2 == 0) {
                ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, target.remote(offset), key.rkey(), nullptr));
                target.expected().scatter(offset, data);
            } else {
                ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, target.remote(offset), key.rkey(), nullptr));
                ASSERT_EQ(data, target.expected().gather(offset, length));
            }
            ASSERT_EQ(target.difference(), "") << "operation " << i;
        }
    };
    for_random_layouts(200, draw, check, [](const spec& described) { return !has_overlap(described); });
}

struct block_lengths {
    const char* name;
    std::uint64_t local, remote;
};

class lay_cma_between_windows : public lay_cma, public testing::WithParamInterface<block_lengths>
{
};

// Long blocks go to the kernel as they are, short local ones through a buffer; 300 blocks are more than one call.
TEST_P(lay_cma_between_windows, ranges_are_copied_both_ways)
{
    const auto shape_of = [](std::uint64_t block) {
        return spec::strided(spec::block(block), {{300 * 4096 / block, static_cast<std::int64_t>(block) + 24}});
    };
    application_window target(*shape_of(GetParam().remote), 1), local(*shape_of(GetParam().local), 2);
    const imported key(target.key());
    test::random from(run_seed());
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (int turn = 0; turn < 20; ++turn) {
        SCOPED_TRACE("seed " + std::to_string(run_seed()) + " turn " + std::to_string(turn));
        const auto length = 1 + from.below(target.length() - 1);
        const auto there = from.below(target.length() - length + 1), here = from.below(local.length() - length + 1);
        const auto iov = iov_of(local.address() + here, length);
        if (turn % 2 == 0) {
            ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, target.remote(there), key.rkey(), nullptr));
            target.expected().scatter(there, local.expected().gather(here, length));
        } else {
            ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, target.remote(there), key.rkey(), nullptr));
            local.expected().scatter(here, target.expected().gather(there, length));
        }
        ASSERT_EQ(target.difference() + local.difference(), "");
    }
}

INSTANTIATE_TEST_SUITE_P(blocks, lay_cma_between_windows,
                         testing::Values(block_lengths{"long_to_long", 4096, 8192},
                                         block_lengths{"short_to_long", 64, 4096},
                                         block_lengths{"long_to_short", 4096, 64},
                                         block_lengths{"one_to_many", 300 * 4096, 4096}),
                         [](const auto& of) { return of.param.name; });

TEST_F(lay_cma, only_windows_of_long_blocks_have_keys)
{
    const application_window target(*spec::strided(spec::block(100), {{10, 200}}));
    EXPECT_EQ(target.key(101).access, shm_access::none);
    EXPECT_EQ(target.key(100).access, shm_access::process);
    EXPECT_EQ(export_window(target.address()).access, shm_access::none) << "its memory cannot be mapped";
    const shared_window own(*words_with_gaps());
    EXPECT_EQ(export_process_window(own.address(), 1).access, shm_access::none) << "its memory can be mapped";
    EXPECT_EQ(export_process_window(&target, 1).access, shm_access::none) << "no window";
}

TEST_F(lay_cma, keys_follow_a_window_that_is_bound_elsewhere)
{
    const auto shape = spec::strided(spec::block(64), {{20, 128}});
    application_window target(*shape, 1);
    const imported key(target.key());
    const spec_memory other(*shape, 2);
    target.bind_to(other);
    std::vector<std::byte> got(target.length());
    const auto iov = iov_of(got.data(), got.size());
    ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, target.remote(), key.rkey(), nullptr));
    EXPECT_EQ(got, other.gather());
    const imported later(target.key());
    EXPECT_EQ(later.get(), key.get());
}

TEST_F(lay_cma, windows_that_are_gone_are_neither_written_nor_read)
{
    logs().allow("lay_cma"); // only the first ones of a process are logged
    auto target       = std::make_unique<application_window>(*words_with_gaps());
    const auto remote = target->remote();
    const imported key(target->key());
    const auto bytes = target->key();
    target.reset();
    std::vector<std::byte> data(100, std::byte{7});
    const auto iov = iov_of(data.data(), data.size());
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey(), nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, remote, key.rkey()));
    EXPECT_EQ(data, std::vector<std::byte>(100, std::byte{7}));
    EXPECT_FALSE(imported(bytes));
}

// Of one round after the other: the owner has told the key of a window; the peer has used it; its operations fail.
struct window_that_ends {
    shm_key key;
    std::uint64_t remote;
    std::atomic<unsigned> told, used, failed;
    std::atomic<unsigned> num_spoiled; // windows that came in the place and were written to
};

constexpr unsigned num_ends = 40;

// Blocks of several hundred calls of the kernel.
spec_ptr many_blocks()
{
    return spec::strided(spec::block(64), {{20'000, 88}});
}

// Ends each window while the peer copies, and at once makes one with a record in the same place.
void end_windows(window_that_ends& shown)
{
    const auto wait_for = [](const std::atomic<unsigned>& step, unsigned round) {
        return wait_until([&] { return step.load() >= round; });
    };
    for (unsigned round = 1; round <= num_ends; ++round) {
        auto ending  = std::make_unique<application_window>(*many_blocks(), 1);
        shown.key    = ending->key();
        shown.remote = ending->remote();
        const spec_memory kept(*many_blocks(),
                               2); // a put that is under way may still write to the memory of the window
        ending->bind_to(kept);
        shown.told = round;
        ASSERT_TRUE(wait_for(shown.used, round));
        ending.reset();
        const application_window other(*many_blocks(), 3);
        ASSERT_EQ(other.key().record_offset, shown.key.record_offset);
        ASSERT_TRUE(wait_for(shown.failed, round));
        shown.num_spoiled += other.difference().empty() ? 0 : 1;
    }
}

TEST_F(lay_cma, another_window_in_the_place_of_the_record_is_neither_written_nor_read)
{
    logs().allow("lay_cma");
    auto& shown = shared<window_that_ends>();
    forked_process owner([&](forked_process& self) {
        self.ready();
        end_windows(shown);
    });
    const auto expected = spec_memory(*many_blocks(), 2).gather();
    std::vector<std::byte> data(expected.size());
    const auto iov = iov_of(data.data(), data.size());
    for (unsigned round = 1; round <= num_ends; ++round) {
        ASSERT_TRUE(wait_until([&] { return shown.told.load() >= round; }));
        const imported key(shown.key);
        ASSERT_TRUE(key);
        const auto copy = [&] {
            return round % 2 == 0 ? uct_ep_put_zcopy(ep, &iov, 1, shown.remote, key.rkey(), nullptr)
                                  : get_status(ep, iov, shown.remote, key.rkey());
        };
        for (auto status = copy(); status == UCS_OK; status = copy()) {
            EXPECT_TRUE(round % 2 == 0 || data == expected) << "round " << round << ": bytes of another window";
            shown.used = round;
        }
        shown.failed = round;
    }
    EXPECT_EQ(owner.join(), 0);
    EXPECT_EQ(shown.num_spoiled, 0u);
}

TEST_F(lay_cma, a_window_that_was_withdrawn_gets_another_key)
{
    const application_window target(*words_with_gaps());
    const auto before = target.key();
    withdraw_exported_window(target.address());
    EXPECT_FALSE(imported(before));
    const auto after = target.key();
    EXPECT_NE(after.generation, before.generation);
    EXPECT_TRUE(imported(after));
}

TEST_F(lay_cma, ranges_outside_the_window_change_nothing)
{
    logs().allow("lay_cma");
    application_window target(*words_with_gaps());
    const imported key(target.key());
    for (const std::uint64_t address : {target.remote() - 1, target.remote(target.length() - 19), std::uint64_t{0}}) {
        auto data         = random_bytes(4, 20);
        const auto before = data;
        const auto iov    = iov_of(data.data(), data.size());
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_short(ep, data.data(), 20, address, key.rkey()));
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, address, key.rkey()));
        EXPECT_EQ(data, before);
    }
    EXPECT_EQ(target.difference(), "");
}

// The application unmapped what its window shows.
TEST_F(lay_cma, memory_that_is_not_there_is_an_error)
{
    logs().allow("lay_cma");
    constexpr std::size_t length = 4 * 4096;
    auto* const memory =
        static_cast<std::byte*>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto plan    = must(pack_plan::compile(must(build(*spec::strided(spec::block(1024), {{4, 4096}})))));
    window* const made = must(window_registry::instance().create({plan, {memory}}));
    const auto remote  = reinterpret_cast<std::uintptr_t>(made->address());
    const imported key(export_process_window(made->address(), 1));
    ASSERT_TRUE(key);
    ASSERT_EQ(0, munmap(memory + 4096, length - 4096));
    std::vector<std::byte> data(4096, std::byte{7});
    const auto iov = iov_of(data.data(), data.size());
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote, key.rkey(), nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, get_status(ep, iov, remote, key.rkey()));
    ASSERT_EQ(0, munmap(memory, 4096));
    withdraw_exported_window(made->address());
    EXPECT_FALSE(imported(export_process_window(made->address(), 1))) << "found out with the first byte";
    window_registry::instance().destroy(made);
}

// A number of a process may come to mean another one.
TEST_F(lay_cma, refuses_owners_of_whose_end_the_kernel_does_not_tell)
{
    const application_window target(*words_with_gaps());
    EXPECT_TRUE(holds_in_child([&] {
        sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog filter{std::size(program), program};
        const bool was_known = static_cast<bool>(imported(target.key()));
        drop_idle_imports();
        return was_known && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 && !imported(target.key());
    }));
}

// As in a program that closes all descriptors, also those that it did not open.
TEST_F(lay_cma, does_without_descriptors_that_were_closed)
{
    logs().allow("lay_cma"); // of the owner that has ended
    struct what_is_told {
        std::array<shm_key, 2> keys;
        std::array<std::uint64_t, 2> remotes;
    };
    auto& told = shared<what_is_told>();
    forked_process owner([&](forked_process& self) {
        const application_window first(*words_with_gaps()), second(*words_with_gaps());
        told = {.keys = {first.key(), second.key()}, .remotes = {first.remote(), second.remote()}};
        self.ready();
        self.wait();
    });
    const auto others = open_descriptors();
    const imported first(told.keys[0]);
    ASSERT_TRUE(first);
    close_all_but(others);
    const imported second(told.keys[1]);
    ASSERT_TRUE(second) << "another window of that peer";
    auto data      = random_bytes(1, 100);
    const auto iov = iov_of(data.data(), data.size());
    std::vector<std::byte> shown(100);
    const auto shown_iov = iov_of(shown.data(), shown.size());
    for (const imported* const key : {&first, &second}) {
        const std::uint64_t remote = told.remotes[key == &first ? 0 : 1];
        ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, remote, key->rkey(), nullptr));
        std::ranges::fill(shown, std::byte{0});
        ASSERT_EQ(UCS_OK, get_status(ep, shown_iov, remote, key->rkey()));
        EXPECT_EQ(shown, data);
    }
    owner.kill();
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, told.remotes[0], first.rkey(), nullptr));
}

TEST_F(lay_cma, reaches_an_owner_whose_first_thread_has_ended)
{
    struct what_is_told {
        shm_key key;
        std::uint64_t remote;
    };
    auto& told = shared<what_is_told>();
    forked_process owner([&](forked_process& self) {
        const application_window target(*words_with_gaps());
        told = {target.key(), target.remote()};
        std::thread([] {
            while (true) {
                pause();
            }
        }).detach();
        self.ready();
        self.wait();
        syscall(SYS_exit, 0); // of this thread alone
    });
    const imported key(told.key);
    ASSERT_TRUE(key);
    owner.go_on();
    ASSERT_TRUE(wait_until([&] { return status_of_process(owner.id())->state == 'Z'; }));
    auto data      = random_bytes(1, 100);
    const auto iov = iov_of(data.data(), data.size());
    ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, told.remote, key.rkey(), nullptr));
    std::vector<std::byte> shown(100);
    const auto shown_iov = iov_of(shown.data(), shown.size());
    ASSERT_EQ(UCS_OK, get_status(ep, shown_iov, told.remote, key.rkey()));
    EXPECT_EQ(shown, data);
}

TEST_F(lay_cma, takes_only_keys_of_its_own_and_of_other_processes)
{
    const application_window target(*words_with_gaps());
    const shared_window own(*words_with_gaps());
    const auto unpack = [](ucxl::abi::component& by, const shm_key& key) {
        uct_rkey_bundle_t bundle;
        return uct_rkey_unpack(&by.super, &key, &bundle);
    };
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(lay_cma_component, target.key())) << "of this process";
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(lay_cma_component, export_window(own.address())));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(lay_shm_component, target.key()));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, unpack(lay_cma_component, no_access_key()));
    EXPECT_EQ(count_imports().windows, 0u);
}

} // namespace
