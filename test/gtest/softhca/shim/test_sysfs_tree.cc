// The files in which libibverbs, libmlx5 and UCX look for devices, read as they read them.
#include <gtest/gtest.h>

#include <sys/sysmacros.h>

#include "softhca/shim/sysfs/tree.h"

namespace ucxl::softhca::test
{
namespace
{

sysfs_tree make_tree(unsigned functions)
{
    std::vector<sysfs_function> all(functions);
    for (unsigned i = 0; i < functions; i++) {
        all[i].firmware         = "28.99.0001";
        all[i].record.lid       = static_cast<std::uint16_t>(0x10 + i);
        all[i].record.port_guid = 0x0123456789abcd00 + i;
        all[i].record.node_guid = 0xfedcba9876543200 + i;
    }
    return sysfs_tree(all);
}

std::string text_at(const sysfs_tree& tree, std::string_view path)
{
    const sysfs_node* const node = tree.find(path);
    return node == nullptr ? "no such file" : node->kind == sysfs_kind::file ? node->text : "not a file";
}

TEST(sysfs_tree, what_libibverbs_reads_to_find_devices)
{
    const sysfs_tree tree = make_tree(2);
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband_verbs/abi_version"), "6\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband_verbs/uverbs1/ibdev"), "mlx5_1\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband_verbs/uverbs1/dev"), "231:193\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband_verbs/uverbs1/abi_version"), "1\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_0/node_type"), "1: CA\n");
    EXPECT_TRUE(text_at(tree, "/sys/class/infiniband/mlx5_0/device/modalias").starts_with("pci:v000015B3d00001021sv"));
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_1/node_guid"), "fedc:ba98:7654:3201\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_1/ports/1/gids/0"),
              "fe80:0000:0000:0000:0123:4567:89ab:cd01\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_1/ports/1/gids/1"),
              "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_0/ports/1/pkeys/0"), "0xffff\n");

    const sysfs_node* const device = tree.find("/dev/infiniband/uverbs1");
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->kind, sysfs_kind::device);
    EXPECT_EQ(major(device->number), 231u);
    EXPECT_EQ(minor(device->number), 193u);
}

// As rdma-core and UCX's tests look for the addresses of a port.
TEST(sysfs_tree, a_port_shows_the_network_interface_that_belongs_to_it)
{
    sysfs_function with;
    with.record.netdev = {"eth0"};
    const sysfs_tree tree({with, sysfs_function{}});
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"), "eth0\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1"), "no such file");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0"), "no such file");
}

TEST(sysfs_tree, what_ucx_reads_to_place_a_device)
{
    const sysfs_tree tree = make_tree(1);
    const auto real       = tree.real_path("/sys/class/infiniband/mlx5_0");
    ASSERT_TRUE(real);
    EXPECT_EQ(*real, "/sys/devices/pci5fca:00/5fca:00:00.0/infiniband/mlx5_0");
    EXPECT_EQ(*tree.real_path("/sys/class/infiniband/mlx5_0/device"), "/sys/devices/pci5fca:00/5fca:00:00.0");
    EXPECT_EQ(text_at(tree, *real + "/../../vendor"), "0x15b3\n");
    EXPECT_EQ(text_at(tree, "/sys/bus/pci/devices/5fca:00:00.0/numa_node"), "-1\n");
    EXPECT_EQ(text_at(tree, "/sys/class/infiniband/mlx5_0/device/current_link_width"), "16\n");
    EXPECT_EQ(tree.real_path("/sys/class/infiniband/mlx5_9"), std::nullopt);
}

TEST(sysfs_tree, the_rest_of_the_file_system_is_left_alone)
{
    const sysfs_tree tree = make_tree(1);
    for (const char* path : {"/", "/sys", "/sys/class", "/sys/class/net", "/sys/devices", "/sys/bus/pci/devices",
                             "/sys/bus/pci/devices/0000:00:00.0", "/dev", "/dev/null", "/etc/passwd", "", "relative",
                             "/sys/class/infinibandx", "/sys/class/infiniband/../net"}) {
        EXPECT_FALSE(tree.covers(path)) << path;
        EXPECT_EQ(tree.find(path), nullptr) << path;
    }
    for (const char* path : {"/sys/class/infiniband", "//sys//class/./infiniband/", "/sys/class/infiniband/mlx5_7",
                             "/sys/class/infiniband_verbs/uverbs0/nothing", "/dev/infiniband",
                             "/dev/infiniband/rdma_cm", "/sys/class/net/../infiniband/mlx5_0"}) {
        EXPECT_EQ(tree.covers(path), std::string_view(path) != "/sys/class/net/../infiniband/mlx5_0") << path;
    }
    EXPECT_EQ(tree.find("/dev/infiniband/rdma_cm"), nullptr);
}

TEST(sysfs_tree, the_last_link_is_followed_or_not_as_asked)
{
    const sysfs_tree tree          = make_tree(1);
    const sysfs_node* const link   = tree.find("/sys/class/infiniband/mlx5_0", false);
    const sysfs_node* const target = tree.find("/sys/class/infiniband/mlx5_0", true);
    ASSERT_NE(link, nullptr);
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(link->kind, sysfs_kind::link);
    EXPECT_EQ(link->text, "../../devices/pci5fca:00/5fca:00:00.0/infiniband/mlx5_0");
    EXPECT_EQ(target->kind, sysfs_kind::directory);
    EXPECT_TRUE(target->children.contains("ports"));
}

class changing_device : public sysfs_source
{
public:
    bool present(function_id function) const override { return function != gone; }
    std::string text(function_id function, sysfs_value value) const override
    {
        return std::to_string(function) + (value == sysfs_value::state ? state : " other\n");
    }

    function_id gone  = no_function;
    std::string state = " up\n";
};

TEST(sysfs_tree, what_changes_is_asked_anew)
{
    changing_device device;
    const sysfs_tree tree(std::vector<sysfs_function>(2), &device);
    const std::string port = "/sys/class/infiniband/mlx5_1/ports/1/";
    const auto text        = [&](const std::string& name) { return tree.text_of(*tree.find(port + name)); };
    EXPECT_EQ(text("state"), "1 up\n");
    device.state = " down\n";
    EXPECT_EQ(text("state"), "1 down\n");
    EXPECT_EQ(text("counters/port_xmit_data"), "1 other\n");
    EXPECT_EQ(text("hw_counters/out_of_sequence"), "1 other\n");
    EXPECT_EQ(text("hw_counters/lifespan"), "10\n");
    EXPECT_EQ(text("link_layer"), "InfiniBand\n");
}

TEST(sysfs_tree, a_device_that_is_gone_has_no_files)
{
    changing_device device;
    const sysfs_tree tree(std::vector<sysfs_function>(2), &device);
    const char* const files[] = {"/sys/class/infiniband/mlx5_1", "/sys/class/infiniband_verbs/uverbs1",
                                 "/dev/infiniband/uverbs1", "/sys/bus/pci/devices/5fca:00:00.1",
                                 "/sys/devices/pci5fca:00/5fca:00:00.1/infiniband/mlx5_1/ports/1/state"};
    for (const char* const path : files) {
        EXPECT_NE(tree.find(path), nullptr) << path;
    }
    device.gone = 1;
    for (const char* const path : files) {
        EXPECT_EQ(tree.find(path), nullptr) << path;
    }
    EXPECT_NE(tree.find("/sys/class/infiniband/mlx5_0/ports/1/state"), nullptr);
    EXPECT_TRUE(tree.present(*tree.find("/sys/class/infiniband")));
}

TEST(sysfs_tree, eight_functions_share_a_pci_device)
{
    const sysfs_tree tree = make_tree(9);
    EXPECT_EQ(*tree.real_path("/sys/class/infiniband/mlx5_7/device"), "/sys/devices/pci5fca:00/5fca:00:00.7");
    EXPECT_EQ(*tree.real_path("/sys/class/infiniband/mlx5_8/device"), "/sys/devices/pci5fca:00/5fca:00:01.0");
}

} // namespace
} // namespace ucxl::softhca::test
