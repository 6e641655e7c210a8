// Long operations of lay_shm that a second thread shares, in the part of the process that owns the remote window.
#include "lay_shm_fixture.h"
#include "support/property.h"
#include "support/random.h"
#include "support/random_spec.h"
#include "uct/layout/peer/limits.h"
#include "uct/layout/peer/pass_board.h"
#include "uct/layout/shm/shared_pass.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;
using namespace std::chrono_literals;

namespace
{

// Makes progress all the time, as an owner that waits for messages.
class busy_owner
{
public:
    busy_owner() : _thread([this] { run(); }) {}
    ~busy_owner()
    {
        _is_over = true;
        _thread.join();
    }
    busy_owner(const busy_owner&)            = delete;
    busy_owner& operator=(const busy_owner&) = delete;

    unsigned num_pieces() const { return _num_pieces.load(); }

private:
    void run()
    {
        std::uint64_t seen = 0;
        while (!_is_over.load()) {
            _num_pieces += take_part_in_passes(seen);
        }
    }

    std::atomic<bool> _is_over{false};
    std::atomic<unsigned> _num_pieces{0};
    std::thread _thread;
};

class shared_passes : public lay_shm
{
protected:
    // The whole of both windows: their lengths are equal.
    void put(const shared_window& from, shared_window& to, const imported& key)
    {
        const auto iov = iov_of(from.address(), from.length());
        ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, to.remote(), key.rkey(), nullptr));
    }
    void get(const shared_window& to, const shared_window& from, const imported& key)
    {
        const auto iov = iov_of(to.address(), to.length());
        ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, from.remote(), key.rkey(), nullptr));
    }
};

// Blocks of any length in rows of any stride, of about a MB.
spec_ptr long_rows(test::random& from)
{
    const std::uint64_t block = 1 + from.below(5000), count = (1u << 20) / block;
    return spec::strided(spec::block(block), {{count, static_cast<std::int64_t>(block + from.below(300))}});
}

TEST_F(shared_passes, move_all_bytes_and_no_others)
{
    test::random from(run_seed());
    busy_owner owner;
    const auto give_up = std::chrono::steady_clock::now() + 120s; // it may get no core for long
    for (int round = 0; round < 20 || (owner.num_pieces() == 0 && std::chrono::steady_clock::now() < give_up);
         ++round) {
        const auto rows = long_rows(from);
        shared_window remote(*rows, from.next());
        shared_window alike(*rows, from.next());
        shared_window packed(*spec::block(remote.length()), from.next());
        const imported key(export_window(remote.address()));
        ASSERT_TRUE(key);
        for (shared_window* local : {&alike, &packed}) {
            const imported back(export_window(local->address())); // a process refuses keys of its own, unless known
            for (int turn = 0; turn < 3; ++turn) {
                put(*local, remote, key);
                remote.scatter(0, local->gather(0, local->length()));
                ASSERT_TRUE(remote.is_as_expected()) << "put, seed " << run_seed();
                get(*local, remote, key);
                ASSERT_TRUE(local->is_as_expected()) << "the same came back, seed " << run_seed();
                const auto other       = random_bytes(from.next(), 1000);
                const std::uint64_t at = from.below(remote.length() - 1000);
                const auto iov         = iov_of(const_cast<std::byte*>(other.data()), other.size());
                ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, remote.remote(at), key.rkey(), nullptr));
                remote.scatter(at, other);
                get(*local, remote, key);
                local->scatter(0, remote.gather(0, remote.length()));
                ASSERT_TRUE(local->is_as_expected()) << "get, seed " << run_seed();
            }
        }
    }
    EXPECT_GT(owner.num_pieces(), 0u) << "nothing was shared";
}

// The owner polls, as programs do that wait for a put.
TEST_F(shared_passes, bring_the_last_byte_of_a_put_last)
{
    constexpr std::uint64_t length = 8 << 20; // an owner looks around after a MB
    shared_window remote(*spec::block(length)), local(*spec::block(length));
    const imported key(export_window(remote.address())), back(export_window(local.address()));
    const auto value_of = [](unsigned round) { return static_cast<std::byte>(1 + round % 255); };
    std::fill_n(remote.start(), length, std::byte{0});
    std::atomic<unsigned> num_arrived{0}, num_cut{0}, num_pieces{0};
    std::jthread owner([&](const std::stop_token& is_over) {
        std::uint64_t seen = 0;
        const std::atomic_ref last(remote.start()[length - 1]);
        while (!is_over.stop_requested()) {
            num_pieces += take_part_in_passes(seen);
            const std::byte value = value_of(num_arrived);
            if (last.load(std::memory_order_acquire) == value) {
                num_cut += !std::all_of(remote.start(), remote.start() + length,
                                        [&](std::byte each) { return each == value; });
                ++num_arrived;
            }
        }
    });
    const auto give_up = std::chrono::steady_clock::now() + 120s; // it may get no core for long
    for (unsigned round = 0; (round < 50 || num_pieces == 0) && std::chrono::steady_clock::now() < give_up; ++round) {
        std::fill_n(local.start(), length, value_of(round));
        put(local, remote, key);
        while (num_arrived == round && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::yield();
        }
    }
    EXPECT_GT(num_pieces, 0u) << "nothing was shared";
    EXPECT_EQ(num_cut, 0u) << "of " << num_arrived;
}

// One message of a MB after the other, with the owner's memory that the peer has mapped.
class passes_of_one_owner : public shared_passes
{
protected:
    void SetUp() override
    {
        shared_passes::SetUp();
        remote = std::make_unique<shared_window>(*spec::block(1 << 20));
        local  = std::make_unique<shared_window>(*spec::block(1 << 20));
        key    = std::make_unique<imported>(export_window(remote->address()));
        back   = std::make_unique<imported>(export_window(local->address()));
    }
    void TearDown() override
    {
        back.reset();
        key.reset();
        local.reset();
        remote.reset();
        shared_passes::TearDown();
    }

    // How many of so many operations are offered to the owner.
    std::uint64_t num_offered(unsigned operations)
    {
        const auto posted = [] { return own_board()->board().posted.load(); };
        const auto before = posted();
        for (unsigned i = 0; i < operations; ++i) {
            get(*local, *remote, *key);
        }
        return posted() - before;
    }

    std::unique_ptr<shared_window> remote, local;
    std::unique_ptr<imported> key, back;
};

TEST_F(passes_of_one_owner, are_not_offered_again_to_one_that_never_looks)
{
    EXPECT_EQ(num_offered(100), 4u);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(num_offered(100), 0u);
}

TEST_F(passes_of_one_owner, are_offered_again_as_soon_as_it_has_looked)
{
    for (int round = 0; round < 3; ++round) {
        EXPECT_LE(num_offered(100), 4u);
        {
            busy_owner owner;
            const auto give_up = std::chrono::steady_clock::now() + 120s; // it may get no core for long
            while (owner.num_pieces() == 0 && std::chrono::steady_clock::now() < give_up) {
                get(*local, *remote, *key);
            }
            EXPECT_GT(owner.num_pieces(), 0u);
        }
        EXPECT_EQ(num_offered(100), 4u) << "it took part, and then no more";
    }
}

TEST_F(passes_of_one_owner, are_offered_seldom_to_one_that_looks_too_late)
{
    static_cast<void>(num_offered(4));
    std::uint64_t seen = 0;
    const auto start   = std::chrono::steady_clock::now();
    std::uint64_t all  = 0;
    for (int i = 0; i < 1000; ++i) {
        all += num_offered(1);
        EXPECT_EQ(take_part_in_passes(seen), 0u) << "nothing is left of the pass";
    }
    const auto passed = std::chrono::steady_clock::now() - start;
    EXPECT_GE(all, 1u);
    EXPECT_LE(all, 2u + static_cast<std::uint64_t>(passed / 1ms));
}

// One pass, of which the owner gets the first chance.
class posted_to_self : public shared_passes
{
protected:
    void SetUp() override
    {
        shared_passes::SetUp();
        target  = std::make_unique<shared_window>(*spec::strided(spec::block(4096), {{64, 8192}}), 1);
        source  = std::make_unique<shared_window>(*spec::block(64 * 4096), 2);
        request = {.key              = export_window(source->address()),
                   .address          = source->remote(),
                   .owner_address    = target->remote(),
                   .owner_generation = export_window(target->address()).generation,
                   .length           = 64 * 4096,
                   .piece            = 32768,
                   .direction        = pass_direction::to_owner};
    }
    void TearDown() override
    {
        target.reset();
        source.reset();
        shared_passes::TearDown();
    }

    // How many pieces the owner takes.
    unsigned num_taken()
    {
        const imported known(request.key);
        posted_pass pass(own_board()->board(), request);
        std::uint64_t seen       = 0;
        const unsigned num_taken = take_part_in_passes(seen);
        EXPECT_EQ(take_part_in_passes(seen), 0u);
        while (pass.take()) {
        }
        pass.finish([] { return true; }, [](std::uint32_t) { ADD_FAILURE() << "a piece was taken and not done"; });
        return num_taken;
    }

    std::unique_ptr<shared_window> target, source;
    pass_request request{};
};

TEST_F(posted_to_self, an_owner_moves_what_is_asked_of_it)
{
    EXPECT_EQ(num_taken(), 8u);
    target->scatter(0, source->gather(0, source->length()));
    EXPECT_TRUE(target->is_as_expected());
    request.direction = pass_direction::from_owner;
    const auto back   = random_bytes(3, 1000);
    target->scatter(500, back);
    const imported key(export_window(target->address()));
    const auto iov = iov_of(const_cast<std::byte*>(back.data()), back.size());
    ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, target->remote(500), key.rkey(), nullptr));
    EXPECT_EQ(num_taken(), 8u);
    source->scatter(500, back);
    EXPECT_TRUE(source->is_as_expected());
    EXPECT_TRUE(target->is_as_expected());
}

struct wrong_request {
    const char* name;
    void (*spoil)(pass_request& request);
};

void PrintTo(const wrong_request& wrong, std::ostream* out)
{
    *out << wrong.name;
}

class wrong_requests : public posted_to_self, public testing::WithParamInterface<wrong_request>
{
};

TEST_P(wrong_requests, move_nothing)
{
    GetParam().spoil(request);
    const imported known(export_window(source->address()));
    EXPECT_EQ(num_taken(), 0u);
    EXPECT_TRUE(target->is_as_expected());
    EXPECT_TRUE(source->is_as_expected());
}

INSTANTIATE_TEST_SUITE_P(
    all, wrong_requests,
    testing::Values(
        wrong_request{"a_range_behind_the_requesters_window", [](pass_request& request) { ++request.address; }},
        wrong_request{"a_range_before_the_requesters_window", [](pass_request& request) { --request.address; }},
        wrong_request{"a_range_behind_the_owners_window", [](pass_request& request) { ++request.owner_address; }},
        wrong_request{"a_range_before_the_owners_window", [](pass_request& request) { --request.owner_address; }},
        wrong_request{"no_window_of_the_owner", [](pass_request& request) { request.owner_address = 4096; }},
        wrong_request{"a_length_beyond_both", [](pass_request& request) { ++request.length; }},
        wrong_request{"another_key_of_the_owner", [](pass_request& request) { ++request.owner_generation; }},
        wrong_request{"no_key_of_the_owner", [](pass_request& request) { request.owner_generation = 0; }},
        wrong_request{"another_key_of_the_requester", [](pass_request& request) { ++request.key.generation; }},
        wrong_request{"no_key_of_the_requester", [](pass_request& request) { request.key = no_access_key(); }},
        wrong_request{"no_direction",
                      [](pass_request& request) { request.direction = static_cast<pass_direction>(2); }}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST_F(posted_to_self, a_window_that_its_owner_took_back_is_not_touched)
{
    withdraw_exported_window(target->address());
    EXPECT_EQ(num_taken(), 0u);
    EXPECT_TRUE(target->is_as_expected());
}

// Nothing guards an owner's own memory.
TEST_F(posted_to_self, memory_in_a_file_that_may_become_shorter_is_left_to_the_requester)
{
    const std::uint64_t length = source->length();
    const owned_fd file(memfd_create("unsealed", MFD_CLOEXEC)); // without MFD_ALLOW_SEALING: as a file of shm_open()
    ASSERT_EQ(0, ftruncate(file.get(), static_cast<off_t>(length)));
    const auto shown  = must(owned_mapping::map(length, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    const auto memory = must(region::share(shown.start(), length, file.get(), 0));
    ASSERT_TRUE(region_table::instance().add(memory).has_value());
    const auto plan          = must(pack_plan::compile(must(build(*spec::block(length)))));
    window* const own        = must(window_registry::instance().create({plan, {shown.start()}}));
    request.owner_address    = reinterpret_cast<std::uintptr_t>(own->address());
    request.owner_generation = export_window(own->address()).generation;
    EXPECT_EQ(num_taken(), 0u);
    {
        const imported back(request.key), key(export_window(own->address()));
        const auto iov = iov_of(source->address(), length);
        ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, request.owner_address, key.rkey(), nullptr));
        EXPECT_EQ(0, std::memcmp(shown.start(), source->gather(0, length).data(), length));
        EXPECT_FALSE(offer_to_share(*key.get(), source->address(), length));
        const imported sealed(export_window(target->address()));
        EXPECT_TRUE(offer_to_share(*sealed.get(), source->address(), length));
    }
    window_registry::instance().destroy(own);
}

TEST_F(shared_passes, are_for_long_operations_between_used_windows_of_the_library)
{
    const std::uint64_t shortest = lay_shm_limits().min_shared;
    const shared_window remote(*spec::block(2 * shortest));
    const shared_window local(*spec::block(2 * shortest));
    const imported key(export_window(remote.address()));
    EXPECT_FALSE(offer_to_share(*key.get(), local.address(), shortest)) << "the window was never used";
    get(local, remote, key);
    EXPECT_EQ(offer_to_share(*key.get(), local.address(), shortest), export_window(local.address()));
    EXPECT_FALSE(offer_to_share(*key.get(), local.address(), shortest - 1));
    std::vector<std::byte> plain(shortest);
    EXPECT_FALSE(offer_to_share(*key.get(), plain.data(), plain.size()));
}

// As a server makes a window over the blocks of one request: a peer has to be told of each block.
TEST_F(shared_passes, are_for_very_long_windows_never_used_if_their_blocks_are_long)
{
    constexpr std::uint64_t very_long = 4 << 20;
    const auto blocks_at_random       = [](std::uint64_t block) {
        test::random from(run_seed());
        std::vector<test::spec_part> parts;
        std::int64_t offset = 0;
        for (std::uint64_t at = 0; at < very_long; at += block) {
            parts.push_back({0, offset, spec::block(block), 1, {}});
            offset += static_cast<std::int64_t>(block + 1 + from.below(100));
        }
        return spec::iov(parts);
    };
    const shared_window remote(*spec::block(very_long));
    const imported key(export_window(remote.address()));
    const shared_window whole(*spec::block(very_long)), long_blocks(*blocks_at_random(1024)),
        short_blocks(*blocks_at_random(64));
    EXPECT_FALSE(offer_to_share(*key.get(), whole.address(), very_long - 1));
    EXPECT_EQ(offer_to_share(*key.get(), whole.address(), very_long), export_window(whole.address()));
    EXPECT_EQ(offer_to_share(*key.get(), long_blocks.address(), very_long), export_window(long_blocks.address()));
    EXPECT_FALSE(offer_to_share(*key.get(), short_blocks.address(), very_long));
}

} // namespace
