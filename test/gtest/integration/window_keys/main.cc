// main() of the tests of windows with keys that look into the software device while they use it.
#include "dpu.h"
#include "export_survivor.h"
#include "lost_device.h"

#include "support/run_tests.h"
#include "support/software_device.h"

#include <cstdlib>
#include <string_view>

int main(int argc, char** argv)
{
    setenv("SOFTHCA_FUNCTIONS", "2", 1); // the second one is that of a DPU
    ucxl::test::use_shared_software_device(SOFTHCA_RUN, argv);
    setenv("UCX_NET_DEVICES", ucxl::test::host_device, 0);
    setenv("UCX_IB_RX_QUEUE_LEN", "64", 1); // tests make many peers, and each clears the memory of its receive queues
    setenv("UCX_RNDV_THRESH", "0", 1);      // long and short messages go by the keys
    setenv("UCX_LAYOUT_KEYS_WINDOWS", "keys", 1);
    setenv("UCX_LAYOUT_KEYS_SPARE", "2", 1);        // so that keys are also made when a window needs one
    setenv("UCX_LAYOUT_KEYS_EXPORT_SPARE", "0", 0); // no thread uses the device beside a test
    if (argc == 6 && std::string_view(argv[1]) == "--share") {
        ucxl::test::share({.role       = argv[2],
                           .num_killed = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)),
                           .rounds     = static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10)),
                           .seed       = std::strtoull(argv[5], nullptr, 10)});
    }
    if (argc == 4 && std::string_view(argv[1]) == "--lose-device") {
        if (argv[3] == std::string_view("import")) {
            ucxl::test::lose_device_of_imports(argv[2]);
        }
        ucxl::test::lose_device(argv[2], argv[3]);
    }
    return ucxl::test::run_tests(argc, argv);
}
