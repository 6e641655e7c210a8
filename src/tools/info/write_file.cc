#include "write_file.h"

#include "tools/common/failure.h"
#include "tools/common/output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace ucxl::info
{

namespace
{

// 0, or errno.
int write_all(int file, const std::string& bytes)
{
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
        if (written >= 0) {
            done += static_cast<std::size_t>(written);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int close_after(int file, int error)
{
    return close(file) != 0 && error == 0 ? errno : error;
}

// What open(O_CREAT) would give a new file.
mode_t default_mode()
{
    const mode_t hidden = umask(0);
    umask(hidden);
    return 0666 & ~hidden;
}

// A device, a pipe or a socket, which cannot be replaced.
int write_in_place(const std::string& path, const std::string& bytes)
{
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file < 0 ? errno : close_after(file, write_all(file, bytes));
}

int replace(const std::string& path, mode_t mode, const std::string& bytes)
{
    std::string scratch = path + ".XXXXXX";
    const int file      = mkostemp(scratch.data(), O_CLOEXEC);
    if (file < 0) {
        return errno;
    }
    int error = write_all(file, bytes);
    if (error == 0 && fchmod(file, mode) != 0) {
        error = errno;
    }
    error = close_after(file, error);
    if (error == 0 && rename(scratch.c_str(), path.c_str()) != 0) {
        error = errno;
    }
    if (error != 0) {
        unlink(scratch.c_str());
    }
    return error;
}

int write_or_replace(const std::string& path, const std::string& bytes)
{
    struct stat there{};
    if (stat(path.c_str(), &there) != 0) {
        return errno == ENOENT ? replace(path, default_mode(), bytes) : errno;
    }
    if (!S_ISREG(there.st_mode)) {
        return write_in_place(path, bytes);
    }
    // Where the folder may be written but not the file, rename() would replace it all the same.
    if (access(path.c_str(), W_OK) != 0) {
        return errno;
    }
    // The file itself and not a link to it.
    std::error_code unresolved;
    const std::filesystem::path file = std::filesystem::canonical(path, unresolved);
    return unresolved ? unresolved.value() : replace(file, there.st_mode & 07777, bytes);
}

} // namespace

void write_file(const std::string& path, const std::string& bytes)
{
    if (const int error = write_or_replace(path, bytes); error != 0) {
        tools::give_up("{}: {}", path, std::strerror(error));
    }
}

void print(const std::string& text)
{
    std::fwrite(text.data(), 1, text.size(), stdout);
    tools::flush_output();
}

} // namespace ucxl::info
