// Contiguous bytes by messages of UCP: what all sides over UCP have, and all that some are.
#pragma once

#include "bench/common/ucp_pair.h"
#include "sides.h"

namespace ucxl::bench
{

class ucp_side : public side
{
public:
    explicit ucp_side(ucp_pair& with) : _with(with) {}

    void prepare(const layout_case&, const side_memory& memory) override { _memory = memory; }
    void send_packed() override { _with.send(_memory.packed_source.data(), _memory.packed_source.size()); }
    void receive_packed() override { _with.receive(_memory.packed_target.data(), _memory.packed_target.size()); }
    bool moves_strided() const override { return false; }
    void send_strided() override {}
    void receive_strided() override {}
    void progress() override { _with.progress(); }

protected:
    ucp_pair& _with;
    side_memory _memory;
};

} // namespace ucxl::bench
