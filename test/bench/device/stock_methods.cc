// What programs do with stock UCX.
#include "block_lists.h"
#include "device_method.h"
#include "remote_memory.h"

#include <algorithm>

namespace ucxl::bench
{

namespace
{

std::vector<examples::block> own_blocks(const method_parts& parts)
{
    return parts.is_first ? parts.pattern.send.blocks() : parts.pattern.receive.blocks();
}

class typed_message : public method
{
public:
    explicit typed_message(const method_parts& parts) : _pair(parts.pair), _is_first(parts.is_first) {}

protected:
    ucs_status_ptr_t post(void* buffer, std::size_t count, ucp_datatype_t type)
    {
        ucp_request_param_t how{};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        how.datatype     = type;
        return _is_first ? ucp_tag_send_nbx(_pair.peer(), buffer, count, 1, &how)
                         : ucp_tag_recv_nbx(_pair.worker(), buffer, count, 1, ~ucp_tag_t{0}, &how);
    }

private:
    ucp_pair& _pair;
    bool _is_first;
};

class list : public typed_message
{
public:
    explicit list(const method_parts& parts) : typed_message(parts)
    {
        for (const examples::block& one : own_blocks(parts)) {
            _blocks.push_back({parts.memory.arrays()[one.array] + one.offset_bytes, one.length_bytes});
        }
    }

    ucs_status_ptr_t start() override { return post(_blocks.data(), _blocks.size(), UCP_DATATYPE_IOV); }

private:
    std::vector<ucp_dt_iov_t> _blocks;
};

// A datatype whose functions copy block by block, as a program without this library has it.
class packed : public typed_message
{
public:
    explicit packed(const method_parts& parts) : typed_message(parts)
    {
        for (const examples::block& one : own_blocks(parts)) {
            _blocks.push_back({parts.memory.arrays()[one.array] + one.offset_bytes, one.length_bytes});
        }
        test::check_ok(ucp_dt_create_generic(&functions, this, &_type), "ucp_dt_create_generic");
    }
    ~packed() override { ucp_dt_destroy(_type); }

    ucs_status_ptr_t start() override { return post(this, 1, _type); }

private:
    static void* begin(void* self, const void*, std::size_t)
    {
        return new block_cursor(static_cast<const packed*>(self)->_blocks);
    }
    static void* begin_unpack(void* self, void*, std::size_t) { return begin(self, nullptr, 1); }
    static std::size_t packed_size(void* state) { return static_cast<block_cursor*>(state)->length(); }
    static std::size_t pack(void* state, std::size_t offset, void* to, std::size_t length)
    {
        return static_cast<block_cursor*>(state)->gather(offset, {static_cast<std::byte*>(to), length});
    }
    static ucs_status_t unpack(void* state, std::size_t offset, const void* from, std::size_t length)
    {
        static_cast<block_cursor*>(state)->scatter(offset, {static_cast<const std::byte*>(from), length});
        return UCS_OK;
    }
    static void finish(void* state) { delete static_cast<block_cursor*>(state); }

    static constexpr ucp_generic_dt_ops_t functions = {.start_pack   = begin,
                                                       .start_unpack = begin_unpack,
                                                       .packed_size  = packed_size,
                                                       .pack         = pack,
                                                       .unpack       = unpack,
                                                       .finish       = finish};

    std::vector<memory_block> _blocks;
    ucp_datatype_t _type = 0;
};

// All memory is registered beforehand, and every put is given its handles.
class puts : public method
{
public:
    explicit puts(const method_parts& parts) : _pair(parts.pair)
    {
        const auto arrays = parts.memory.arrays();
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            ucp_mem_map_params_t wanted{};
            wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
            wanted.address    = arrays[i];
            wanted.length     = parts.memory.array_bytes()[i];
            ucp_mem_h handle  = nullptr;
            test::check_ok(ucp_mem_map(_pair.context(), &wanted, &handle), "ucp_mem_map");
            _handles.push_back(handle);
        }
        std::vector<remote_memory> targets;
        // The two processes may have different numbers of arrays.
        const std::size_t num_targets = parts.pattern.receive.array_bytes.size();
        for (std::size_t i = 0; i < num_targets; ++i) {
            const own_memory own = parts.is_first ? own_memory{} : own_memory{arrays[i], _handles[i]};
            targets.push_back(trade_memory(_pair, parts.is_first, own));
        }
        if (parts.is_first) {
            for (const common_piece& found : common_pieces(parts.pattern)) {
                _pieces.push_back({.from          = arrays[found.from_array] + found.from_offset,
                                   .source        = _handles[found.from_array],
                                   .length        = found.length,
                                   .target_array  = found.to_array,
                                   .target_offset = found.to_offset});
            }
        }
        _targets = std::move(targets);
    }

    ~puts() override
    {
        for (const ucp_mem_h handle : _handles) {
            ucp_mem_unmap(_pair.context(), handle);
        }
    }

    bool is_put() const override { return true; }

    ucs_status_ptr_t start() override
    {
        ucp_request_param_t how{};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        for (const piece& one : _pieces) {
            const remote_memory& target = _targets[one.target_array];
            how.memh                    = one.source;
            free_when_done(ucp_put_nbx(_pair.peer(), one.from, one.length, target.address + one.target_offset,
                                       target.key.get(), &how));
        }
        return flush(_pair);
    }

private:
    struct piece {
        std::byte* from;
        ucp_mem_h source;
        std::size_t length;
        std::uint32_t target_array;
        std::size_t target_offset;
    };

    ucp_pair& _pair;
    std::vector<ucp_mem_h> _handles;
    std::vector<remote_memory> _targets;
    std::vector<piece> _pieces;
};

} // namespace

std::unique_ptr<method> list_message(const method_parts& parts)
{
    return std::make_unique<list>(parts);
}

std::unique_ptr<method> packed_message(const method_parts& parts)
{
    return std::make_unique<packed>(parts);
}

std::unique_ptr<method> block_puts(const method_parts& parts)
{
    return std::make_unique<puts>(parts);
}

} // namespace ucxl::bench
