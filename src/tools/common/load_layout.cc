#include "load_layout.h"

#include "json_layout.h"
#include "value_of.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace ucxl::tools
{

std::string read_file(const std::string& path)
{
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) {
        give_up("{}: {}", path, errno != 0 ? std::strerror(errno) : "the file is empty");
    }
    return text.str();
}

ucx_layout::layout load_layout(const std::string& text_or_file)
{
    if (text_or_file.starts_with('@')) {
        const std::string path = text_or_file.substr(1);
        try {
            return parse_json_layout(read_file(path));
        } catch (const json_layout_error& error) {
            give_up("{}: {}", path, error.what());
        }
    }
    const held_log log;
    return value_of(ucx_layout::layout::parse(text_or_file.c_str()), log, "");
}

} // namespace ucxl::tools
