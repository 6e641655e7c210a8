#include "device_caps.h"

namespace ucxl::softhca
{

int device_caps::query(device_file& file, prm::cap_page page)
{
    mailbox<prm::query_hca_cap_in> input(prm::command::query_hca_cap);
    input.set(prm::query_hca_cap_in::op_mod, std::to_underlying(page) << 1 | prm::cap_current);
    return file.run(input, _out);
}

} // namespace ucxl::softhca
