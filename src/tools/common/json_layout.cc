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

// Nesting of JSON objects. It only bounds the recursion: the normal form of a deeply nested layout may be less deep.
constexpr unsigned max_nesting = 64;

template <typename... Args>
[[noreturn]] void wrong(const std::string& path, fmt::format_string<Args...> format, Args&&... args)
{
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    throw json_layout_error(path.empty() ? text : path + ": " + text);
}

std::string join(const std::string& path, std::string_view name)
{
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string join(const std::string& path, std::size_t index)
{
    return fmt::format("{}[{}]", path, index);
}

void allow(const json& object, const std::string& path, std::initializer_list<std::string_view> names)
{
    if (!object.is_object()) {
        wrong(path, "an object is expected here, not {}", object.type_name());
    }
    for (const auto& item : object.items()) {
        if (std::find(names.begin(), names.end(), item.key()) == names.end()) {
            wrong(path, "unknown name \"{}\"; known here: {}", item.key(), fmt::join(names, ", "));
        }
    }
}

const json& need(const json& object, const std::string& path, const char* name)
{
    const auto found = object.find(name);
    if (found == object.end()) {
        wrong(path, "\"{}\" is missing", name);
    }
    return *found;
}

template <typename Integer>
Integer integer(const json& value, const std::string& path)
{
    if (value.is_number_unsigned() && std::in_range<Integer>(value.get<std::uint64_t>())) {
        return static_cast<Integer>(value.get<std::uint64_t>());
    }
    if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Integer>(value.get<std::int64_t>())) {
        return static_cast<Integer>(value.get<std::int64_t>());
    }
    wrong(path, "an integer from {} to {} is expected", std::numeric_limits<Integer>::min(),
          std::numeric_limits<Integer>::max());
}

template <typename Integer>
Integer integer_or(const json& object, const std::string& path, const char* name, Integer otherwise)
{
    const auto found = object.find(name);
    return found == object.end() ? otherwise : integer<Integer>(*found, join(path, name));
}

const json& list(const json& object, const std::string& path, const char* name)
{
    const json& value = need(object, path, name);
    if (!value.is_array()) {
        wrong(join(path, name), "a list is expected here, not {}", value.type_name());
    }
    return value;
}

// Returns the layout of a creating function; `log` holds its messages.
layout made_at(ucx_layout::result<layout>&& result, const held_log& log, const std::string& path)
{
    if (!result) {
        wrong(path, "{}", log.text(ucs_status_string(result.error())));
    }
    return std::move(*result);
}

// Turns one object, with everything in it, into a layout. Owns the nested layouts until the outer one exists.
class reader
{
public:
    explicit reader(unsigned nesting) : _nesting(nesting) {}

    layout read(const json& object, const std::string& path);

private:
    ucp_layout_element_t element(const json& value, const std::string& path);
    std::vector<ucp_layout_dim_t> dims(const json& object, const std::string& path);
    void read_iov(const json& object, const std::string& path);
    void read_interleaved(const json& object, const std::string& path);

    unsigned _nesting;
    ucp_layout_params_t _params{};
    std::vector<layout> _nested;
    std::vector<std::vector<ucp_layout_dim_t>> _dims;
    std::vector<ucp_layout_iov_t> _iov;
    std::vector<ucp_layout_interleaved_t> _interleaved;
};

ucp_layout_element_t reader::element(const json& value, const std::string& path)
{
    if (value.is_object()) {
        _nested.push_back(reader(_nesting + 1).read(value, path));
        return _nested.back().as_element();
    }
    if (value.is_string()) {
        const held_log log;
        _nested.push_back(made_at(layout::parse(value.get_ref<const std::string&>().c_str()), log, path));
        return _nested.back().as_element();
    }
    return {.length = integer<std::size_t>(value, path), .layout = nullptr};
}

std::vector<ucp_layout_dim_t> reader::dims(const json& object, const std::string& path)
{
    std::vector<ucp_layout_dim_t> result;
    const std::string here = join(path, "dims");
    for (const json& item : list(object, path, "dims")) {
        const std::string at = join(here, result.size());
        allow(item, at, {"count", "stride"});
        result.push_back({.count  = integer<std::size_t>(need(item, at, "count"), join(at, "count")),
                          .stride = integer<std::ptrdiff_t>(need(item, at, "stride"), join(at, "stride"))});
    }
    return result;
}

void reader::read_iov(const json& object, const std::string& path)
{
    const std::string here = join(path, "iov");
    for (const json& item : list(object, path, "iov")) {
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

void reader::read_interleaved(const json& object, const std::string& path)
{
    const std::string here = join(path, "interleaved");
    const json& parts      = list(object, path, "interleaved");
    _dims.reserve(parts.size()); // ucp_layout_interleaved_t points into it, so it must not move
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

layout reader::read(const json& object, const std::string& path)
{
    if (_nesting > max_nesting) {
        wrong(path, "more than {} layouts nested", max_nesting);
    }
    if (!object.is_object()) {
        wrong(path, "an object is expected here, not {}", object.type_name());
    }
    const json& kind       = need(object, path, "kind");
    const std::string name = kind.is_string() ? kind.get<std::string>() : "";
    _params.field_mask     = UCP_LAYOUT_PARAM_FIELD_KIND;
    if (name == "contig" || name == "strided") {
        _params.element = element(need(object, path, "element"), join(path, "element"));
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_ELEMENT;
    }
    if (name == "contig") {
        allow(object, path, {"kind", "element", "count", "lb", "extent"});
        _params.kind  = UCP_LAYOUT_KIND_CONTIG;
        _params.count = integer_or<std::size_t>(object, path, "count", 1);
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_COUNT;
    } else if (name == "strided") {
        allow(object, path, {"kind", "element", "dims", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_STRIDED;
        _dims.push_back(dims(object, path));
        _params.dims     = _dims.back().data();
        _params.num_dims = static_cast<unsigned>(_dims.back().size());
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_DIMS;
    } else if (name == "iov") {
        allow(object, path, {"kind", "iov", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_IOV;
        read_iov(object, path);
    } else if (name == "interleaved") {
        allow(object, path, {"kind", "interleaved", "lb", "extent"});
        _params.kind = UCP_LAYOUT_KIND_INTERLEAVED;
        read_interleaved(object, path);
    } else {
        wrong(join(path, "kind"), "one of \"contig\", \"strided\", \"iov\", \"interleaved\" is expected");
    }
    if (object.contains("extent") || object.contains("lb")) {
        _params.lb     = integer_or<std::ptrdiff_t>(object, path, "lb", 0);
        _params.extent = integer<std::size_t>(need(object, path, "extent"), join(path, "extent"));
        _params.field_mask |= UCP_LAYOUT_PARAM_FIELD_EXTENT;
    }
    const held_log log;
    return made_at(layout::create(_params), log, path);
}

} // namespace

layout parse_json_layout(const std::string& text)
{
    json parsed;
    try {
        parsed = json::parse(text);
    } catch (const json::exception& error) { // a number that no double can hold is no parse_error
        // Users cannot read nlohmann's identifiers in brackets.
        const std::string message = error.what();
        const auto start          = message.find("] ");
        wrong("", "{}", start == std::string::npos ? message : message.substr(start + 2));
    }
    return reader(0).read(parsed, "");
}

} // namespace ucxl::tools
