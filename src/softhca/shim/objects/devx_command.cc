#include "devx_command.h"

namespace ucxl::softhca
{

int devx_command::take(uverbs_call& call, std::uint16_t in_attribute, std::uint16_t out_attribute)
{
    _out_attribute = out_attribute;
    out.assign(call.length(out_attribute), std::byte{0});
    return call.read_all(in_attribute, in);
}

int devx_command::run(uverbs_call& call)
{
    // Whatever the program wrote there: it speaks for its own context only.
    prm::view<prm::any_input>::over(in)->put(prm::any_input::uid, call.file.uid);
    const prm::command_status status = call.file.device.command(call.file.function, call.file.uid, in, out);
    if (const int error = call.write_bytes(_out_attribute, out.data(), out.size()); error != 0) {
        return error;
    }
    return status == prm::command_status::ok ? 0 : EREMOTEIO;
}

} // namespace ucxl::softhca
