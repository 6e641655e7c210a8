// Windows over memory that a device cannot register: the CPU carries them, the reason says so, and what can be moved
// is right. Where memory is missing or read-only only between blocks that are far apart, they have keys.
#include "device_control.h"
#include "dpu.h"
#include "own_peer.h"

#include "support/carrier_reason.h"
#include "support/log_guard.h"
#include "support/printed_text.h"

#include <ucp_layout.hpp>

#include <algorithm>
#include <string>

#include <sys/mman.h>

namespace ucxl::test
{
namespace
{

constexpr std::size_t page     = 4096;
constexpr std::size_t distance = 512; // of blocks, in pages; shorter gaps are registered with the blocks
constexpr std::size_t blocks   = 3;
constexpr std::size_t block    = 100;
constexpr std::size_t pages    = (blocks - 1) * distance + 3;

// The line of the figures of this process that begins so.
std::string figure(const std::string& name)
{
    const std::string all =
        printed_text([](FILE* stream) { check_ok(ucp_layout_print_windows(0, stream), "ucp_layout_print_windows"); });
    const auto start = all.find(name);
    check(start != all.npos, "no figure is named {}", name);
    return all.substr(start, all.find('\n', start) - start);
}

// Three blocks, in the middles of pages.
class bases : public ucx_test
{
protected:
    bases()
        : _memory(static_cast<std::byte*>(
              mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        check(_memory != MAP_FAILED, "mmap failed");
        for (std::size_t i = 0; i < pages * page; ++i) {
            _memory[i] = byte_of(i);
        }
    }
    ~bases() override { munmap(_memory, pages * page); }

    static std::byte byte_of(std::size_t i) { return static_cast<std::byte>(i * 11 + i / 256); }
    static std::size_t place_of(std::size_t i) { return (1 + distance * (i / block)) * page + 2000 + i % block; }

    ucx_layout::window mapped()
    {
        const auto layout = ucx_layout::layout::create_strided(block, {{blocks, distance * page}});
        auto window       = ucx_layout::window::map(_peer.context(), layout.value(), _memory + page + 2000);
        check(window.has_value(), "ucp_layout_map");
        return std::move(*window);
    }

    void expect_sent_right(const ucx_layout::window& window)
    {
        std::vector<std::byte> got(blocks * block);
        check_ok(_peer.send(window.address(), got.data(), got.size()), "a send");
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i], byte_of(place_of(i))) << i;
        }
    }

    // Only the blocks of the window hold the message.
    void expect_received_right(const ucx_layout::window& window, std::size_t first_page, std::size_t last_page)
    {
        const std::vector<std::byte> sent(blocks * block, std::byte{0xee});
        check_ok(_peer.send(sent.data(), window.address(), sent.size()), "a receive");
        std::vector<std::byte> expected(pages * page);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] = byte_of(i);
        }
        for (std::size_t i = 0; i < sent.size(); ++i) {
            expected[place_of(i)] = sent[i];
        }
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (i / page < first_page || i / page > last_page) {
                ASSERT_EQ(_memory[i], expected[i]) << i;
            }
        }
    }

    own_peer _peer;
    std::byte* _memory;
};

TEST_F(bases, are_not_needed_to_ask_who_would_carry_a_window)
{
    EXPECT_EQ(ucx_layout::carrier_in(_peer.context()).value(), UCP_LAYOUT_CARRIER_KEYS);
    const std::string binds = figure("  binds"); // the first question opened the device
    EXPECT_EQ(ucx_layout::carrier_in(_peer.context()).value(), UCP_LAYOUT_CARRIER_KEYS);
    EXPECT_EQ(figure("  binds"), binds) << "no key was made";
    EXPECT_TRUE(figure("windows with a key").ends_with(" 0"));
}

TEST_F(bases, that_are_missing_between_the_blocks_leave_a_key)
{
    ASSERT_EQ(munmap(_memory + 100 * page, 2 * page), 0);
    const auto window = mapped();
    EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
    expect_sent_right(window);
    expect_received_right(window, 100, 101);
}

TEST_F(bases, that_are_missing_below_a_block_leave_a_window_without_a_key)
{
    ASSERT_EQ(munmap(_memory + (1 + distance) * page, page), 0);
    const auto window = mapped();
    EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_COPIES);
    EXPECT_NE(carrier_reason(window).find("cannot be registered"), std::string::npos) << carrier_reason(window);
}

TEST_F(bases, that_are_read_only_can_be_sent)
{
    for (const std::size_t count : {std::size_t{1}, distance}) {
        ASSERT_EQ(mprotect(_memory + (1 + distance) * page, count * page, PROT_READ), 0);
        const auto window = mapped();
        EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_COPIES);
        EXPECT_NE(carrier_reason(window).find("not writable"), std::string::npos) << carrier_reason(window);
        expect_sent_right(window);
    }
}

// Mapped again, the same window asks the device again.
TEST_F(bases, that_become_writable_get_a_key)
{
    ASSERT_EQ(mprotect(_memory + (1 + distance) * page, page, PROT_READ), 0);
    EXPECT_EQ(mapped().carrier(), UCP_LAYOUT_CARRIER_COPIES);
    ASSERT_EQ(mprotect(_memory + (1 + distance) * page, page, PROT_READ | PROT_WRITE), 0);
    const auto window = mapped();
    EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
    expect_sent_right(window);
    expect_received_right(window, pages, pages);
}

// So many blocks so far apart that the window's own key does not have room for them, and there is a key below it.
class bases_mapped_again : public testing::TestWithParam<const char*>
{
protected:
    static constexpr std::size_t blocks = 100, block = 64, stride = 65552, bytes = blocks * stride;

    bases_mapped_again() { map_memory(); }
    ~bases_mapped_again() override
    {
        _device.stop_failing();
        munmap(_memory, bytes);
    }

    // At the address it had, if there was one.
    void map_memory()
    {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (_memory != nullptr ? MAP_FIXED : 0);
        if (_memory != nullptr) {
            check(munmap(_memory, bytes) == 0, "munmap failed");
        }
        void* const found = mmap(_memory, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        check(found != MAP_FAILED, "mmap failed");
        _memory = static_cast<std::byte*>(found);
        ++_salt;
        for (std::size_t i = 0; i < blocks * block; ++i) {
            _memory[place_of(i)] = byte_of(i);
        }
    }

    std::byte byte_of(std::size_t i) const { return static_cast<std::byte>(i * 11 + i / 256 + _salt); }
    static std::size_t place_of(std::size_t i) { return i / block * stride + i % block; }

    ucx_layout::window mapped(std::size_t offset = 0)
    {
        const auto layout = ucx_layout::layout::create_strided(block, {{blocks, stride}});
        auto window       = ucx_layout::window::map(_peer.context(), layout.value(), _memory + offset);
        check(window.has_value(), "ucp_layout_map");
        return std::move(*window);
    }

    void expect_sent_right(const ucx_layout::window& window)
    {
        std::vector<std::byte> got(blocks * block);
        check_ok(_peer.send(window.address(), got.data(), got.size()), "a send");
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i], byte_of(i)) << i;
        }
    }

    own_peer _peer;
    const device_control _device;
    std::byte* _memory = nullptr;
    unsigned _salt     = 0;
};

TEST_P(bases_mapped_again, get_a_key_when_the_device_makes_one_again)
{
    {
        const auto window = mapped();
        ASSERT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
        expect_sent_right(window);
    }
    map_memory();
    _device.fail(GetParam());
    EXPECT_EQ(mapped().carrier(), UCP_LAYOUT_CARRIER_COPIES);
    EXPECT_TRUE(_device.stop_failing());
    const auto window = mapped();
    EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
    expect_sent_right(window);
}

TEST_P(bases_mapped_again, are_exported_when_the_device_makes_a_key_again)
{
    log_guard logs;
    logs.allow("ucp_memh_pack");
    dpu_side dpu;
    ASSERT_TRUE(is_of_the_library(exported(mapped().memh())));
    map_memory();
    const auto window = mapped();
    ASSERT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
    const auto beside = mapped(block); // takes the spare key below
    _device.fail(GetParam());
    EXPECT_TRUE(exported(window.memh()).empty());
    EXPECT_TRUE(_device.stop_failing());
    const auto packed = exported(window.memh());
    ASSERT_TRUE(is_of_the_library(packed));
    const imported_memory imported(dpu.context(), packed);
    check_ok(imported.status(), "import");
    std::vector<std::byte> got(blocks * block);
    ASSERT_EQ(dpu.read(imported, window.address(), got), UCS_OK);
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], byte_of(i)) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(window_keys, bases_mapped_again,
                         testing::Values("command:create_mkey,times=all", "wqe:umr,times=all"));

TEST_F(bases, that_are_read_only_between_the_blocks_leave_a_key)
{
    ASSERT_EQ(mprotect(_memory + (distance + 100) * page, page, PROT_READ), 0);
    const auto window = mapped();
    EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
    expect_sent_right(window);
    expect_received_right(window, pages, pages);
}

} // namespace
} // namespace ucxl::test
