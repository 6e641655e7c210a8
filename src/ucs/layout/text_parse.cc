#include "build.h"
#include "checked.h"
#include "layout_builder.h"
#include "text.h"

#include <cctype>
#include <charconv>
#include <format>

namespace ucxl
{

namespace
{

// Nesting of expressions. A normal form of max_depth needs no more.
constexpr unsigned max_nesting = limits::max_depth + 4;

struct random_list {
    std::uint64_t count = 0, min_length = 0, max_length = 0;
    std::uint64_t seed = 1, min_gap = 0, max_gap = 0;
    bool is_shuffled = false;
};

// splitmix64, so that the same text means the same layout everywhere.
class generator
{
public:
    explicit generator(std::uint64_t seed) : _state(seed) {}

    std::uint64_t between(std::uint64_t min, std::uint64_t max) { return min + next() % (max - min + 1); }

private:
    std::uint64_t next()
    {
        std::uint64_t value = _state += 0x9e3779b97f4a7c15u;
        value               = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
        value               = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
        return value ^ (value >> 31);
    }

    std::uint64_t _state;
};

result<layout_ptr> make_random(const random_list& list)
{
    generator from(list.seed);
    std::vector<iov_part> parts(list.count);
    std::int64_t offset = 0;
    for (iov_part& part : parts) {
        part.item.length = from.between(list.min_length, list.max_length);
        part.offset      = offset;
        if (!checked::add(offset,
                          static_cast<std::int64_t>(part.item.length + from.between(list.min_gap, list.max_gap)),
                          offset)) {
            return fail(errc::exceeds_limit, std::format("iov: offsets exceed max_offset ({})", limits::max_offset));
        }
    }
    for (std::size_t i = list.is_shuffled ? parts.size() : 0; i > 1; --i) {
        std::swap(parts[i - 1], parts[from.between(0, i - 1)]);
    }
    return make_iov(parts);
}

// The first error ends parsing: every function that returns false has set _error.
class parser
{
public:
    explicit parser(std::string_view text) : _text(text) {}

    result<layout_ptr> run()
    {
        element whole;
        if (!expression(whole) || (!is_at_end() && !wrong("the end"))) {
            return std::unexpected(std::move(_error));
        }
        return whole.nested ? result<layout_ptr>(whole.nested) : make_contig(1, whole);
    }

private:
    bool wrong(std::string_view expected)
    {
        skip_space();
        const std::string found = _at < _text.size() ? std::format("'{}'", _text[_at]) : "the end";
        _error = {errc::malformed, std::format("column {}: expected {}, found {}", _at + 1, expected, found)};
        return false;
    }

    // Takes the layout, or reports the builder's error with the column where the expression begins.
    bool set(result<layout_ptr> layout, std::size_t begin, element& item)
    {
        if (!layout) {
            _error = std::move(layout.error());
            if (_error.code != errc::no_memory) {
                _error.message = std::format("column {}: {}", begin + 1, _error.message);
            }
            return false;
        }
        item = {0, *std::move(layout)};
        return true;
    }

    void skip_space()
    {
        while (_at < _text.size() && std::isspace(static_cast<unsigned char>(_text[_at])) != 0) {
            ++_at;
        }
    }

    bool is_at_end()
    {
        skip_space();
        return _at == _text.size();
    }

    bool is_next(std::string_view token)
    {
        skip_space();
        return _text.substr(_at).starts_with(token);
    }

    bool take(std::string_view token)
    {
        const bool is_there = is_next(token);
        _at += is_there ? token.size() : 0;
        return is_there;
    }

    bool need(std::string_view token) { return take(token) || wrong(std::format("'{}'", token)); }

    bool is_digit_next()
    {
        skip_space();
        return _at < _text.size() && std::isdigit(static_cast<unsigned char>(_text[_at])) != 0;
    }

    bool number(std::uint64_t& value)
    {
        if (!is_digit_next()) {
            return wrong("a number");
        }
        const std::size_t begin  = _at;
        const char* end          = _text.data() + _text.size();
        const auto [stop, code]  = std::from_chars(_text.data() + _at, end, value);
        _at                      = static_cast<std::size_t>(stop - _text.data());
        const std::uint64_t unit = take("K") ? 1u << 10 : take("M") ? 1u << 20 : take("G") ? 1u << 30 : 1;
        if (code != std::errc() || !checked::mul(value, unit, value)) {
            _at = begin;
            return wrong("a number below 2^64");
        }
        return true;
    }

    bool signed_number(std::int64_t& value)
    {
        const bool is_negative  = take("-");
        const std::size_t begin = _at;
        std::uint64_t size;
        if (!number(size)) {
            return false;
        }
        if (size > static_cast<std::uint64_t>(INT64_MAX)) {
            _at = begin;
            return wrong("a number below 2^63");
        }
        value = is_negative ? -static_cast<std::int64_t>(size) : static_cast<std::int64_t>(size);
        return true;
    }

    template <typename T, typename Read>
    bool list(std::vector<T>& values, Read&& read)
    {
        T value{};
        const bool has_brackets = take("[");
        do {
            if (values.size() == limits::max_dims) {
                return wrong(std::format("at most max_dims ({}) dimensions", limits::max_dims));
            }
            if (!read(value)) {
                return false;
            }
            values.push_back(value);
        } while (has_brackets && take(","));
        return !has_brackets || need("]");
    }

    bool counts(std::vector<std::uint64_t>& values)
    {
        return list(values, [this](std::uint64_t& value) { return number(value); });
    }

    // Reads as many strides as there are counts.
    bool strides(const std::vector<std::uint64_t>& times, std::vector<dim>& dims)
    {
        std::vector<std::int64_t> values;
        if (!list(values, [this](std::int64_t& value) { return signed_number(value); })) {
            return false;
        }
        if (values.size() != times.size()) {
            return wrong(std::format("{} strides before it, as many as counts", times.size()));
        }
        for (std::size_t i = 0; i < times.size(); ++i) {
            dims.push_back({times[i], values[i]});
        }
        return true;
    }

    bool range(std::uint64_t& min, std::uint64_t& max)
    {
        if (!number(min) || !need("..") || !number(max)) {
            return false;
        }
        return (min <= max && max <= limits::max_length) ||
               wrong(std::format("MIN..MAX before it, with MIN <= MAX <= max_length ({})", limits::max_length));
    }

    // Reads SOURCE ":", if the next number is one.
    bool source(std::uint32_t& value)
    {
        const std::size_t begin   = _at;
        std::uint64_t number_read = 0;
        value                     = 0;
        if (!is_digit_next() || !number(number_read) || !take(":")) {
            _at = begin;
            return true;
        }
        if (number_read >= limits::max_sources) {
            _at = begin;
            return wrong(std::format("a source below max_sources ({})", limits::max_sources));
        }
        value = static_cast<std::uint32_t>(number_read);
        return true;
    }

    bool expression(element& item)
    {
        if (is_digit_next()) {
            return number(item.length);
        }
        const std::size_t begin = _at;
        if (_nesting == max_nesting) {
            return wrong(std::format("at most {} nested expressions", max_nesting));
        }
        ++_nesting;
        const bool is_good = take("contig(")        ? contig(begin, item)
                             : take("strided(")     ? strided(begin, item)
                             : take("iov(")         ? iov(begin, item)
                             : take("interleaved(") ? interleaved(begin, item)
                             : take("resized(")     ? resized(begin, item)
                                                    : wrong("a number, contig, strided, iov, interleaved or resized");
        --_nesting;
        return is_good;
    }

    bool contig(std::size_t begin, element& item)
    {
        std::uint64_t count;
        element inner;
        return number(count) && need(",") && expression(inner) && need(")") &&
               set(make_contig(count, inner), begin, item);
    }

    bool strided(std::size_t begin, element& item)
    {
        const bool is_list = is_next("[");
        std::vector<std::uint64_t> times;
        std::vector<dim> dims;
        element inner;
        return counts(times) && need(is_list ? "x" : ",") && expression(inner) && need(",") && strides(times, dims) &&
               need(")") && set(make_strided(inner, dims), begin, item);
    }

    bool iov(std::size_t begin, element& item)
    {
        const std::size_t first = _at;
        random_list random;
        if (is_digit_next() && number(random.count) && take(",")) {
            return random_iov(random) && need(")") && set(make_random(random), begin, item);
        }
        _at = first;
        std::vector<iov_part> parts;
        do {
            iov_part part;
            if (!source(part.source) || !expression(part.item) || !need("@") || !signed_number(part.offset)) {
                return false;
            }
            parts.push_back(std::move(part));
        } while (take(","));
        return need(")") && set(make_iov(parts), begin, item);
    }

    bool random_iov(random_list& list)
    {
        if (!range(list.min_length, list.max_length)) {
            return false;
        }
        if (list.count > limits::max_entries) {
            return wrong(std::format("at most max_entries ({}) blocks before it", limits::max_entries));
        }
        list.max_gap = list.max_length;
        while (take(",")) {
            if (take("seed=")) {
                if (!number(list.seed)) {
                    return false;
                }
            } else if (take("gap=")) {
                if (!range(list.min_gap, list.max_gap)) {
                    return false;
                }
            } else if (take("shuffle")) {
                list.is_shuffled = true;
            } else {
                return wrong("seed=, gap= or shuffle");
            }
        }
        return true;
    }

    // [SOURCE ":"] [REPEAT "*"] expr "@" OFFSET "," list "," list
    bool one_source(interleaved_part& part, std::vector<dim>& dims)
    {
        if (!source(part.source)) {
            return false;
        }
        const std::size_t begin = _at;
        if (!is_digit_next() || !number(part.repeat) || !take("*")) {
            _at         = begin;
            part.repeat = 1;
        }
        std::vector<std::uint64_t> times;
        return expression(part.item) && need("@") && signed_number(part.offset) && need(",") && counts(times) &&
               need(",") && strides(times, dims);
    }

    bool interleaved(std::size_t begin, element& item)
    {
        std::vector<interleaved_part> parts;
        std::vector<std::vector<dim>> dims;
        do {
            if (!one_source(parts.emplace_back(), dims.emplace_back())) {
                return false;
            }
        } while (take(";"));
        for (std::size_t i = 0; i < parts.size(); ++i) {
            parts[i].dims = dims[i];
        }
        return need(")") && set(make_interleaved(parts), begin, item);
    }

    bool resized(std::size_t begin, element& item)
    {
        element inner;
        if (!expression(inner) || (inner.nested == nullptr && !set(make_contig(1, inner), begin, inner))) {
            return false;
        }
        if (!need(",")) {
            return false;
        }
        do {
            std::uint32_t number = 0;
            std::int64_t lb = 0, extent = 0;
            if (!source(number) || !signed_number(lb) || !need(",") || !signed_number(extent) ||
                !set(resize(*inner.nested, lb, extent, number), begin, inner)) {
                return false;
            }
        } while (take(";"));
        item = std::move(inner);
        return need(")");
    }

    std::string_view _text;
    std::size_t _at   = 0;
    unsigned _nesting = 0;
    error _error{};
};

} // namespace

result<layout_ptr> parse_text(std::string_view text)
{
    return guarded([&] { return parser(text).run(); });
}

} // namespace ucxl
