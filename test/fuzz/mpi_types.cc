// Datatypes of an MPI that is this file: any tree of constructors with any arguments, as a program may give them to an
// MPI that does not check, or an MPI may make up. Each is refused with a reason, or becomes a layout of the bytes that
// the MPI standard says (5.1), as a plain list of all offsets has them (src/mpi/type_layout.cc).
#include "fuzz_target.h"

#include "mpi/basic_type.h"
#include "mpi/type_contents.h"
#include "mpi/type_layout.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

using namespace ucxl;
using fuzz::require;

namespace
{

using offsets = std::vector<MPI_Count>;

constexpr std::size_t max_bytes   = 4096; // of a datatype whose bytes are listed
constexpr MPI_Count max_distance  = MPI_Count{1} << 20;
constexpr std::size_t max_types   = 24;
constexpr std::size_t max_entries = 40;

struct made_type {
    int combiner = MPI_COMBINER_NAMED;
    std::vector<int> integers;
    std::vector<MPI_Count> addresses;
    std::vector<MPI_Count> counts; // makes it one with large counts
    std::vector<MPI_Datatype> types;
    MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0; // as MPI says
    std::optional<offsets> bytes;                                         // in packed order, where they are few
    bool is_true = false; // MPI says the truth of it and of all that it was made of
};

struct named_type {
    MPI_Datatype handle;
    int size;
    int extent;
};

constexpr named_type named_types[]  = {{MPI_BYTE, 1, 1}, {MPI_INT, 4, 4}, {MPI_DOUBLE, 8, 8}, {MPI_SHORT_INT, 6, 8}};
constexpr MPI_Datatype first_handle = 0x70000000;

// What this MPI knows while one input is tried.
std::vector<made_type> types;

made_type* find(MPI_Datatype handle)
{
    const auto index = static_cast<std::size_t>(handle) - static_cast<std::size_t>(first_handle);
    return index < types.size() ? &types[index] : nullptr;
}

const named_type* find_named(MPI_Datatype handle)
{
    const auto found = std::ranges::find(named_types, handle, &named_type::handle);
    return found == std::end(named_types) ? nullptr : found;
}

class reader : public fuzz::byte_reader
{
public:
    using byte_reader::byte_reader;

    // Small ones most of the time, and all of 64 bits.
    MPI_Count number()
    {
        const std::uint8_t kind = byte();
        if (kind < 0xf0) {
            return static_cast<MPI_Count>(kind % 64) - 8;
        }
        std::uint64_t value = 0;
        for (int i = 0; i < 8; ++i) {
            value = value << 8 | byte();
        }
        return static_cast<MPI_Count>(kind < 0xf8 ? static_cast<std::int64_t>(static_cast<std::int32_t>(value))
                                                  : static_cast<std::int64_t>(value));
    }
};

MPI_Count extent_of(MPI_Datatype handle)
{
    const named_type* const named = find_named(handle);
    return named != nullptr ? named->extent : find(handle)->extent;
}

std::optional<offsets> bytes_of(MPI_Datatype handle)
{
    if (handle == MPI_SHORT_INT) {
        return offsets{0, 1, 4, 5, 6, 7};
    }
    if (const named_type* const named = find_named(handle)) {
        offsets all;
        for (int i = 0; i < named->size; ++i) {
            all.push_back(i);
        }
        return all;
    }
    return find(handle)->bytes;
}

// A datatype is a list of children at displacements. Anything wrong or large makes it one without a list.
class placed_children
{
public:
    // `count` children from `displacement` on, each at the extent of the one before.
    void add(MPI_Datatype child, MPI_Count displacement, MPI_Count count)
    {
        const auto bytes       = bytes_of(child);
        const MPI_Count extent = extent_of(child);
        if (!bytes || count < 0 || count > MPI_Count{max_bytes} || !is_near(displacement) || !is_near(extent)) {
            _is_listed = false;
            return;
        }
        for (MPI_Count i = 0; i < count && _is_listed; ++i) {
            const MPI_Count begin = displacement + i * extent;
            _lb                   = std::min(_lb.value_or(begin), begin);
            _ub                   = std::max(_ub.value_or(begin + extent), begin + extent);
            for (const MPI_Count each : *bytes) {
                _bytes.push_back(begin + each);
            }
            _is_listed = _bytes.size() <= max_bytes && is_near(begin);
        }
    }

    void refuse() { _is_listed = false; }

    // Bounds are those of all children; extents of structures are not padded.
    void finish(made_type& type) const
    {
        if (!_is_listed) {
            return;
        }
        type.bytes  = _bytes;
        type.size   = static_cast<MPI_Count>(_bytes.size());
        type.lb     = _lb.value_or(0);
        type.extent = _ub.value_or(0) - type.lb;
        set_true_bounds(type);
    }

    static void set_true_bounds(made_type& type)
    {
        if (!type.bytes->empty()) {
            const auto [first, last] = std::ranges::minmax(*type.bytes);
            type.true_lb             = first;
            type.true_extent         = last + 1 - first;
        }
    }

    static bool is_near(MPI_Count distance) { return distance > -max_distance && distance < max_distance; }

private:
    bool _is_listed = true;
    offsets _bytes;
    std::optional<MPI_Count> _lb, _ub;
};

MPI_Count times(MPI_Count a, MPI_Count b)
{
    MPI_Count product = 0;
    return __builtin_mul_overflow(a, b, &product) ? max_distance : product;
}

// Arguments in the order of MPI's small form.
struct arguments {
    std::vector<MPI_Count> integers, addresses;

    std::optional<MPI_Count> integer(std::size_t i) const
    {
        return i < integers.size() ? std::optional(integers[i]) : std::nullopt;
    }
};

void place_vector(placed_children& placed, const arguments& given, MPI_Datatype child, bool is_bytes)
{
    if (given.integers.size() < 2 || given.integers[0] > MPI_Count{max_bytes} || given.integers[0] < 0) {
        placed.refuse();
        return;
    }
    const MPI_Count stride = is_bytes ? given.addresses.at(0) : times(given.integers.at(2), extent_of(child));
    for (MPI_Count i = 0; i < given.integers[0]; ++i) {
        placed.add(child, times(i, stride), given.integers[1]);
    }
}

void place_list(placed_children& placed, const arguments& given, MPI_Datatype child, bool is_equal, bool is_bytes)
{
    const auto count = static_cast<std::size_t>(given.integers.at(0));
    if (given.integers[0] < 0 || count > max_entries || (is_equal && given.integers.size() < 2)) {
        placed.refuse();
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const MPI_Count length       = given.integers.at(is_equal ? 1 : 1 + i);
        const MPI_Count displacement = is_bytes
                                           ? given.addresses.at(i)
                                           : times(given.integers.at((is_equal ? 2 : 1 + count) + i), extent_of(child));
        placed.add(child, displacement, length);
    }
}

void place_structure(placed_children& placed, const arguments& given, std::span<const MPI_Datatype> children)
{
    const auto count = static_cast<std::size_t>(given.integers.at(0));
    if (given.integers[0] < 0 || count > children.size()) {
        placed.refuse();
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        placed.add(children[i], given.addresses.at(i), given.integers.at(1 + i));
    }
}

void place_subarray(placed_children& placed, const arguments& given, MPI_Datatype child)
{
    const auto dims = static_cast<std::size_t>(given.integers.at(0));
    if (given.integers[0] < 1 || dims > 4 || given.integers.size() < 2 + 3 * dims) {
        placed.refuse();
        return;
    }
    const auto value   = [&](std::size_t array, std::size_t dim) { return given.integers[1 + array * dims + dim]; };
    const bool is_c    = given.integers[1 + 3 * dims] == MPI_ORDER_C;
    MPI_Count elements = 1, whole = 1;
    for (std::size_t dim = 0; dim < dims; ++dim) {
        const bool is_right = value(0, dim) >= 1 && value(1, dim) >= 1 && value(2, dim) >= 0 &&
                              value(0, dim) < max_distance && value(1, dim) <= value(0, dim) &&
                              value(2, dim) <= value(0, dim) - value(1, dim);
        if (!is_right || (!is_c && given.integers[1 + 3 * dims] != MPI_ORDER_FORTRAN)) {
            placed.refuse();
            return;
        }
        elements = times(elements, value(1, dim));
        whole    = times(whole, value(0, dim));
    }
    if (elements > MPI_Count{max_bytes} || whole >= max_distance) {
        placed.refuse();
        return;
    }
    for (MPI_Count i = 0; i < elements; ++i) { // the element's indices, from the fastest dimension to the slowest
        MPI_Count rest = i, at = 0, stride = 1;
        for (std::size_t step = 0; step < dims; ++step) {
            const std::size_t dim = is_c ? dims - 1 - step : step;
            at += (value(2, dim) + rest % value(1, dim)) * stride;
            rest /= value(1, dim);
            stride *= value(0, dim);
        }
        placed.add(child, times(at, extent_of(child)), 1);
    }
}

constexpr int combiners[] = {MPI_COMBINER_DUP,           MPI_COMBINER_CONTIGUOUS,
                             MPI_COMBINER_VECTOR,        MPI_COMBINER_HVECTOR,
                             MPI_COMBINER_INDEXED,       MPI_COMBINER_HINDEXED,
                             MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
                             MPI_COMBINER_STRUCT,        MPI_COMBINER_SUBARRAY,
                             MPI_COMBINER_DARRAY,        MPI_COMBINER_RESIZED,
                             MPI_COMBINER_F90_REAL,      4711};

void place(placed_children& placed, made_type& type, const arguments& given)
{
    const MPI_Datatype child = type.types.at(0);
    switch (type.combiner) {
    case MPI_COMBINER_DUP:
        placed.add(child, 0, 1);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        placed.add(child, 0, given.integers.at(0));
        break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        place_vector(placed, given, child, type.combiner == MPI_COMBINER_HVECTOR);
        break;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        place_list(placed, given, child,
                   type.combiner == MPI_COMBINER_INDEXED_BLOCK || type.combiner == MPI_COMBINER_HINDEXED_BLOCK,
                   type.combiner == MPI_COMBINER_HINDEXED || type.combiner == MPI_COMBINER_HINDEXED_BLOCK);
        break;
    case MPI_COMBINER_STRUCT:
        place_structure(placed, given, type.types);
        break;
    case MPI_COMBINER_SUBARRAY:
        place_subarray(placed, given, child);
        break;
    case MPI_COMBINER_RESIZED:
        placed.add(child, 0, 1);
        break;
    default: // bytes of distributed arrays are compared with those of MPI in gtest_mpi
        placed.refuse();
    }
}

template <typename Number, typename List>
void append(std::vector<Number>& to, const List& from)
{
    for (const MPI_Count each : from) {
        to.push_back(static_cast<Number>(each));
    }
}

// Arguments of a constructor with large counts, as MPI lists them (MPI 4.1, 5.1.13). What is missing stays out.
void set_large_arguments(made_type& type, const arguments& given)
{
    const auto some = [](const std::vector<MPI_Count>& all, std::size_t begin, std::size_t number) {
        return all | std::views::drop(begin) | std::views::take(number);
    };
    const auto number_at = [&](std::size_t i) {
        return static_cast<std::size_t>(std::clamp(given.integer(i).value_or(0), MPI_Count{0}, MPI_Count{max_entries}));
    };
    const std::size_t number = number_at(0);
    switch (type.combiner) {
    case MPI_COMBINER_HVECTOR:
        append(type.counts, some(given.integers, 0, 2));
        append(type.counts, some(given.addresses, 0, 1));
        break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
        append(type.counts, some(given.integers, 0, 1 + number));
        append(type.counts, some(given.addresses, 0, number));
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        append(type.counts, some(given.integers, 0, 2));
        append(type.counts, some(given.addresses, 0, number));
        break;
    case MPI_COMBINER_SUBARRAY:
        append(type.integers, some(given.integers, 0, 1));
        append(type.counts, some(given.integers, 1, 3 * number));
        append(type.integers, some(given.integers, 1 + 3 * number, 1));
        break;
    case MPI_COMBINER_DARRAY:
        append(type.integers, some(given.integers, 0, 3));
        append(type.counts, some(given.integers, 3, number_at(2)));
        append(type.integers, some(given.integers, 3 + number_at(2), max_entries));
        break;
    case MPI_COMBINER_RESIZED:
        type.counts = given.addresses;
        break;
    case MPI_COMBINER_DUP: // has none
        break;
    default:
        type.counts = given.integers;
    }
}

// What MPI knows of a new datatype. Where an argument is missing it says that it has no bytes.
void describe(made_type& type, const arguments& given)
{
    placed_children placed;
    try {
        place(placed, type, given);
        placed.finish(type);
        if (type.bytes && type.combiner == MPI_COMBINER_SUBARRAY) { // its bounds are those of the whole array
            type.lb     = 0;
            type.extent = extent_of(type.types[0]);
            for (std::size_t dim = 0; dim < static_cast<std::size_t>(given.integers[0]); ++dim) {
                type.extent = times(type.extent, given.integers[1 + dim]);
            }
        }
        if (type.bytes && type.combiner == MPI_COMBINER_RESIZED) {
            type.lb     = given.addresses.at(0);
            type.extent = given.addresses.at(1);
        }
    } catch (const std::out_of_range&) {
        type.bytes.reset();
    }
}

void make_type(reader& from)
{
    made_type type;
    const std::uint8_t kind        = from.byte();
    type.combiner                  = combiners[kind % std::size(combiners)];
    const std::size_t num_children = 1 + (type.combiner == MPI_COMBINER_STRUCT ? from.byte() % 6 : 0);
    for (std::size_t i = 0; i < num_children; ++i) {
        const std::uint8_t choice = from.byte();
        const std::size_t known   = std::size(named_types) + types.size();
        const std::size_t index   = choice == 0xff ? known : choice % known; // 0xff: itself
        type.types.push_back(index < std::size(named_types)
                                 ? named_types[index].handle
                                 : first_handle + static_cast<int>(index - std::size(named_types)));
    }
    arguments given;
    for (std::size_t count = from.byte() % (max_entries + 1); count > 0; --count) {
        given.integers.push_back(from.number());
    }
    for (std::size_t count = from.byte() % (max_entries + 1); count > 0; --count) {
        given.addresses.push_back(from.number());
    }
    const bool is_lie = (kind & 0x30) == 0x30;
    if (kind >= 0xc0 && is_lie) { // with large counts, in whatever order
        type.counts = given.integers;
        type.integers.assign(given.addresses.begin(), given.addresses.end());
    } else if (kind >= 0xc0) {
        set_large_arguments(type, given);
    } else {
        type.integers.assign(given.integers.begin(), given.integers.end());
        given.integers.assign(type.integers.begin(), type.integers.end()); // as 32 bits hold them
        type.addresses = given.addresses;
    }
    const bool is_cycle = std::ranges::contains(type.types, first_handle + static_cast<int>(types.size()));
    if (!is_cycle && !is_lie) {
        describe(type, given);
    }
    if (!type.bytes) { // an MPI that makes up what it says, or knows it alone
        for (MPI_Count* each : {&type.size, &type.lb, &type.extent, &type.true_lb, &type.true_extent}) {
            *each = from.number();
        }
    }
    type.is_true = type.bytes && std::ranges::all_of(type.types, [](MPI_Datatype each) {
                       const made_type* const made = find(each);
                       return made == nullptr || made->is_true;
                   });
    types.push_back(std::move(type));
}

void check_bytes(const mpi::type_layout& layout, const made_type& type)
{
    require(layout.extent == type.extent, "the extent is that of MPI");
    if (type.size == 0) {
        return;
    }
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(type.true_extent));
    for (std::size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    }
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(type.size));
    void* const base = memory.data();
    require(ucp_layout_gather(layout.layout.get(), &base, 1, 0, packed.size(), packed.data()) == UCS_OK, "it packs");
    for (std::size_t i = 0; i < packed.size(); ++i) {
        const auto at = static_cast<std::size_t>((*type.bytes)[i] - type.true_lb);
        require(packed[i] == memory[at], "packed bytes are those of MPI");
    }
}

// Reasons to refuse a datatype that are true only of one whose MPI lies.
bool is_misread(std::string_view reason)
{
    return reason == "MPI gives it another size or other bounds" || reason == "MPI does not tell how it was made" ||
           reason == "MPI lists fewer arguments than expected";
}

void check_type(std::size_t index)
{
    const MPI_Datatype handle = first_handle + static_cast<int>(index);
    const made_type& type     = types[index];
    const auto made           = mpi::type_layout_of(handle);
    mpi::basic_type_of(handle);
    if (!made) {
        require(std::strlen(made.error()) > 0, "a reason is given");
        require(!type.is_true || !is_misread(made.error()), "arguments in the order of MPI are understood");
        return;
    }
    const mpi::type_layout& layout = **made;
    require(layout.size == type.size, "the size is that of MPI");
    if (layout.size > 0) {
        require(layout.origin == type.true_lb && layout.span == type.true_extent, "the bounds are those of MPI");
    }
    if (type.bytes) {
        check_bytes(layout, type);
    }
    if (const auto several = mpi::repeated(*made, 3); several && (*several)->size > 0) {
        require((*several)->size == 3 * layout.size, "three have three times the bytes");
    }
}

template <typename To, typename From>
void copy_list(To* to, const std::vector<From>& from)
{
    std::ranges::transform(from, to, [](From each) { return static_cast<To>(each); });
}

} // namespace

// What the library asks MPI. Handles that are none end the target: nobody may make them up.
extern "C" {

int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses, MPI_Count* counts,
                             MPI_Count* num_types, int* combiner)
{
    const made_type* const made = find(type);
    require(made != nullptr || find_named(type) != nullptr, "a datatype that was never made");
    const made_type none;
    const made_type& shown = made != nullptr ? *made : none;
    *integers              = static_cast<MPI_Count>(shown.integers.size());
    *addresses             = static_cast<MPI_Count>(shown.addresses.size());
    *counts                = static_cast<MPI_Count>(shown.counts.size());
    *num_types             = static_cast<MPI_Count>(shown.types.size());
    *combiner              = shown.combiner;
    return MPI_SUCCESS;
}

int PMPI_Type_get_contents_c(MPI_Datatype type, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int* integers,
                             MPI_Aint* addresses, MPI_Count* counts, MPI_Datatype* inner)
{
    const made_type& made = *find(type);
    copy_list(integers, made.integers);
    copy_list(addresses, made.addresses);
    copy_list(counts, made.counts);
    copy_list(inner, made.types);
    return MPI_SUCCESS;
}

int PMPI_Type_get_contents(MPI_Datatype type, int, int, int, int* integers, MPI_Aint* addresses, MPI_Datatype* inner)
{
    const made_type& made = *find(type);
    copy_list(integers, made.integers);
    copy_list(addresses, made.addresses);
    copy_list(inner, made.types);
    return MPI_SUCCESS;
}

int PMPI_Type_free(MPI_Datatype* type)
{
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count* size)
{
    const named_type* const named = find_named(type);
    *size                         = named != nullptr ? named->size : find(type)->size;
    return MPI_SUCCESS;
}

int PMPI_Type_get_extent_x(MPI_Datatype type, MPI_Count* lb, MPI_Count* extent)
{
    const named_type* const named = find_named(type);
    *lb                           = named != nullptr ? 0 : find(type)->lb;
    *extent                       = named != nullptr ? named->extent : find(type)->extent;
    return MPI_SUCCESS;
}

int PMPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count* lb, MPI_Count* extent)
{
    const named_type* const named = find_named(type);
    *lb                           = named != nullptr ? 0 : find(type)->true_lb;
    *extent                       = named != nullptr ? named->extent : find(type)->true_extent;
    return MPI_SUCCESS;
}
}

UCXL_FUZZ_TARGET(mpi_types)
{
    types.clear();
    reader from(std::span(data, size));
    while (!from.is_empty() && types.size() < max_types) {
        make_type(from);
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        check_type(i);
    }
    return 0;
}
