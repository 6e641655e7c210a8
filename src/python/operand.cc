#include "operand.h"

#include <bit>

namespace ucxl::python
{

namespace
{

struct address_range {
    std::uintptr_t begin, end;

    bool meets(const address_range& other) const { return begin < other.end && other.begin < end; }
};

address_range range_of(const void* base, const extent& bytes)
{
    const auto at = std::bit_cast<std::uintptr_t>(base);
    return {at + static_cast<std::uintptr_t>(bytes.lb), at + static_cast<std::uintptr_t>(bytes.ub)};
}

} // namespace

operand::operand(nb::handle arrays, const char* name, shared_layout_ptr layout)
    : _name(name), _has_layout(layout != nullptr), _layout(std::move(layout))
{
    if (_has_layout && (nb::isinstance<nb::list>(arrays) || nb::isinstance<nb::tuple>(arrays))) {
        for (const nb::handle each : nb::borrow<nb::sequence>(arrays)) {
            _arrays.emplace_back(each, name);
        }
    } else {
        _arrays.emplace_back(arrays, name);
    }
    if (!_has_layout) {
        _layout = layout_of_array(_arrays.front());
    }
    if (_arrays.size() != _layout->num_sources()) {
        raise(PyExc_ValueError, "{}: {} array{}, the layout has {} source{}", name, _arrays.size(),
              _arrays.size() == 1 ? "" : "s", _layout->num_sources(), _layout->num_sources() == 1 ? "" : "s");
    }
    for (const array& each : _arrays) {
        _bases.push_back(each.data());
    }
    if (_has_layout) {
        check_bounds();
    }
}

void operand::check_bounds() const
{
    std::size_t source = 0;
    for (const array& each : _arrays) {
        const auto wanted = _layout->bounds()[source], there = each.bounds();
        if (wanted.ub > wanted.lb && (wanted.lb < there.lb || wanted.ub > there.ub)) {
            raise(PyExc_IndexError,
                  "{}: the layout reaches from byte {} to byte {} of source {}, the array has bytes {} to {}", _name,
                  wanted.lb, wanted.ub, source, there.lb, there.ub);
        }
        ++source;
    }
}

void operand::require_target() const
{
    for (const array& each : _arrays) {
        each.require_writable();
    }
    if (_layout->overlap() == UCP_LAYOUT_OVERLAP_SOME) {
        raise(PyExc_ValueError,
              "{}: some of its bytes would be written more than once, with a result that is undefined", _name);
    }
}

int operand::traverse(visitproc visit, void* arg) const
{
    for (const array& each : _arrays) {
        if (const int stopped = each.traverse(visit, arg); stopped != 0) {
            return stopped;
        }
    }
    return 0;
}

bool operand::may_overlap(const operand& other) const
{
    for (std::size_t i = 0; i < _bases.size(); ++i) {
        const auto own = range_of(_bases[i], _layout->bounds()[i]);
        for (std::size_t j = 0; j < other._bases.size(); ++j) {
            if (own.meets(range_of(other._bases[j], other._layout->bounds()[j]))) {
                return true;
            }
        }
    }
    return false;
}

bool operand::may_overlap(const std::byte* data, std::size_t length) const
{
    const auto range = range_of(data, {0, static_cast<std::int64_t>(length)});
    for (std::size_t i = 0; i < _bases.size(); ++i) {
        if (range.meets(range_of(_bases[i], _layout->bounds()[i]))) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl::python
