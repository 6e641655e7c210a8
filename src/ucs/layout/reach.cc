#include "reach.h"

#include <algorithm>
#include <functional>

namespace ucxl
{

namespace
{

using wide = __int128;

// Returns the smallest x >= 0 with low <= (a * x) mod m <= high, or -1; 0 <= low <= high < m. As in Euclid's algorithm,
// the problem for (a, m) reduces to (m mod a, a).
wide first_in_residues(wide a, wide m, wide low, wide high)
{
    if (low == 0) {
        return 0;
    }
    a %= m;
    if (a == 0) {
        return -1;
    }
    if (2 * a > m) {
        return first_in_residues(m - a, m, m - high, m - low);
    }
    const wide first = (low + a - 1) / a;
    if (first * a <= high) {
        return first;
    }
    const wide turns = first_in_residues(m % a, a, (a - high % a) % a, (a - low % a) % a);
    return turns < 0 ? -1 : (low + m * turns + a - 1) / a;
}

wide floor_div(wide a, wide b)
{
    return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}

wide ceil_div(wide a, wide b)
{
    return -floor_div(-a, b);
}

class search
{
public:
    search(std::vector<steps> terms, std::int64_t lo, std::int64_t hi, std::uint64_t& budget)
        : _terms(std::move(terms)), _lo(lo), _hi(hi), _budget(budget), _rest(_terms.size() + 1, 0)
    {
        for (std::size_t k = _terms.size(); k-- > 0;) {
            _rest[k] = _rest[k + 1] + wide{_terms[k].most} * _terms[k].step;
        }
    }

    reached from(std::size_t level, wide sum)
    {
        if (_budget == 0) {
            return reached::unknown;
        }
        --_budget;
        if (sum > _hi || sum + _rest[level] < _lo) {
            return reached::no;
        }
        if (level == _terms.size()) {
            return reached::yes;
        }
        const steps& term = _terms[level];
        const wide first  = std::max<wide>(0, ceil_div(_lo - _rest[level + 1] - sum, term.step));
        const wide last   = std::min<wide>(term.most, floor_div(_hi - sum, term.step));
        if (first > last) {
            return reached::no;
        }
        if (level + 2 == _terms.size()) {
            return last_two(sum + first * term.step, last - first, term.step, _terms[level + 1].step);
        }
        reached answer = reached::no;
        for (wide x = first; x <= last && answer == reached::no; ++x) {
            answer = from(level + 1, sum + x * term.step);
        }
        return answer;
    }

private:
    // For x in this range the last step stays within its own range whenever it hits [_lo, _hi], so only residues
    // matter.
    reached last_two(wide sum, wide most, wide step, wide modulus) const
    {
        const wide width = wide{_hi} - _lo;
        if (width >= modulus - 1) {
            return reached::yes;
        }
        const wide at   = ((sum - _lo) % modulus + modulus) % modulus;
        const wide low  = (modulus - at) % modulus;
        const wide high = low + width;
        if (high >= modulus) {
            return reached::yes;
        }
        const wide x = first_in_residues(step, modulus, low, high);
        return x >= 0 && x <= most ? reached::yes : reached::no;
    }

    std::vector<steps> _terms;
    std::int64_t _lo;
    std::int64_t _hi;
    std::uint64_t& _budget;
    std::vector<wide> _rest;
};

} // namespace

reached range_reached(std::int64_t from, std::vector<steps> terms, std::int64_t lo, std::int64_t hi,
                      std::uint64_t& budget)
{
    std::ranges::sort(terms, std::greater{}, &steps::step);
    std::size_t kept = 0;
    for (const steps& term : terms) {
        if (kept > 0 && terms[kept - 1].step == term.step) {
            terms[kept - 1].most += term.most;
        } else if (term.most > 0) {
            terms[kept++] = term;
        }
    }
    terms.resize(kept);
    return search(std::move(terms), lo, hi, budget).from(0, from);
}

} // namespace ucxl
