// Remote atomics on memory allocated under a window of one block. Stock UCX lets its target do them in software, at the
// window's address.
#include "remote_words.h"
#include "scenario.h"
#include "transports.h"

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

namespace
{

ucx_layout::window allocate_words(session& session)
{
    const auto layout =
        ucx_layout::layout::create_contig(num_words, {.length = sizeof(std::uint64_t), .layout = nullptr});
    check(layout.has_value(), "ucp_layout_create failed");
    auto window = ucx_layout::window::allocate(session.context(), *layout);
    check(window.has_value(), "ucp_layout_map with ALLOCATE failed");
    return std::move(*window);
}

void atomics(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    auto words = initial_words();
    if (arguments.plays(1)) {
        const auto window = allocate_words(session);
        void* base        = nullptr;
        check_ok(window.bases({&base, 1}), "ucp_layout_window_bases");
        std::memcpy(base, words.data(), sizeof(words));
        bytes key;
        append_key(key, session.context(), window.memh(), window.address());
        session.exchange(key);
        session.barrier();
        session.close();
        check_ok(window.bases({&base, 1}), "ucp_layout_window_bases");
        const bytes wanted = session.exchange({});
        check(wanted.size() == sizeof(words), "no words to compare with");
        check(std::memcmp(base, wanted.data(), sizeof(words)) == 0,
              "the words are not what the operations make of them");
        check(std::memcmp(window.address(), base, sizeof(words)) == 0, "the window does not show its memory");
        return;
    }
    const bytes key                    = session.exchange({});
    std::span<const std::byte> payload = key;
    {
        const remote_key remote(session.endpoint(), payload);
        apply(session, remote, words);
    }
    session.barrier();
    session.close();
    session.exchange(std::as_bytes(std::span(words)));
}

const scenario atomic_operations("atomics", atomics);

class remote_atomics : public testing::TestWithParam<setting>
{
};

TEST_P(remote_atomics, work_on_an_allocated_window_of_one_block)
{
    EXPECT_PAIR(config_for(GetParam(), "atomics", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, remote_atomics,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "sysv", "tcp"})),
                                          both_protocols()),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
