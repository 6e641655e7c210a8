#include "hash.h"

namespace ucxl
{

namespace
{

class hash_state
{
public:
    void add(std::uint64_t word)
    {
        _state = (_state ^ word) * 0x9fb21c651e98df25u;
        _state ^= _state >> 32;
    }
    void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
    std::uint64_t value() const { return _state; }

private:
    std::uint64_t _state = 0x9e3779b97f4a7c15u;
};

} // namespace

std::uint64_t hash_content(const layout& of)
{
    hash_state state;
    state.add(std::uint64_t{of.nodes().size()});
    state.add((std::uint64_t{of.root().source} << 32) | of.num_sources());
    state.add(of.root().offset);
    for (const layout_node& node : of.nodes()) {
        state.add(node.count);
        state.add(node.is_block() ? node.packed_length : std::uint64_t{node.num_entries});
    }
    for (const layout_entry& entry : of.entries()) {
        state.add((std::uint64_t{entry.source} << 32) | entry.child);
        state.add(entry.offset);
        state.add(entry.stride);
    }
    for (std::uint32_t source = 0; source < of.num_sources(); ++source) {
        state.add(of.bounds(source).lb);
        state.add(of.bounds(source).ub);
    }
    return state.value();
}

} // namespace ucxl
