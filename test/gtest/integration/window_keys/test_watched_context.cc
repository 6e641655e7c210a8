// What contexts get that want windows only where a card carries them, when there is a card.
#include "support/check.h"
#include "support/log_guard.h"
#include "support/ucp.h"

#include <ucp_layout.hpp>

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

constexpr unsigned flags = UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT | UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS;

unsigned choose(const void* /*caller*/, void* /*arg*/)
{
    return flags;
}

void keep_flags(ucp_context_h /*context*/, unsigned flags_of_context, void* kept)
{
    *static_cast<unsigned*>(kept) = flags_of_context;
}

class watched_context : public ucx_test
{
protected:
    watched_context()
    {
        ucp_layout_context_watch_params_t params{};
        params.field_mask = UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE | UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE |
                            UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_ARG;
        params.choose = choose;
        params.made   = keep_flags;
        params.arg    = &_flags;
        check_ok(ucp_layout_context_watch(&params), "ucp_layout_context_watch");
    }
    ~watched_context() override { ucp_layout_context_watch(nullptr); }

    unsigned _flags = 0;
};

TEST_F(watched_context, has_windows_for_a_card)
{
    for (const char* const tls : {"all", "rc_x", "^tcp"}) {
        const context used(tls);
        EXPECT_EQ(ucx_layout::carrier_in(used.get()).value(), UCP_LAYOUT_CARRIER_KEYS) << tls;
        EXPECT_EQ(_flags, UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT) << tls;
    }
}

} // namespace
} // namespace ucxl::test
