#include "json_layout.h"

#include "log.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace ucxl::tools
{

namespace
{

using nlohmann::json;
using ucx_layout::layout;

// Of JSON objects; the normal form of a deeper layout may still be less deep, so this only bounds the recursion.
constexpr unsigned max_nesting = 64;

template <typename... Args>
[[noreturn]] void wrong(const std::string& where, fmt::format_string<Args...> format, Args&&... args)
{
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    throw json_layout_error(where.empty() ? what : where + ": " + what);
}

std::string join(const std::string& where, std::string_view name)
{
    return where.empty() ? std::string(name) : fmt::format("{}.{}", where, name);
}

std::string join(const std::string& where, std::size_t index)
{
    return fmt::format("{}[{}]", where, index);
}

void allow(const json& object, const std::string& where, std::initializer_list<std::string_view> names)
{
    if (!object.is_object()) {
        wrong(where, "an object is expected here, not {}", object.type_name());
    }
    for (const auto& item : object.items()) {
        if (std::find(names.begin(), names.end(), item.key()) == names.end()) {
            wrong(where, "unknown name \"{}\"; known here: {}", item.key(), fmt::join(names, ", "));
        }
    }
}

const json& need(const json& object, const std::string& where, const char* name)
{
    const auto found = object.find(name);
    if (found == object.end()) {
        wrong(where, "\"{}\" is missing", name);
    }
    return *found;
}

template <typename Integer>
Integer integer(const json& value, const std::string& where)
{
    if (value.is_number_unsigned() && std::in_range<Integer>(value.get<std::uint64_t>())) {
        return static_cast<Integer>(value.get<std::uint64_t>());
    }
    if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Integer>(value.get<std::int64_t>())) {
        return static_cast<Integer>(value.get<std::int64_t>());
    }
    wrong(where, "an integer from {} to {} is expected", std::numeric_limits<Integer>::min(),
          std::numeric_limits<Integer>::max());
}

template <typename Integer>
Integer integer_or(const json& object, const std::string& where, const char* name, Integer otherwise)
{
    const auto found = object.find(name);
    return found == object.end() ? otherwise : integer<Integer>(*found, join(where, name));
}

const json& list(const json& object, const std::string& where, const char* name)
{
    const json& value = need(object, where, name);
    if (!value.is_array()) {
        wrong(join(where, name), "a list is expected here, not {}", value.type_name());
    }
    return value;
}

// Takes what a creating function gave; `log` held what it had to say.
layout made_at(ucx_layout::result<layout>&& result, const held_log& log, const std::string& where)
{
    if (!result) {
        wrong(where, "{}", log.text(ucs_status_string(result.error())));
    }
    return std::move(*result);
}

// Turns one object, with all below it, into a layout; owns the nested layouts until the outer one is made.
class reader
{
public:
    explicit reader(unsigned nesting) : _nesting(nesting) {}

    layout read(const json& object, const std::string& where);

private:
    ucp_layout_element_t element(const json& value, const std::string& where);
    std::vector<ucp_layout_dim_t> dims(const json& object, const std::string& where);
    void read_iov(const json& object, const std::string& where);
    void read_interleaved(const json& object, const std::string& where);

    unsigned _nesting;
    ucp_layout_params_t _params{};
    std::vector<layout> _nested;
    std::vector<std::vector<ucp_layout_dim_t>> _dims;
    std::vector<ucp_layout_iov_t> _iov;
    std::vector<ucp_layout_interleaved_t> _interleaved;
};

ucp_layout_element_t reader::element(const json& value, const std::string& where)
{
    if (value.is_object()) {
        _nested.push_back(reader(_nesting + 1).read(value, where));
        return _nested.back().as_element();
    }
    if (value.is_string()) {
        const held_log log;
        _nested.push_back(made_at(layout::parse(value.get_ref<const std::string&>().c_str()), log, where));
        return _nested.back().as_element();
    }
    return {.length = integer<std::size_t>(value, where), .layout = nullptr};
}

std::vector<ucp_layout_dim_t> reader::dims(const json& object, const std::string& where)
{
    std::vector<ucp_layout_dim_t> result;
    const std::string here = join(where, "dims");
    for (const json& item : list(object, where, "dims")) {
        const std::string at = join(here, result.size());
        allow(item, at, {"count", "stride"});
        result.push_back({.count  = integer<std::size_t>(need(item, at, "count"), join(at, "count")),
                          .stride = integer<std::ptrdiff_t>(need(item, at, "stride"), join(at, "stride"))});
    }
    return result;
}

void reader::read_iov(const json& object, const std::string& where)
{
    const std::string here = join(where, "iov");
    for (const json& item : list(object, where, "iov")) {
        const std::string at = join(here, _iov.size());
        allow(item, at, {"source", "offset", "element"});
        _iov.push_back({.source  = integer_or<std::uint32_t>(item, at, "source", 0),
                        .offset  = integer_or<std::ptrdiff_t>(item, at, "offset", 0),
                        .element = element(need(item, at, "element"), join(at, "element"))});
    }
    _params.iov     = _iov.data();
    _params.num_iov = _iov.size();
    _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_IOV;
}

void reader::read_interleaved(const json& object, const std::string& where)
{
    const std::string here = join(where, "interleaved");
    const json& parts      = list(object, where, "interleaved");
    _dims.reserve(parts.size()); // what ucp_layout_interleaved_t points to must not move
    for (const json& item : parts) {
        const std::string at = join(here, _interleaved.size());
        allow(item, at, {"source", "offset", "element", "repeat", "dims"});
        _dims.push_back(dims(item, at));
        _interleaved.push_back({.source   = integer_or<std::uint32_t>(item, at, "source", 0),
                                .offset   = integer_or<std::ptrdiff_t>(item, at, "offset", 0),
                                .element  = element(need(item, at, "element"), join(at, "element")),
                                .repeat   = integer_or<std::size_t>(item, at, "repeat", 1),
                                .dims     = _dims.back().data(),
                                .num_dims = static_cast<unsigned>(_dims.back().size())});
    }
    _params.interleaved     = _interleaved.data();
    _params.num_interleaved = _interleaved.size();
    _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_INTERLEAVED;
}

layout reader::read(const json& object, const std::string& where)
{
    if (_nesting > max_nesting) {
        wrong(where, "more than {} layouts nested", max_nesting);
    }
    if (!object.is_object()) {
        wrong(where, "an object is expected here, not {}", object.type_name());
    }
    const json& kind       = need(object, where, "kind");
    const std::string name = kind.is_string() ? kind.get<std::string>() : "";
    _params.field_mask     = UCP_LAYOUT_PARAM_FIELD_KIND;
    if (name == "contig" || name == "strided") {
        _params.element = element(need(object, where, "element"), join(where, "element"));
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_ELEMENT;
    }
    if (name == "contig") {
        allow(object, where, {"kind", "element", "count", "lb", "extent"});
        _params.kind  = UCP_LAYOUT_KIND_CONTIG;
        _params.count = integer_or<std::size_t>(object, where, "count", 1);
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_COUNT;
    } else if (name == "strided") {
        allow(object, where, {"kind", "element", "dims", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_STRIDED;
        _dims.push_back(dims(object, where));
        _params.dims     = _dims.back().data();
        _params.num_dims = static_cast<unsigned>(_dims.back().size());
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_DIMS;
    } else if (name == "iov") {
        allow(object, where, {"kind", "iov", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_IOV;
        read_iov(object, where);
    } else if (name == "interleaved") {
        allow(object, where, {"kind", "interleaved", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_INTERLEAVED;
        read_interleaved(object, where);
    } else {
        wrong(join(where, "kind"), "one of \"contig\", \"strided\", \"iov\", \"interleaved\" is expected");
    }
    if (object.contains("extent") || object.contains("lb")) {
        _params.lb     = integer_or<std::ptrdiff_t>(object, where, "lb", 0);
        _params.extent = integer<std::size_t>(need(object, where, "extent"), join(where, "extent"));
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_EXTENT;
    }
    const held_log log;
    return made_at(layout::create(_params), log, where);
}

} // namespace

layout parse_json_layout(const std::string& text)
{
    json parsed;
    try {
        parsed = json::parse(text);
    } catch (const json::parse_error& error) {
        // nlohmann's own identifiers in brackets mean nothing to a user.
        const std::string what = error.what();
        const auto start       = what.find("] ");
        wrong("", "{}", start == std::string::npos ? what : what.substr(start + 2));
    }
    return reader(0).read(parsed, "");
}

} // namespace ucxl::tools
