#include "lay_shm_fixture.h"

#include "uct/layout/init.h"

namespace ucxl::test
{

void host_transport_test::SetUp()
{
    uct_layout_init();
    uct_md_config_t* md_config;
    ASSERT_EQ(UCS_OK, uct_md_config_read(&_component, nullptr, nullptr, &md_config));
    ASSERT_EQ(UCS_OK, uct_md_open(&_component, _name, md_config, &md));
    uct_config_release(md_config);
    ASSERT_EQ(UCS_OK, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &_async));
    ASSERT_EQ(UCS_OK, uct_worker_create(_async, UCS_THREAD_MODE_SINGLE, &_worker));
    uct_iface_config_t* config;
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(md, _name, nullptr, nullptr, &config));
    uct_iface_params_t params;
    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = _name;
    params.mode.device.dev_name = _name;
    ASSERT_EQ(UCS_OK, uct_iface_open(md, _worker, &params, config, &iface));
    uct_config_release(config);
    uct_ep_params_t ep_params;
    const auto address   = process_identity::own();
    ep_params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_IFACE_ADDR | UCT_EP_PARAM_FIELD_DEV_ADDR;
    ep_params.iface      = iface;
    ep_params.iface_addr = reinterpret_cast<const uct_iface_addr_t*>(&address);
    ep_params.dev_addr   = nullptr;
    ASSERT_EQ(UCS_OK, uct_ep_create(&ep_params, &ep));
}

void host_transport_test::TearDown()
{
    uct_ep_destroy(ep);
    uct_iface_close(iface);
    uct_worker_destroy(_worker);
    ucs_async_context_destroy(_async);
    uct_md_close(md);
    EXPECT_EQ(count_imports().windows, 0u) << "the last interface unmaps everything";
}

} // namespace ucxl::test
