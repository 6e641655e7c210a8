#include "files.h"

#include <sys/sysmacros.h>

#include <array>
#include <format>
#include <string_view>

#include "live_files.h"
#include "softhca/core/arena/limits.h"

namespace ucxl::softhca
{

namespace
{

constexpr unsigned uverbs_major = 231;
constexpr unsigned uverbs_minor = 192;

// A PCI domain that no machine has.
constexpr std::string_view pci_domain = "5fca";

std::string guid_text(std::uint64_t guid)
{
    return std::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                       guid & 0xffff);
}

class file_list
{
public:
    void file(const std::string& path, std::string_view text)
    {
        _files.push_back({.path = path, .kind = sysfs_kind::file, .text = std::string(text) + "\n"});
    }

    void link(const std::string& path, const std::string& target)
    {
        _files.push_back({.path = path, .kind = sysfs_kind::link, .text = target});
    }

    void directory(const std::string& path)
    {
        _files.push_back({.path = path, .kind = sysfs_kind::directory, .text = {}});
    }

    void device(const std::string& path, dev_t number)
    {
        _files.push_back({.path = path, .kind = sysfs_kind::device, .text = {}, .number = number});
    }

    void live(const std::string& path, sysfs_value value)
    {
        _files.push_back({.path = path, .kind = sysfs_kind::file, .text = {}, .value = value});
    }

    // The files added since then are those of a function.
    void belong(std::size_t first, function_id function)
    {
        for (std::size_t i = first; i < _files.size(); ++i) {
            _files[i].function = function;
        }
    }

    std::size_t size() const { return _files.size(); }

    std::vector<sysfs_file> take() { return std::move(_files); }

private:
    std::vector<sysfs_file> _files;
};

void add_pci_function(file_list& list, const std::string& pci)
{
    list.file(pci + "/vendor", "0x15b3");
    list.file(pci + "/device", "0x1021");
    list.file(pci + "/subsystem_vendor", "0x15b3");
    list.file(pci + "/subsystem_device", "0x0041");
    list.file(pci + "/class", "0x020700");
    list.file(pci + "/revision", "0x00");
    list.file(pci + "/modalias", "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00");
    list.file(pci + "/numa_node", "-1");
    list.file(pci + "/current_link_speed", "32.0 GT/s PCIe");
    list.file(pci + "/current_link_width", "16");
    list.file(pci + "/max_link_speed", "32.0 GT/s PCIe");
    list.file(pci + "/max_link_width", "16");
}

void add_port(file_list& list, const std::string& port, const function_record& function)
{
    list.file(port + "/lid_mask_count", "0");
    list.file(port + "/sm_lid", "0x1");
    list.file(port + "/sm_sl", "0");
    for (const live_file& each : port_files()) {
        list.live(port + "/" + each.path, each.value);
    }
    list.file(port + "/hw_counters/lifespan", "10");
    list.file(port + "/cap_mask", "0xa651e848");
    list.file(port + "/link_layer", "InfiniBand");
    list.file(port + "/has_smi", "0");
    for (unsigned i = 0; i < gid_table_length; i++) {
        const std::uint64_t prefix = i == 0 ? default_gid_prefix : 0;
        const std::uint64_t guid   = i == 0 ? function.port_guid : 0;
        list.file(std::format("{}/gids/{}", port, i), guid_text(prefix) + ":" + guid_text(guid));
        list.file(std::format("{}/gid_attrs/types/{}", port, i), "IB/RoCE v1");
    }
    list.directory(port + "/gid_attrs/ndevs");
    if (function.netdev[0] != 0) {
        list.file(port + "/gid_attrs/ndevs/0", function.netdev.data());
    }
    for (unsigned i = 0; i < pkey_table_length; i++) {
        list.file(std::format("{}/pkeys/{}", port, i), std::format("{:#06x}", i == 0 ? default_pkey : 0));
    }
}

void add_function(file_list& list, unsigned number, const sysfs_function& function)
{
    const std::string domain   = std::format("/sys/devices/pci{}:00", pci_domain);
    const std::string bus      = std::format("{}:{:02x}:{:02x}.{}", pci_domain, 0, number / 8, number % 8);
    const std::string pci      = domain + "/" + bus;
    const std::string ibdev    = std::format("mlx5_{}", number);
    const std::string uverbs   = std::format("uverbs{}", number);
    const std::string verbs    = pci + "/infiniband_verbs/" + uverbs;
    const std::string verbs_up = std::format("../../devices/pci{}:00/{}", pci_domain, bus);
    const std::string device   = pci + "/infiniband/" + ibdev;

    list.directory(domain);
    const std::size_t first = list.size();
    list.directory(pci);
    add_pci_function(list, pci);
    list.link("/sys/bus/pci/devices/" + bus, std::format("../../../devices/pci{}:00/{}", pci_domain, bus));

    list.file(device + "/node_type", "1: CA");
    list.file(device + "/node_guid", guid_text(function.record.node_guid));
    list.file(device + "/sys_image_guid", guid_text(function.record.image_guid));
    list.file(device + "/node_desc", "softhca " + ibdev);
    list.file(device + "/fw_ver", function.firmware);
    list.file(device + "/hw_rev", "0");
    list.file(device + "/hca_type", "MT4129");
    list.file(device + "/board_id", "SOFTHCA0000001");
    list.link(device + "/device", "../../../" + bus);
    add_port(list, device + "/ports/1", function.record);
    list.link("/sys/class/infiniband/" + ibdev, verbs_up + "/infiniband/" + ibdev);

    const dev_t device_number = uverbs_device_number(number);
    list.file(verbs + "/ibdev", ibdev);
    list.file(verbs + "/dev", std::format("{}:{}", major(device_number), minor(device_number)));
    list.file(verbs + "/abi_version", "1");
    list.link(verbs + "/device", "../../../" + bus);
    list.link("/sys/class/infiniband_verbs/" + uverbs, verbs_up + "/infiniband_verbs/" + uverbs);
    list.device("/dev/infiniband/" + uverbs, device_number);
    list.belong(first, static_cast<function_id>(number));
}

} // namespace

dev_t uverbs_device_number(unsigned number)
{
    return makedev(uverbs_major, uverbs_minor + number);
}

bool may_name_ours(std::string_view path)
{
    return path.contains("infiniband") || path.contains(pci_domain);
}

std::vector<sysfs_file> sysfs_files(const std::vector<sysfs_function>& functions)
{
    file_list list;
    list.directory("/sys/class/infiniband");
    list.directory("/sys/class/infiniband_verbs");
    list.directory("/sys/class/infiniband_mad");
    list.directory("/dev/infiniband");
    list.file("/sys/class/infiniband_verbs/abi_version", "6");
    list.file("/sys/class/infiniband_mad/abi_version", "5");
    for (unsigned i = 0; i < functions.size(); i++) {
        add_function(list, i, functions[i]);
    }
    return list.take();
}

} // namespace ucxl::softhca
