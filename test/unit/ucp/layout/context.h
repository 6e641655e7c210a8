// A stock UCP context, optionally with another UCX_TLS than the environment's, or for several threads.
#pragma once

#include <gtest/gtest.h>

#include <ucp_layout.hpp>

namespace ucxl::test
{

class context
{
public:
    explicit context(const char* tls = nullptr, bool for_threads = false)
    {
        ucp_config_t* config;
        EXPECT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
        if (tls != nullptr) {
            EXPECT_EQ(ucp_config_modify(config, "TLS", tls), UCS_OK);
        }
        ucp_params_t params{};
        params.field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
        params.features          = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_STREAM | UCP_FEATURE_AM;
        params.mt_workers_shared = for_threads ? 1 : 0;
        EXPECT_EQ(ucp_init(&params, config, &_handle), UCS_OK);
        ucp_config_release(config);
    }
    context(const context&)            = delete;
    context& operator=(const context&) = delete;
    ~context() { ucp_cleanup(_handle); }

    ucp_context_h get() const { return _handle; }

private:
    ucp_context_h _handle = nullptr;
};

} // namespace ucxl::test
