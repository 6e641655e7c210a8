#include "nixl/outcome.h"

#include <gtest/gtest.h>

using namespace ucxl::nixl;

TEST(outcome, only_ok_is_success_and_only_in_progress_goes_on)
{
    for (int status = UCS_ERR_LAST; status <= UCS_INPROGRESS; ++status) {
        const auto found = outcome_of(static_cast<ucs_status_t>(status));
        EXPECT_EQ(found == outcome::success, status == UCS_OK) << status;
        EXPECT_EQ(found == outcome::in_progress, status == UCS_INPROGRESS) << status;
    }
}

TEST(outcome, a_peer_that_is_gone_is_disconnected)
{
    for (const auto status : {UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_NOT_CONNECTED}) {
        EXPECT_EQ(outcome_of(status), outcome::disconnected) << ucs_status_string(status);
    }
}

TEST(outcome, what_the_caller_did_wrong_is_no_failure_of_the_backend)
{
    EXPECT_EQ(outcome_of(UCS_ERR_INVALID_PARAM), outcome::invalid_parameter);
    EXPECT_EQ(outcome_of(UCS_ERR_OUT_OF_RANGE), outcome::invalid_parameter);
    EXPECT_EQ(outcome_of(UCS_ERR_NO_ELEM), outcome::not_found);
    EXPECT_EQ(outcome_of(UCS_ERR_NO_MEMORY), outcome::backend);
}
