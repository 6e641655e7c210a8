// For machines without a card: the program starts itself again below softhca-run, with two functions of one device.
#pragma once

namespace examples
{

// Adds the counts of the device to the line of JSON. Returns the exit status.
int run_on_software_device(char** argv);

} // namespace examples
