#include "port_attributes.h"

#include <infiniband/verbs.h>

#include "device_caps.h"
#include "softhca/shim/sysfs/files.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint8_t polling   = 2; // for a link
constexpr std::uint8_t link_up   = 5;
constexpr std::uint8_t width_4x  = 2;
constexpr std::uint8_t speed_sdr = 1; // without a link
constexpr std::uint8_t speed_ndr = 128;

} // namespace

int port_attributes(device_file& file, std::uint64_t port, ib_uverbs_query_port_resp_ex& response)
{
    if (port != only_port) {
        return EINVAL;
    }
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const function_record function   = file.device.function(file.function);
    const std::uint8_t speed         = function.port_up ? speed_ndr : speed_sdr;
    ib_uverbs_query_port_resp& basic = response.legacy_resp;
    basic.port_cap_flags             = IB_UVERBS_PCF_SYS_IMAGE_GUID_SUP | IB_UVERBS_PCF_EXTENDED_SPEEDS_SUP;
    basic.max_msg_sz                 = 1U << caps.general().get(prm::hca_cap::log_max_msg);
    basic.gid_tbl_len                = gid_table_length;
    basic.pkey_tbl_len               = pkey_table_length;
    basic.lid                        = function.lid;
    basic.sm_lid                     = 1;
    basic.state                      = function.port_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    basic.max_mtu                    = IBV_MTU_4096;
    basic.active_mtu                 = IBV_MTU_4096;
    basic.max_vl_num                 = 1;
    basic.subnet_timeout             = 18;
    basic.active_width               = width_4x;
    basic.active_speed               = speed;
    basic.phys_state                 = function.port_up ? link_up : polling;
    basic.link_layer                 = IBV_LINK_LAYER_INFINIBAND;
    response.active_speed_ex         = speed;
    return 0;
}

} // namespace ucxl::softhca
