#include "footprint.h"

#include <algorithm>
#include <cmath>

namespace ucxl
{

namespace
{

constexpr double line = 64; // bytes

// Of `count` places, `stride` bytes apart, each of which touches so many bytes. Places within one line share it.
double repeated(double touched, double count, double stride)
{
    return touched * (stride >= line ? count : std::max(1.0, count * stride / line));
}

} // namespace

double touched_length(const layout& layout)
{
    std::vector<double> touched; // by node
    touched.reserve(layout.nodes().size());
    for (const layout_node& node : layout.nodes()) {
        double bytes = node.is_block() ? std::ceil(static_cast<double>(node.packed_length) / line) * line : 0;
        for (const layout_entry& entry : layout.entries_of(node)) {
            bytes += repeated(touched[entry.child], static_cast<double>(node.count),
                              std::fabs(static_cast<double>(entry.stride)));
        }
        touched.push_back(bytes);
    }
    return layout.is_empty() ? 0 : touched[layout.root().child];
}

} // namespace ucxl
