// Windows of short blocks, which the CPU copies faster than a device follows them. One whose address is known before
// any device is asked cannot become a copied window, so it gets a key.
#include "scenario.h"
#include "transports.h"

#include <ucp_layout.hpp>

#include <algorithm>
#include <vector>

namespace ucxl::two_process
{

namespace
{

constexpr std::size_t rows = 1024, columns = 16;

// A column of a matrix of 8-byte words. The window is mapped without a context first, and kept if it is unmapped.
void exchange_column(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const auto column = ucx_layout::layout::create_strided(8, {{rows, 8 * columns}});
    check(column.has_value(), "ucp_layout_create failed");
    for (const bool is_kept : {false, true}) {
        std::vector<std::uint64_t> matrix(rows * columns);
        auto known = ucx_layout::window::map(nullptr, *column, matrix.data());
        check(known.has_value(), "ucp_layout_map without a context failed");
        void* const address = known->address();
        if (is_kept) {
            const auto ended = std::move(*known);
        }
        const auto mapped = ucx_layout::window::map(context.get(), *column, matrix.data());
        check(mapped.has_value(), "ucp_layout_map gave {}", ucs_status_string(mapped ? UCS_OK : mapped.error()));
        check(is_kept || mapped->address() == address, "the window moved");
        const ucp_request_param_t param{};
        const std::size_t length = rows * 8;
        if (session.plays(0)) {
            for (std::size_t row = 0; row < rows; ++row) {
                matrix[row * columns] = row + 1;
            }
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), mapped->address(), length, 1, &param)), "send");
        } else {
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), mapped->address(), length, 1, UINT64_MAX, &param)),
                     "receive");
            for (std::size_t i = 0; i < matrix.size(); ++i) {
                check(matrix[i] == (i % columns == 0 ? i / columns + 1 : 0), "word {} is {}", i, matrix[i]);
            }
        }
        session.barrier();
    }
    session.close();
}

const scenario exchange("known_windows", exchange_column);

class known_windows : public testing::TestWithParam<setting>
{
};

TEST_P(known_windows, of_short_blocks_can_be_mapped_in_a_context)
{
    EXPECT_PAIR(config_for(GetParam(), "known_windows", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, known_windows,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix"}, {"rc_x", "dc_x"})),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
