#include "bounds.h"

#include "checked.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

// Joins the spans of each source and sorts them by source.
void reduce(std::vector<source_span>& spans)
{
    std::ranges::sort(spans, {}, &source_span::source);
    std::size_t kept = 0;
    for (const source_span& span : spans) {
        if (kept > 0 && spans[kept - 1].source == span.source) {
            spans[kept - 1].lb = std::min(spans[kept - 1].lb, span.lb);
            spans[kept - 1].ub = std::max(spans[kept - 1].ub, span.ub);
        } else {
            spans[kept++] = span;
        }
    }
    spans.resize(kept);
}

class bounds_of_nodes
{
public:
    explicit bounds_of_nodes(const layout& layout) : _of(layout), _spans(layout.nodes().size()) {}

    result<void> run()
    {
        for (std::size_t i = 0; i < _spans.size(); ++i) {
            const layout_node& node = _of.nodes()[i];
            if (node.is_block()) {
                continue;
            }
            std::vector<source_span>& spans = _spans[i];
            for (const layout_entry& entry : _of.entries_of(node)) {
                UCXL_TRY(add(spans, entry, node.count));
            }
            reduce(spans);
        }
        return {};
    }

    // The spans of the root, relative to the root.
    std::vector<source_span> of_root()
    {
        const layout_node& root = _of.root_node();
        return root.is_block() ? std::vector<source_span>{{0, 0, static_cast<std::int64_t>(root.packed_length)}}
                               : std::move(_spans[_of.root().child]);
    }

private:
    result<void> add(std::vector<source_span>& spans, const layout_entry& entry, std::uint64_t count)
    {
        const layout_node& child = _of.nodes()[entry.child];
        const source_span block{0, 0, static_cast<std::int64_t>(child.packed_length)};
        const std::span<const source_span> below =
            child.is_block() ? std::span(&block, 1) : std::span(_spans[entry.child]);
        _steps += below.size();
        if (_steps > limits::max_span_steps) {
            return fail(errc::exceeds_limit, std::format("uses of sources in shared parts exceed max_span_steps ({})",
                                                         limits::max_span_steps));
        }
        // This cannot overflow: nest::loop() has checked the bounds of the whole loop.
        const std::int64_t travel = static_cast<std::int64_t>(count - 1) * entry.stride;
        for (const source_span& span : below) {
            const source_span moved{span.source + entry.source,
                                    span.lb + entry.offset + std::min<std::int64_t>(travel, 0),
                                    span.ub + entry.offset + std::max<std::int64_t>(travel, 0)};
            if (!spans.empty() && spans.back().source == moved.source) {
                spans.back().lb = std::min(spans.back().lb, moved.lb);
                spans.back().ub = std::max(spans.back().ub, moved.ub);
            } else {
                spans.push_back(moved);
            }
        }
        return {};
    }

    const layout& _of;
    std::vector<std::vector<source_span>> _spans;
    std::uint64_t _steps = 0;
};

} // namespace

result<source_span> span_of_root(const source_span& node, const layout_entry& root)
{
    source_span span{node.source + root.source, 0, 0};
    if (!checked::add(node.lb, root.offset, span.lb) || !checked::add(node.ub, root.offset, span.ub) ||
        !checked::is_offset(span.lb) || !checked::is_offset(span.ub)) {
        return fail(errc::exceeds_limit,
                    std::format("source {}: a byte lies further from the base address than max_offset ({})",
                                span.source, limits::max_offset));
    }
    return span;
}

result<std::vector<source_span>> true_bounds(const layout& layout)
{
    if (layout.is_empty()) {
        return std::vector<source_span>{};
    }
    bounds_of_nodes nodes(layout);
    UCXL_TRY(nodes.run());
    std::vector<source_span> spans = nodes.of_root();
    for (source_span& span : spans) {
        span = UCXL_TRY(span_of_root(span, layout.root()));
    }
    return spans;
}

} // namespace ucxl
