#include "side.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

namespace ucxl::two_process
{

const char* name_of(side_kind kind)
{
    switch (kind) {
    case side_kind::host:
        return "host";
    case side_kind::window:
        return "window";
    case side_kind::allocated:
        return "allocated window";
    case side_kind::shared:
        return "window over shared memory";
    case side_kind::datatype:
        return "datatype";
    }
    return "?";
}

namespace
{

std::vector<void*> pointers(std::span<std::byte* const> bases)
{
    return {bases.begin(), bases.end()};
}

// Copies [true_lb, true_ub) of every source, to or from memory of the library.
template <typename Copy>
void for_each_source(const test::spec& spec, Copy&& copy)
{
    for (const auto& [source, bounds] : test::bounds_of(spec)) {
        if (bounds.true_ub > bounds.true_lb) {
            copy(source, bounds.true_lb, static_cast<std::size_t>(bounds.true_ub - bounds.true_lb));
        }
    }
}

} // namespace

side::side(session& session, const side_plan& plan, std::uint64_t length)
    : _session(session), _kind(plan.kind), _seed(plan.seed), _before(plan.before), _length(length), _count(length)
{
    test::random random(plan.seed);
    if (_kind == side_kind::datatype) {
        make_datatype(random, length);
        return;
    }
    const std::uint64_t total = plan.before + length + plan.after;
    _spec                     = _kind == side_kind::host ? test::spec::block(total) : spec_of_length(random, total);
    _misalign                 = random.below(64);
    make_memory();
    if (_kind == side_kind::host) {
        make_host(plan);
    } else {
        make_window();
    }
    _buffer    = static_cast<std::byte*>(_buffer) + plan.before;
    _pass_memh = plan.pass_memh;
}

side::~side()
{
    if (_kind == side_kind::host && _memh != nullptr) {
        ucp_mem_unmap(_session.context(), _memh);
    }
}

void side::make_memory()
{
    _actual   = std::make_unique<test::spec_memory>(*_spec, _seed, _misalign);
    _expected = std::make_unique<test::spec_memory>(*_spec, _seed, _misalign);
}

void side::make_host(const side_plan& plan)
{
    _buffer = _actual->bases()[0];
    if (!plan.remote && !plan.pass_memh) {
        return;
    }
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = _buffer;
    params.length     = std::max<std::uint64_t>(1, _actual->packed_length()); // the margin behind is ours too
    check_ok(ucp_mem_map(_session.context(), &params, &_memh), "ucp_mem_map");
}

// Pieces of a page or more, and sources at any place in them.
std::vector<void*> side::make_shared_bases()
{
    // A source without bytes has an address of its own, too: windows of equal content would be one.
    std::vector<void*> bases = pointers(_actual->bases());
    test::random random(_seed);
    const bool is_one_piece = random.one_in(2);
    std::size_t total       = 0;
    for_each_source(*_spec, [&](std::uint32_t, std::int64_t, std::size_t length) { total += length + 64; });
    std::size_t at = 0;
    _shared.clear();
    for_each_source(*_spec, [&](std::uint32_t source, std::int64_t lb, std::size_t length) {
        if (_shared.empty() || !is_one_piece) {
            auto made = ucx_layout::memory::allocate(is_one_piece ? total : length + 64);
            check(made.has_value(), "ucp_layout_memory_create of {} bytes", length);
            _shared.push_back(std::move(*made));
            at = 0;
        }
        std::byte* const first = _shared.back().bytes().data() + at + random.below(64);
        bases[source]          = first - lb;
        at += length + 64;
    });
    return bases;
}

void side::make_window()
{
    const bool allocate = _kind == side_kind::allocated;

    const auto layout = create_layout(*_spec);
    check(layout.packed_length() == _actual->packed_length(), "{} has packed length {}, not {}", to_string(*_spec),
          layout.packed_length(), _actual->packed_length());
    const auto bases = _kind == side_kind::shared ? make_shared_bases() : pointers(_actual->bases());
    auto created     = allocate ? ucx_layout::window::allocate(_session.context(), layout)
                                : ucx_layout::window::map(_session.context(), layout, bases);
    check(created.has_value(), "no window of {}: {}", to_string(*_spec),
          ucs_status_string(created ? UCS_OK : created.error()));
    _window.emplace(std::move(*created));
    _memh   = _window->memh();
    _buffer = _window->address();
    if (allocate) {
        _library_bases.resize(_actual->bases().size());
        check_ok(_window->bases(_library_bases), "ucp_layout_window_bases");
    } else if (_kind == side_kind::shared) {
        _library_bases = bases;
    }
    if (!_library_bases.empty()) {
        move_to_library();
    }
}

// Uses several elements only for a layout of one source.
void side::make_datatype(test::random& random, std::uint64_t length)
{
    std::uint64_t count = 1;
    for (const std::uint64_t candidate : {2u, 3u, 7u, 64u}) {
        if (length > 0 && length % candidate == 0 && length / candidate >= length / 4096 && random.one_in(2)) {
            count = candidate;
        }
    }
    const auto element = spec_of_length(random, length / count, count > 1 ? 1 : 3);
    _spec              = count > 1 ? test::spec::contig(count, element) : element;
    _misalign          = random.below(64);
    make_memory();
    auto created = ucx_layout::datatype::create(create_layout(*element));
    check(created.has_value(), "ucp_layout_datatype_create: {}", ucs_status_string(created ? UCS_OK : created.error()));
    _datatype.emplace(std::move(*created));
    _count          = count;
    _datatype_bases = pointers(_actual->bases());
    _buffer         = _datatype_bases.size() > 1 ? static_cast<void*>(_datatype_bases.data()) : _datatype_bases[0];
}

void side::move_to_library()
{
    for_each_source(*_spec, [&](std::uint32_t source, std::int64_t lb, std::size_t length) {
        std::memcpy(static_cast<std::byte*>(_library_bases[source]) + lb, _actual->bases()[source] + lb, length);
    });
}

void side::move_from_library()
{
    for_each_source(*_spec, [&](std::uint32_t source, std::int64_t lb, std::size_t length) {
        std::memcpy(_actual->bases()[source] + lb, static_cast<std::byte*>(_library_bases[source]) + lb, length);
    });
}

void side::describe_to(ucp_request_param_t& param) const
{
    if (_datatype) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = _datatype->get();
    }
    if (_pass_memh) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = _memh;
    }
}

void side::put_message(std::span<const std::byte> message)
{
    _actual->scatter(_before, message);
    _expected->scatter(_before, message);
    if (!_library_bases.empty()) {
        move_to_library();
    }
}

void side::expect_message(std::span<const std::byte> message)
{
    _expected->scatter(_before, message);
}

bool side::has_begun() const
{
    const std::uint64_t first = std::min<std::uint64_t>(_length, 4096);
    return _actual->gather(_before, first) != _expected->gather(_before, first);
}

void side::accept_content()
{
    if (!_library_bases.empty()) {
        move_from_library();
    }
    _expected->scatter(_before, _actual->gather(_before, _length));
}

void side::verify()
{
    if (!_library_bases.empty()) {
        move_from_library();
    }
    const auto difference = _actual->first_difference(*_expected);
    check(difference.empty(), "memory is not as it has to be: {}\n  of {}", difference, text());
}

void side::rebind()
{
    if (_kind == side_kind::shared) {
        move_from_library();
        const auto before = std::exchange(_shared, {});
        ++_seed; // other places
        _library_bases = make_shared_bases();
        move_to_library();
        check_ok(_window->rebind(_library_bases), "ucp_layout_rebind");
        return;
    }

    auto other = std::make_unique<test::spec_memory>(*_spec, _seed, _misalign);
    other->scatter(0, _actual->gather());
    check_ok(_window->rebind(pointers(other->bases())), "ucp_layout_rebind");
    // The old memory under the window must not be touched any more. It is freed, so that sanitizers detect an access.
    _actual = std::move(other);
}

std::string side::text() const
{
    std::string spec = to_string(*_spec);
    if (spec.size() > 2000) {
        spec.replace(2000, spec.npos, "...");
    }
    return std::format("{}, packed offset {}, count {}: {}", name_of(_kind), _before, _count, spec);
}

} // namespace ucxl::two_process
