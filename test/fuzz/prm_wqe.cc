// Any bytes as a send WQE, a receive WQE, a completion and an event: segments in order and inside the bytes, complete
// lines of text, no longer than a bound in the number of bytes.
#include "fuzz_target.h"

#include "prm/decode.h"
#include "prm/send_wqe.h"

#include <span>

using namespace ucxl;
using fuzz::require;

namespace
{

void check(const std::string& text, std::size_t size)
{
    require(!text.empty() && text.back() == '\n', "text is complete lines");
    require(text.size() < 4096 + 200 * size, "text grows with the bytes");
}

} // namespace

UCXL_FUZZ_TARGET(prm_wqe)
{
    if (size < 1) {
        return 0;
    }
    const auto bytes   = std::as_bytes(std::span(data, size)).subspan(1);
    const auto service = static_cast<prm::qp_service>(data[0] & 15);
    prm::send_wqe_walk walk(bytes, service);
    const std::byte* end = bytes.data();
    while (const auto segment = walk.next()) {
        require(!segment->bytes.empty() && segment->bytes.data() >= end, "segments are in order");
        end = segment->bytes.data() + segment->bytes.size();
        require(end <= bytes.data() + bytes.size(), "segments are inside");
    }
    check(prm::decode_wqe(bytes, service), size);
    check(prm::decode_receive_wqe(bytes, (data[0] & 16) != 0), size);
    check(prm::decode_cqe(bytes), size);
    check(prm::decode_eqe(bytes), size);
    return 0;
}
