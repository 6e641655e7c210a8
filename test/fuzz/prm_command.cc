// Any bytes as a command's two mailboxes: complete lines of text, no longer than a bound in the number of bytes.
#include "fuzz_target.h"

#include "prm/decode.h"

#include <span>

using namespace ucxl;
using fuzz::require;

UCXL_FUZZ_TARGET(prm_command)
{
    if (size < 2) {
        return 0;
    }
    const auto bytes = std::as_bytes(std::span(data, size));
    // The first two bytes say where the answer begins.
    const auto mailboxes   = bytes.subspan(2);
    const std::size_t in   = (data[0] * std::size_t{256} + data[1]) % (mailboxes.size() + 1);
    const std::string text = prm::decode_command(mailboxes.first(in), mailboxes.subspan(in));
    require(!text.empty() && text.back() == '\n', "text is complete lines");
    require(text.size() < 4096 + 200 * size, "text grows with the bytes");
    return 0;
}
