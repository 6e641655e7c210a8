#include "random_type.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ucxl::test
{

namespace
{

constexpr int max_size           = 40000; // bytes of one element
constexpr MPI_Aint max_extent    = 1 << 20;
constexpr std::size_t guard_size = 64;
constexpr bool has_large_counts  = MPI_VERSION >= 4;

// A datatype that is freed with the object, unless MPI owns it.
struct made_type {
    MPI_Datatype type;
    std::string text;
    bool is_owned = true;

    made_type(MPI_Datatype made, std::string made_text, bool is_own)
        : type(made), text(std::move(made_text)), is_owned(is_own)
    {
    }
    made_type(made_type&& moved) noexcept : type(moved.type), text(std::move(moved.text)), is_owned(moved.is_owned)
    {
        moved.is_owned = false;
    }
    made_type(const made_type&)            = delete;
    made_type& operator=(const made_type&) = delete;
    ~made_type()
    {
        if (is_owned) {
            MPI_Type_free(&type);
        }
    }
};

MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lb = 0, extent = 0;
    MPI_Type_get_extent(type, &lb, &extent);
    return extent;
}

// An argument of constructors with small counts and of those with large ones.
template <typename Small>
class both_lists
{
public:
    explicit both_lists(const std::vector<Small>& small) : _small(small), _large(small.begin(), small.end()) {}
    operator const Small*() const { return _small.data(); }
    operator const MPI_Count*() const
        requires(!std::is_same_v<Small, MPI_Count>)
    {
        return _large.data();
    }

private:
    std::vector<Small> _small;
    std::vector<MPI_Count> _large;
};

// A constructor of the level, with large counts if it has them.
#if MPI_VERSION >= 4
#define MAKE_TYPE(name, ...) (_is_large ? MPI_Type_##name##_c(__VA_ARGS__) : MPI_Type_##name(__VA_ARGS__))
#else
#define MAKE_TYPE(name, ...) MPI_Type_##name(__VA_ARGS__)
#endif

// Makes one level of a tree: a constructor over the child. Strides and displacements leave room for the child, so most
// results name no byte twice.
class level
{
public:
    level(random& numbers, const made_type& child) : _numbers(numbers), _child(child)
    {
        MPI_Aint lb = 0, true_extent = 0;
        MPI_Type_get_true_extent(child.type, &lb, &true_extent);
        _extent = std::max<MPI_Aint>(extent_of(child.type), 1);
        _room   = std::max(_extent, true_extent);
        // Of a copy, so that all else is as without large counts.
        random copy(numbers);
        _is_large = has_large_counts && derive_seed(copy.next(), 1) % 3 == 0;
    }

    made_type make()
    {
        using maker              = made_type (level::*)();
        constexpr maker makers[] = {&level::contiguous,     &level::vector,    &level::hvector,
                                    &level::indexed,        &level::hindexed,  &level::indexed_block,
                                    &level::hindexed_block, &level::structure, &level::subarray,
                                    &level::darray,         &level::resized,   &level::duplicate};
        return (this->*makers[_numbers.below(std::size(makers))])();
    }

private:
    int some(int max) { return static_cast<int>(_numbers.between(1, max)); }
    made_type done(MPI_Datatype type, const std::string& name) const
    {
        return {type, name + (_is_large ? "_c(" : "(") + _child.text + ")", true};
    }

    made_type contiguous()
    {
        MPI_Datatype type;
        const int count = some(8);
        MAKE_TYPE(contiguous, count, _child.type, &type);
        return done(type, "contiguous" + std::to_string(count));
    }

    made_type vector()
    {
        MPI_Datatype type;
        const int count = some(12), length = some(4);
        int stride = length * static_cast<int>((_room + _extent - 1) / _extent) + some(3) - 1;
        stride *= _numbers.one_in(4) ? -1 : 1;
        MAKE_TYPE(vector, count, length, stride, _child.type, &type);
        return done(type,
                    "vector" + std::to_string(count) + "," + std::to_string(length) + "," + std::to_string(stride));
    }

    made_type hvector()
    {
        MPI_Datatype type;
        const int count = some(12), length = some(4);
        MPI_Aint stride = (length - 1) * _extent + _room + static_cast<MPI_Aint>(_numbers.below(40));
        stride *= _numbers.one_in(4) ? -1 : 1;
        MAKE_TYPE(create_hvector, count, length, stride, _child.type, &type);
        return done(type,
                    "hvector" + std::to_string(count) + "," + std::to_string(length) + "," + std::to_string(stride));
    }

    // Lengths and places of blocks, in elements of the child.
    void draw_blocks(bool are_equal)
    {
        const int count = some(10);
        int place       = 0;
        _lengths.clear();
        _places.clear();
        for (int i = 0; i < count; ++i) {
            _lengths.push_back(are_equal && i > 0 ? _lengths[0] : some(4) - (are_equal ? 0 : 1));
            _places.push_back(place);
            place += (_lengths.back() + 1) * static_cast<int>((_room + _extent - 1) / _extent) + some(3) - 1;
        }
        if (!are_equal && _lengths[0] == 0) {
            _lengths[0] = 1;
        }
        if (_numbers.one_in(3)) {
            _numbers.shuffle(_places);
            std::ranges::fill(_lengths, 1);
        }
        _offsets.clear();
        for (const int each : _places) {
            _offsets.push_back(each * _extent + (_extent % 2));
        }
    }

    int number() const { return static_cast<int>(_lengths.size()); }

    made_type indexed()
    {
        MPI_Datatype type;
        draw_blocks(false);
        MAKE_TYPE(indexed, number(), both_lists(_lengths), both_lists(_places), _child.type, &type);
        return done(type, "indexed" + std::to_string(number()));
    }

    made_type hindexed()
    {
        MPI_Datatype type;
        draw_blocks(false);
        MAKE_TYPE(create_hindexed, number(), both_lists(_lengths), both_lists(_offsets), _child.type, &type);
        return done(type, "hindexed" + std::to_string(number()));
    }

    made_type indexed_block()
    {
        MPI_Datatype type;
        draw_blocks(true);
        MAKE_TYPE(create_indexed_block, number(), _lengths[0], both_lists(_places), _child.type, &type);
        return done(type, "indexed_block" + std::to_string(number()));
    }

    made_type hindexed_block()
    {
        MPI_Datatype type;
        draw_blocks(true);
        MAKE_TYPE(create_hindexed_block, number(), _lengths[0], both_lists(_offsets), _child.type, &type);
        return done(type, "hindexed_block" + std::to_string(number()));
    }

    made_type structure()
    {
        MPI_Datatype type;
        draw_blocks(false);
        std::vector<MPI_Datatype> types(_lengths.size(), _child.type);
        for (std::size_t i = 1; i < types.size(); i += 2) {
            types[i] = MPI_INT; // which is not longer than the child
        }
        MAKE_TYPE(create_struct, number(), both_lists(_lengths), both_lists(_offsets), types.data(), &type);
        return done(type, "struct" + std::to_string(number()));
    }

    int order() { return _numbers.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

    made_type subarray()
    {
        MPI_Datatype type;
        const int dims = some(3);
        std::vector<int> sizes, parts, starts;
        for (int i = 0; i < dims; ++i) {
            sizes.push_back(some(6));
            parts.push_back(some(sizes.back()));
            starts.push_back(static_cast<int>(_numbers.below(static_cast<std::uint64_t>(sizes[i] - parts[i] + 1))));
        }
        MAKE_TYPE(create_subarray, dims, both_lists(sizes), both_lists(parts), both_lists(starts), order(), _child.type,
                  &type);
        return done(type, "subarray" + std::to_string(dims));
    }

    made_type darray()
    {
        MPI_Datatype type;
        const int dims = some(2);
        std::vector<int> sizes, kinds, arguments, grid;
        int processes = 1;
        for (int i = 0; i < dims; ++i) {
            const int kind = static_cast<int>(_numbers.below(3));
            grid.push_back(kind == 0 ? 1 : some(3));
            sizes.push_back(grid.back() * some(5));
            kinds.push_back(kind == 0 ? MPI_DISTRIBUTE_NONE : kind == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC);
            arguments.push_back(kind == 2 && _numbers.one_in(2) ? some(2) : MPI_DISTRIBUTE_DFLT_DARG);
            processes *= grid.back();
        }
        const int rank = static_cast<int>(_numbers.below(static_cast<std::uint64_t>(processes)));
        MAKE_TYPE(create_darray, processes, rank, dims, both_lists(sizes), kinds.data(), arguments.data(), grid.data(),
                  order(), _child.type, &type);
        return done(type, "darray" + std::to_string(dims));
    }

    made_type resized()
    {
        MPI_Datatype type;
        const auto lb = static_cast<MPI_Aint>(_numbers.between(-16, 16));
        MAKE_TYPE(create_resized, _child.type, lb, _room + static_cast<MPI_Aint>(_numbers.below(24)), &type);
        return done(type, "resized" + std::to_string(lb));
    }

    made_type duplicate()
    {
        MPI_Datatype type;
        MPI_Type_dup(_child.type, &type);
        _is_large = false;
        return done(type, "dup");
    }

    random& _numbers;
    const made_type& _child;
    MPI_Aint _extent = 0, _room = 0;
    bool _is_large = false;
    std::vector<int> _lengths, _places;
    std::vector<MPI_Aint> _offsets;
};

bool fits(MPI_Datatype type)
{
    int size         = 0;
    MPI_Aint lb      = 0;
    MPI_Aint extent  = 0;
    MPI_Aint true_lb = 0, true_extent = 0;
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    return size > 0 && size <= max_size && true_extent <= max_extent && extent <= max_extent && extent >= -max_extent;
}

// MPI unpacks ones: as many bytes must change as there are. For the number of elements that tests use.
bool names_bytes_once(MPI_Datatype type)
{
    constexpr int count = 4;
    MPI_Type_commit(&type);
    typed_memory memory(type, count);
    int size = 0;
    MPI_Type_size(type, &size);
    std::ranges::fill(memory.bytes(), static_cast<unsigned char>(0));
    memory.unpack(std::vector<unsigned char>(static_cast<std::size_t>(count * size), 1));
    return std::ranges::count(memory.bytes(), 1) == count * size;
}

made_type draw(random& numbers)
{
    made_type current(MPI_INT, "int", false);
    const auto depth = numbers.between(1, 4);
    for (int i = 0; i < depth; ++i) {
        made_type next = level(numbers, current).make();
        if (!fits(next.type) || !names_bytes_once(next.type)) {
            continue;
        }
        std::swap(current.type, next.type);
        std::swap(current.text, next.text);
        std::swap(current.is_owned, next.is_owned);
    }
    return current;
}

} // namespace

std::string name_of_types;

random_type::random_type(random& numbers)
{
    made_type made = draw(numbers);
    while (!made.is_owned) {
        made_type next = draw(numbers);
        std::swap(made.type, next.type);
        std::swap(made.text, next.text);
        std::swap(made.is_owned, next.is_owned);
    }
    made.is_owned = false;
    _type         = made.type;
    _text         = made.text;
    MPI_Type_commit(&_type);
    MPI_Type_size(_type, &_size);
    if (!name_of_types.empty()) {
        MPI_Type_set_name(_type, name_of_types.c_str());
    }
}

random_type::~random_type()
{
    if (_type != MPI_DATATYPE_NULL) {
        MPI_Type_free(&_type);
    }
}

typed_memory::typed_memory(MPI_Datatype type, int count) : _type(type), _count(count)
{
    MPI_Aint lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    const MPI_Aint distance = (count - 1) * extent;
    const MPI_Aint first    = true_lb + std::min<MPI_Aint>(distance, 0);
    const MPI_Aint end      = true_lb + true_extent + std::max<MPI_Aint>(distance, 0);
    _bytes.resize(static_cast<std::size_t>(end - first) + 2 * guard_size);
    _offset = guard_size - static_cast<std::size_t>(first);
}

void typed_memory::fill(random& numbers)
{
    // Eight bytes of each number: this is called so often that one takes an eighth of a run.
    for (std::size_t at = 0; at < _bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t number = numbers.next();
        std::memcpy(&_bytes[at], &number, std::min(sizeof(number), _bytes.size() - at));
    }
}

std::vector<unsigned char> typed_memory::packed()
{
    int size = 0, position = 0;
    MPI_Type_size(_type, &size);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(size * _count));
    PMPI_Pack(buffer(), _count, _type, bytes.data(), static_cast<int>(bytes.size()), &position, MPI_COMM_SELF);
    return bytes;
}

void typed_memory::unpack(const std::vector<unsigned char>& packed)
{
    int position = 0;
    PMPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, buffer(), _count, _type, MPI_COMM_SELF);
}

void typed_memory::unpack_some(const unsigned char* message, std::size_t length)
{
    auto all = packed();
    std::copy_n(message, std::min(length, all.size()), all.begin());
    unpack(all);
}

} // namespace ucxl::test
