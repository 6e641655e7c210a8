// What UCP has for non-contiguous memory by itself: a list of all blocks (UCP_DATATYPE_IOV). No windows are made.
#pragma once

#include "bench/common/ucp_pair.h"
#include "sides.h"

#include <vector>

namespace ucxl::bench
{

class iov_side : public side
{
public:
    explicit iov_side(ucp_pair& with) : _with(with) {}

    void prepare(const layout_case& moved, const side_memory& memory) override;
    void send_packed() override { _with.send(_memory.packed_source.data(), _memory.packed_source.size()); }
    void receive_packed() override { _with.receive(_memory.packed_target.data(), _memory.packed_target.size()); }
    void send_strided() override { _with.send(_source.data(), _source.size(), UCP_DATATYPE_IOV); }
    void receive_strided() override { _with.receive(_target.data(), _target.size(), UCP_DATATYPE_IOV); }
    bool moves_lists() const override { return true; }
    void send_list(const block_order& list) override;
    void receive_list(const block_order& list) override;
    void progress() override { _with.progress(); }

private:
    ucp_pair& _with;
    side_memory _memory;
    std::vector<ucp_dt_iov_t> _source, _target;
};

} // namespace ucxl::bench
