#include "scratch_folder.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace ucxl::bench
{

scratch_folder::scratch_folder() : _path((std::filesystem::temp_directory_path() / "bench-XXXXXX").string())
{
    if (mkdtemp(_path.data()) == nullptr) {
        throw std::runtime_error("mkdtemp");
    }
}

scratch_folder::~scratch_folder()
{
    std::error_code unimportant;
    std::filesystem::remove_all(_path, unimportant);
}

std::string scratch_folder::add_fifo(const std::string& name)
{
    std::string made = _path + "/" + name;
    if (mkfifo(made.c_str(), 0600) != 0) {
        throw std::runtime_error("mkfifo " + made);
    }
    return made;
}

} // namespace ucxl::bench
