// Memory that this program and the peers it measures see, so that they move the same bytes between the same pages.
#pragma once

#include <cstddef>
#include <string>

namespace ucxl::bench
{

class shared_memory
{
public:
    // All pages are there. Throws std::system_error.
    explicit shared_memory(std::size_t length);
    // That of another process, by its path().
    shared_memory(const std::string& path, std::size_t length);
    ~shared_memory();
    shared_memory(const shared_memory&)            = delete;
    shared_memory& operator=(const shared_memory&) = delete;

    std::byte* data() const { return _data; }
    std::size_t length() const { return _length; }
    // For as long as this process lives.
    std::string path() const;

private:
    void map();

    int _file;
    std::size_t _length;
    std::byte* _data = nullptr;
};

} // namespace ucxl::bench
