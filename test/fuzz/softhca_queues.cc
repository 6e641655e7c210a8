// Any bytes as what processes do to their queue pairs: work requests, receives, scribbles over queues and doorbell
// records, deaths. Nothing is read or written outside of keys and queues.
#include "fuzz_target.h"

#include "gtest/softhca/core/hostile_queues.h"

using namespace ucxl;
using fuzz::require;

UCXL_FUZZ_TARGET(softhca_queues)
{
    static softhca::test::hostile_queues queues;
    queues.run({data, size});
    require(queues.violation().empty(), queues.violation());
    return 0;
}
