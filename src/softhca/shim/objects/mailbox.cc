#include "mailbox.h"

#include <cerrno>

namespace ucxl::softhca
{

int error_of(prm::command_status status)
{
    switch (status) {
    case prm::command_status::ok:
        return 0;
    case prm::command_status::bad_operation:
    case prm::command_status::bad_parameter:
    case prm::command_status::bad_resource:
    case prm::command_status::bad_resource_state:
    case prm::command_status::bad_index:
    case prm::command_status::bad_qp_state:
    case prm::command_status::bad_packet:
    case prm::command_status::bad_size_outstanding_cqe:
        return EINVAL;
    case prm::command_status::resource_busy:
        return EBUSY;
    case prm::command_status::limit_exceeded:
        return ENOMEM;
    case prm::command_status::no_resources:
        return EAGAIN;
    case prm::command_status::internal_error:
    case prm::command_status::bad_system_state:
    case prm::command_status::bad_input_length:
    case prm::command_status::bad_output_length:
        break;
    }
    return EIO;
}

} // namespace ucxl::softhca
