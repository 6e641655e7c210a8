// The targets that need no more of the library than its parts.
#include "replay.h"

extern "C" int fuzz_exported_handle(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_layout_wire(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_layout_text(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_layout_algebra(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_pass_board(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_peer_messages(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_prm_command(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_prm_wqe(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_shm_import(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_shm_key(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_command(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_keys(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_queues(const std::uint8_t* data, std::size_t size);
extern "C" int fuzz_softhca_settings(const std::uint8_t* data, std::size_t size);

namespace ucxl::test
{
namespace
{

constexpr replayed_target targets[] = {
    {"exported_handle", fuzz_exported_handle, 2000},
    {"layout_wire", fuzz_layout_wire, 6000},
    {"layout_text", fuzz_layout_text, 4000},
    {"layout_algebra", fuzz_layout_algebra, 3000},
    {"pass_board", fuzz_pass_board, 100},
    {"peer_messages", fuzz_peer_messages, 2000},
    {"prm_command", fuzz_prm_command, 4000},
    {"prm_wqe", fuzz_prm_wqe, 4000},
    {"shm_import", fuzz_shm_import, 1000},
    {"shm_key", fuzz_shm_key, 6000},
    {"softhca_command", fuzz_softhca_command, 300},
    {"softhca_keys", fuzz_softhca_keys, 3000},
    {"softhca_queues", fuzz_softhca_queues, 3000},
    {"softhca_settings", fuzz_softhca_settings, 4000},
};

UCXL_REPLAY(targets);

} // namespace
} // namespace ucxl::test
