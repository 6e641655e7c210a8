// The figures of windows, of this process and of others.
#include "support/forked_process.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "support/printed_text.h"
#include "support/ucp.h"
#include "ucp/layout/window_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <format>
#include <string>
#include <vector>

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using testing::HasSubstr;
using ucx_layout::layout;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::holds_in_child;
using ucxl::test::must;
using ucxl::test::printed_text;
using ucxl::test::ucx_test;

class figures : public ucx_test
{
protected:
    static std::string printed(pid_t pid, ucs_status_t wanted = UCS_OK)
    {
        return printed_text([&](FILE* stream) { EXPECT_EQ(ucp_layout_print_windows(pid, stream), wanted); });
    }

    static unsigned long copied(pid_t pid)
    {
        const std::string text = printed(pid), name = "windows copied by the CPU";
        const auto found = text.find(name);
        return found == text.npos ? ~0ul : std::stoul(text.substr(found + name.size()));
    }

    context _context;
    std::vector<std::byte> _memory = std::vector<std::byte>(4096);
    layout _block                  = must(layout::create_contig(1, {4096, nullptr}));
};

TEST_F(figures, count_a_window_once_while_it_is_mapped)
{
    const auto before = copied(0);
    {
        const auto first  = must(window::map(_context.get(), _block, _memory.data()));
        const auto second = must(window::map(_context.get(), _block, _memory.data()));
        EXPECT_EQ(copied(0), before + 1);
        EXPECT_EQ(copied(getpid()), before + 1) << "as another process would";
        EXPECT_THAT(printed(0), HasSubstr("copied, because "));
    }
    EXPECT_EQ(copied(0), before);
    EXPECT_EQ(copied(getpid()), before);
}

TEST_F(figures, of_a_child_are_its_own)
{
    const auto mine   = must(window::map(_context.get(), _block, _memory.data()));
    const auto before = copied(0);
    EXPECT_TRUE(holds_in_child([&] {
        std::vector<std::byte> other(4096);
        const auto window    = window::map(nullptr, _block, other.data());
        const bool is_as_was = copied(0) >= before && copied(getpid()) == copied(0);
        return is_as_was && window.has_value() && printed(getpid()) == printed(0);
    }));
    EXPECT_EQ(copied(0), before);
    EXPECT_EQ(copied(getpid()), before);
}

TEST_F(figures, need_a_process_with_the_library)
{
    logs().allow("has not loaded this release of the library");
    EXPECT_EQ(printed(999999999, UCS_ERR_NO_ELEM), "");
}

// Makes a page as this library does, with these words in front and `rest` behind them.
void show_page(std::uint64_t form, std::size_t length, int rest)
{
    closefrom(3); // the own page
    std::vector<unsigned char> content(std::max(length, sizeof(form)), static_cast<unsigned char>(rest));
    std::memcpy(content.data(), &form, sizeof(form));
    const int fd = memfd_create("ucx-layout-windows", 0);
    EXPECT_EQ(write(fd, content.data(), length), static_cast<ssize_t>(length));
}

TEST_F(figures, of_a_process_that_writes_nonsense_are_text_or_an_error)
{
    logs().allow("has not loaded this release of the library");
    constexpr std::uint64_t form = ucxl::process_figures::current_form;
    struct attempt {
        std::uint64_t form;
        std::size_t length;
        ucs_status_t wanted;
    };
    for (const attempt& each : {attempt{form, 1 << 16, UCS_OK}, attempt{form + 1, 1 << 16, UCS_ERR_NO_ELEM},
                                attempt{form, 100, UCS_ERR_NO_ELEM}, attempt{form, 0, UCS_ERR_NO_ELEM}}) {
        SCOPED_TRACE(std::format("form {:x}, {} bytes", each.form, each.length));
        int sync[2];
        ASSERT_EQ(pipe(sync), 0);
        const pid_t child = fork();
        if (child == 0) {
            const int told = dup2(sync[1], 2);
            show_page(each.form, each.length, 0xff);
            EXPECT_EQ(write(told, "x", 1), 1);
            pause();
            _exit(0);
        }
        char ready;
        EXPECT_EQ(read(sync[0], &ready, 1), 1);
        const std::string text = printed(child, each.wanted);
        EXPECT_TRUE(std::ranges::all_of(text, [](unsigned char c) { return std::isprint(c) != 0 || c == '\n'; }));
        EXPECT_EQ(text.empty(), each.wanted != UCS_OK);
        ::kill(child, SIGKILL);
        ::close(sync[0]);
        ::close(sync[1]);
        waitpid(child, nullptr, 0);
    }
}

} // namespace
