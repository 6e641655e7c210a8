// What UCP has for non-contiguous memory by itself: a list of all blocks (UCP_DATATYPE_IOV). No windows are made.
#pragma once

#include "ucp_side.h"

#include <vector>

namespace ucxl::bench
{

class iov_side : public ucp_side
{
public:
    using ucp_side::ucp_side;

    void prepare(const layout_case& moved, const side_memory& memory) override;
    bool moves_strided() const override { return true; }
    void send_strided() override { _with.send(_source.data(), _source.size(), UCP_DATATYPE_IOV); }
    void receive_strided() override { _with.receive(_target.data(), _target.size(), UCP_DATATYPE_IOV); }
    bool moves_lists() const override { return true; }
    void send_list(const block_order& list) override;
    void receive_list(const block_order& list) override;

private:
    std::vector<ucp_dt_iov_t> _source, _target;
};

} // namespace ucxl::bench
