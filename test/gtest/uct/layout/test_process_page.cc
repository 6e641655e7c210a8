#include "support/forked_process.h"
#include "sys/fd.h"
#include "uct/layout/base/process_page.h"

#include <fcntl.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

// As in a program that closes all descriptors, also those that it did not open.
TEST(process_page, closes_no_other_file_that_has_its_descriptor_in_a_child)
{
    EXPECT_TRUE(holds_in_child([] {
        const int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(next);
        const bool is_made = make_process_page("ucx_layout_test", 4096) != nullptr && fcntl(next, F_GETFD) >= 0;
        const owned_fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
        return is_made && dup3(other.get(), next, O_CLOEXEC) == next &&
               holds_in_child([&] { return fcntl(next, F_GETFD) >= 0; });
    }));
}

TEST(process_page, is_not_shown_by_a_child)
{
    EXPECT_TRUE(holds_in_child([] {
        const int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(next);
        return make_process_page("ucx_layout_test", 4096) != nullptr && fcntl(next, F_GETFD) >= 0 &&
               holds_in_child([&] { return fcntl(next, F_GETFD) < 0; });
    }));
}

} // namespace
