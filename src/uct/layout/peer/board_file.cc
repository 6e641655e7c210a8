#include "board_file.h"

#include "sys/memory_file.h"

#include <exception>
#include <format>
#include <fstream>
#include <limits>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace ucxl
{

namespace
{

constexpr const char* file_name = "ucx_layout_board";

} // namespace

result<std::unique_ptr<board_file>> board_file::create()
{
    std::unique_ptr<board_file> created(new board_file);
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    created->_file      = UCXL_TRY(make_memory_file(file_name, sizeof(pass_board), seals));
    created->_pages =
        UCXL_TRY(owned_mapping::map(sizeof(pass_board), PROT_READ | PROT_WRITE, MAP_SHARED, created->_file.get(), 0));
    struct stat status{};
    if (fstat(created->_file.get(), &status) != 0) {
        return fail_errno("the file of shared passes");
    }
    created->_inode = status.st_ino;
    return created;
}

result<peer_board> peer_board::open(pid_t owner, const board_place& place)
{
    if (place.magic != board_place::form || place.fd < 0 || place.fd > std::numeric_limits<int>::max()) {
        return fail(errc::invalid_param, "the process has no board");
    }
    const auto file = UCXL_TRY(peer_file::open(owner, static_cast<int>(place.fd), place.inode, O_RDWR));
    return peer_board(owner, place, UCXL_TRY(map_peer_memory(file, 0, sizeof(pass_board))));
}

// A process that has ended, or whose first thread has, shows no mappings at all.
bool peer_board::has_left_owner() const noexcept
{
    try {
        std::ifstream mappings(std::format("/proc/{}/maps", _owner));
        const std::string inode = std::format(" {} ", _place.inode);
        bool has_any            = false;
        for (std::string line; std::getline(mappings, line); has_any = true) {
            if (line.contains(file_name) && line.contains(inode)) {
                return false;
            }
        }
        return has_any && mappings.eof();
    } catch (const std::exception&) {
        return false;
    }
}

} // namespace ucxl
