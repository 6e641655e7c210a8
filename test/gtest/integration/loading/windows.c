/* Sends a window to the own worker and looks at every byte. As a program it ends with 0 if windows work; as a shared
 * library it is what a Python extension is: something that is opened later and brings its own UCX. Prints how
 * ucp_layout_map ended. */
#include <ucp/api/ucp.h>
#include <ucp_layout.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { rows = 50, length = 8, stride = 24 };

static ucs_status_t finish(ucp_worker_h worker, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    const ucs_status_t status = ucp_request_check_status(request);
    ucp_request_free(request);
    return status;
}

static int send_to_self(ucp_context_h context, const void *window, const unsigned char *expected)
{
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_request_param_t param         = {.op_attr_mask = 0};
    unsigned char received[rows * length];
    ucp_address_t *address;
    size_t address_length;
    ucp_worker_h worker;
    ucp_ep_h ep;
    if (ucp_worker_create(context, &worker_params, &worker) != UCS_OK ||
        ucp_worker_get_address(worker, &address, &address_length) != UCS_OK) {
        return 0;
    }
    ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
    if (ucp_ep_create(worker, &ep_params, &ep) != UCS_OK) {
        return 0;
    }
    ucs_status_ptr_t receiving = ucp_tag_recv_nbx(worker, received, sizeof(received), 0, 0, &param);
    const ucs_status_t sent    = finish(worker, ucp_tag_send_nbx(ep, window, sizeof(received), 0, &param));
    const ucs_status_t got     = finish(worker, receiving);
    finish(worker, ucp_ep_close_nbx(ep, &param));
    ucp_worker_release_address(worker, address);
    ucp_worker_destroy(worker);
    return sent == UCS_OK && got == UCS_OK && memcmp(received, expected, sizeof(received)) == 0;
}

/* 0: windows work; 1: they do not; 2: UCX itself does not work. */
int try_windows(void)
{
    unsigned char memory[rows * stride], expected[rows * length];
    for (size_t i = 0; i < sizeof(memory); ++i) {
        memory[i] = (unsigned char)(i * 7);
    }
    for (size_t i = 0; i < sizeof(expected); ++i) {
        expected[i] = memory[i / length * stride + i % length];
    }
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_context_h context;
    if (ucp_init_version(major, minor, &params, NULL, &context) != UCS_OK) {
        return 2;
    }
    ucp_layout_h layout;
    if (ucp_layout_strided(length, rows, stride, &layout) != UCS_OK) {
        return 2;
    }
    void *base                         = memory;
    ucp_layout_map_params_t map_params = {.field_mask =
                                              UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES,
                                          .layout    = layout,
                                          .bases     = &base,
                                          .num_bases = 1};
    ucp_layout_window_h window;
    const ucs_status_t status = ucp_layout_map(context, &map_params, &window);
    printf("map: %d\n", (int)status);
    int result = 1;
    if (status == UCS_OK) {
        ucp_layout_window_attr_t attr = {.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS};
        ucp_layout_window_query(window, &attr);
        result = send_to_self(context, attr.address, expected) ? 0 : 1;
        ucp_layout_unmap(window);
    }
    ucp_layout_destroy(layout);
    ucp_cleanup(context);
    return result;
}

#ifdef AS_PROGRAM
int main(void)
{
    return try_windows();
}
#endif
