#include "uct_iface_fixture.h"

#include "support/check.h"
#include "uct/layout/init.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace ucxl::test
{

std::vector<uct_component_h> layout_components()
{
    std::vector<uct_component_h> found;
    uct_component_h* components = nullptr;
    unsigned num_components     = 0;
    check_ok(uct_query_components(&components, &num_components), "uct_query_components");
    for (unsigned i = 0; i < num_components; ++i) {
        uct_component_attr_t attr;
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        check_ok(uct_component_query(components[i], &attr), "uct_component_query");
        if (std::strcmp(attr.name, "layout") == 0) {
            found.push_back(components[i]);
        }
    }
    uct_release_component_list(components);
    return found;
}

void uct_iface_test::SetUp()
{
    uct_layout_init();
    const auto found = layout_components();
    ASSERT_EQ(found.size(), 1u);
    component = found.front();
    open_transport(component, "layout", "lay_copy");
}

void transport_test::open_transport(uct_component_h component, const char* device, const char* transport)
{
    uct_layout_init();
    uct_md_config_t* md_config;
    ASSERT_EQ(UCS_OK, uct_md_config_read(component, nullptr, nullptr, &md_config));
    ASSERT_EQ(UCS_OK, uct_md_open(component, device, md_config, &md));
    uct_config_release(md_config);
    ASSERT_EQ(UCS_OK, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &_async));
    ASSERT_EQ(UCS_OK, uct_worker_create(_async, UCS_THREAD_MODE_SINGLE, &_worker));
    uct_iface_config_t* config;
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(md, transport, nullptr, nullptr, &config));
    uct_iface_params_t params;
    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = transport;
    params.mode.device.dev_name = device;
    ASSERT_EQ(UCS_OK, uct_iface_open(md, _worker, &params, config, &iface));
    uct_config_release(config);
    uct_iface_attr_t attr;
    ASSERT_EQ(UCS_OK, uct_iface_query(iface, &attr));
    std::vector<std::byte> address(attr.iface_addr_len);
    ASSERT_EQ(UCS_OK, uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t*>(address.data())));
    uct_ep_params_t ep_params;
    ep_params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR | UCT_EP_PARAM_FIELD_DEV_ADDR;
    ep_params.iface      = iface;
    ep_params.iface_addr = reinterpret_cast<const uct_iface_addr_t*>(address.data());
    ep_params.dev_addr   = nullptr;
    ASSERT_EQ(UCS_OK, uct_ep_create(&ep_params, &ep));
}

void transport_test::TearDown()
{
    if (ep != nullptr) {
        uct_ep_destroy(ep);
    }
    if (iface != nullptr) {
        uct_iface_close(iface);
    }
    if (_worker != nullptr) {
        uct_worker_destroy(_worker);
    }
    if (_async != nullptr) {
        ucs_async_context_destroy(_async);
    }
    if (md != nullptr) {
        uct_md_close(md);
    }
}

} // namespace ucxl::test
