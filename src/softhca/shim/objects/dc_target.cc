#include "dc_target.h"

namespace ucxl::softhca
{

namespace
{

int run_plain(device_file& file, prm::command opcode, std::uint32_t dctn)
{
    mailbox<prm::plain_dct_in> input(opcode);
    input.set(prm::plain_dct_in::dctn, dctn);
    return file.run(input);
}

bool is_active(device_file& file, std::uint32_t dctn)
{
    mailbox<prm::plain_dct_in> input(prm::command::query_dct);
    input.set(prm::plain_dct_in::dctn, dctn);
    prm::storage<prm::query_dct_out> output;
    return file.run(input, output) != 0 ||
           (*output).at(prm::query_dct_out::dct_context).get(prm::dctc::state) == prm::dct_state::active;
}

} // namespace

// A target that was drained and could not be destroyed is not drained again.
int destroy_target(device_file& file, std::uint32_t dctn)
{
    if (is_active(file, dctn)) {
        if (const int error = run_plain(file, prm::command::drain_dct, dctn); error != 0) {
            return error;
        }
    }
    return run_plain(file, prm::command::destroy_dct, dctn);
}

} // namespace ucxl::softhca
