#include "uct_iface_fixture.h"

#include "uct/layout/init.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace ucxl::test
{

std::vector<uct_component_h> layout_components()
{
    std::vector<uct_component_h> found;
    uct_component_h* components;
    unsigned num_components = 0;
    EXPECT_EQ(UCS_OK, uct_query_components(&components, &num_components));
    for (unsigned i = 0; i < num_components; ++i) {
        uct_component_attr_t attr;
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        EXPECT_EQ(UCS_OK, uct_component_query(components[i], &attr));
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
    uct_md_config_t* config;
    ASSERT_EQ(UCS_OK, uct_md_config_read(component, nullptr, nullptr, &config));
    ASSERT_EQ(UCS_OK, uct_md_open(component, "layout", config, &md));
    uct_config_release(config);
    open_iface();
}

void uct_iface_test::open_iface()
{
    ASSERT_EQ(UCS_OK, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &_async));
    ASSERT_EQ(UCS_OK, uct_worker_create(_async, UCS_THREAD_MODE_SINGLE, &_worker));
    uct_iface_config_t* config;
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(md, "lay_copy", nullptr, nullptr, &config));
    uct_iface_params_t params;
    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = "lay_copy";
    params.mode.device.dev_name = "layout";
    ASSERT_EQ(UCS_OK, uct_iface_open(md, _worker, &params, config, &iface));
    uct_config_release(config);
    std::uint64_t address;
    ASSERT_EQ(UCS_OK, uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t*>(&address)));
    uct_ep_params_t ep_params;
    ep_params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR | UCT_EP_PARAM_FIELD_DEV_ADDR;
    ep_params.iface      = iface;
    ep_params.iface_addr = reinterpret_cast<const uct_iface_addr_t*>(&address);
    ep_params.dev_addr   = nullptr;
    ASSERT_EQ(UCS_OK, uct_ep_create(&ep_params, &ep));
}

void uct_iface_test::TearDown()
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
