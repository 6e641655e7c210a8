#include "link.h"

#include "support/check.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace ucxl::soak
{

namespace
{

struct header {
    std::uint32_t what, rank, step, number;
    std::uint64_t first;
};

} // namespace

bool link::tell(const note& told) const
{
    const header head{static_cast<std::uint32_t>(told.what), told.rank, told.step, told.number, told.first};
    std::vector<std::byte> whole(sizeof(head) + told.bytes.size());
    std::memcpy(whole.data(), &head, sizeof(head));
    std::ranges::copy(told.bytes, whole.begin() + sizeof(head));
    ssize_t sent = 0;
    do {
        sent = ::send(_descriptor, whole.data(), whole.size(), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(whole.size());
}

std::optional<note> link::next() const
{
    std::array<std::byte, 65536> whole;
    const ssize_t length = ::recv(_descriptor, whole.data(), whole.size(), MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return std::nullopt;
    }
    header head;
    test::check(length >= static_cast<ssize_t>(sizeof(head)), "the other end of a link is gone");
    std::memcpy(&head, whole.data(), sizeof(head));
    note told{static_cast<word>(head.what), head.rank, head.step, head.number, head.first};
    told.bytes.assign(whole.begin() + sizeof(head), whole.begin() + length);
    return told;
}

} // namespace ucxl::soak
