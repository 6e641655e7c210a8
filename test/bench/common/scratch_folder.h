// A folder for FIFOs and logs, gone at the end.
#pragma once

#include <string>

namespace ucxl::bench
{

class scratch_folder
{
public:
    // Throws std::runtime_error, as add_fifo() does.
    scratch_folder();
    ~scratch_folder();
    scratch_folder(const scratch_folder&)            = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;

    const std::string& path() const { return _path; }
    std::string add_fifo(const std::string& name);

private:
    std::string _path;
};

} // namespace ucxl::bench
