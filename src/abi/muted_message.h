// Keeps one message of UCX out of its log while a thread is in a section.
//
// Example:
//     const muted_message muted("Unsupported: got software atomic");
//     stock_handler(...);
#pragma once

namespace ucxl::abi
{

class muted_message
{
public:
    // Messages whose format begins with `beginning`, a string that outlives the section. Sections do not nest.
    explicit muted_message(const char* beginning);
    ~muted_message();
    muted_message(const muted_message&)            = delete;
    muted_message& operator=(const muted_message&) = delete;
};

// Puts a handler before UCX's log, once. To be called when UCX is attached; without it nothing is muted.
void allow_muted_messages();

} // namespace ucxl::abi
