/* What programs on stock UCP begin with: a context and a worker of this process, and waiting. Any failure ends the
 * program and says who failed.
 */
#ifndef STOCK_UCP_H_
#define STOCK_UCP_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

static const char* who = "";
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_request_param_t none; /* stays zero */

static inline void require(int holds, const char* what)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", who, what);
        exit(1);
    }
}

static inline void done(ucs_status_t status, const char* what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s: %s\n", who, what, ucs_status_string(status));
        exit(1);
    }
}

static inline void wait_for(ucs_status_ptr_t request, const char* what)
{
    ucs_status_t status = UCS_PTR_STATUS(request);

    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
    done(status, what);
}

/* device: of the network, or NULL for those that UCX finds. */
static inline void start_ucp(uint64_t features, const char* device)
{
    ucp_worker_params_t worker_params;
    ucp_params_t params;
    ucp_config_t* config;
    unsigned major, minor, release;

    worker_params.field_mask = 0;
    params.field_mask        = UCP_PARAM_FIELD_FEATURES;
    params.features          = features;
    done(ucp_config_read(NULL, NULL, &config), "configuration");
    if (device != NULL) {
        done(ucp_config_modify(config, "NET_DEVICES", device), "device");
    }
    ucp_get_version(&major, &minor, &release); /* it may be older than the one of the compiler's headers */
    done(ucp_init_version(major, minor, &params, config, &context), "ucp_init");
    ucp_config_release(config);
    done(ucp_worker_create(context, &worker_params, &worker), "worker");
}

/* Of registered memory. */
static inline ucp_mem_h map(void* memory, size_t length)
{
    ucp_mem_map_params_t params;
    ucp_mem_h memh;

    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = memory;
    params.length     = length;
    done(ucp_mem_map(context, &params, &memh), "map");
    return memh;
}

/* The peer makes progress meanwhile: a connection takes both. */
static inline ucp_ep_h connect_to_worker(const void* address)
{
    ucp_ep_params_t params;
    ucp_ep_h endpoint;

    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = (const ucp_address_t*)address;
    done(ucp_ep_create(worker, &params, &endpoint), "endpoint");
    wait_for(ucp_ep_flush_nbx(endpoint, &none), "connection");
    return endpoint;
}

#endif
