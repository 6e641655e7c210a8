// What layout keys cost the CPU: rows of figures, in ns of the thread that does the work.
#pragma once

#include <nlohmann/json.hpp>

#include "support/verbs_pair.h"

namespace ucxl::bench
{

using table = nlohmann::ordered_json; // an array of objects with the same members

// One bind request built and written to the send queue, by number of entries, alone and in batches.
table bind_costs(test::verbs_pair& pair);

// A region set by the C API: lowered, encoded, posted, executed and waited for, so the device's time is in it.
table set_costs(test::verbs_pair& pair);

// Posting the data of a transfer of many blocks: one request with a key, a request per block, lists of elements.
table post_costs(test::verbs_pair& pair);

} // namespace ucxl::bench
