#include "messages.h"

#include "ucx.h"

#include <string>

namespace ucxl::abi
{

ucp_am_handler* stock_handler(const char* id, const char* function, std::uint64_t features)
{
    auto* const handler = find_object<ucp_am_handler>((std::string("ucp_am_handler_UCP_AM_ID_") + id).c_str());
    return knows_handler(handler, features, find_function<uct_am_callback_t>(function)) ? handler : nullptr;
}

} // namespace ucxl::abi
