#include "guarded_elements.h"

#include "support/random.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

constexpr std::size_t number_size = 4;
// Before and behind the elements. A datatype may begin some pages from the address that MPI gets.
constexpr std::size_t guard_pages = 4;

std::vector<int> lengths_in_numbers(const std::vector<piece>& pieces)
{
    std::vector<int> lengths;
    for (const piece& each : pieces) {
        lengths.push_back(static_cast<int>(each.length / number_size));
    }
    return lengths;
}

} // namespace

std::vector<unsigned char> packed_element(std::uint64_t seed, int rank, int index)
{
    random numbers(derive_seed(derive_seed(seed, static_cast<std::uint64_t>(rank)), static_cast<std::uint64_t>(index)));
    std::vector<unsigned char> packed(element_size);
    for (std::size_t i = 0; i < packed.size(); i += 8) {
        const std::uint64_t value = numbers.next();
        std::memcpy(&packed[i], &value, 8);
    }
    return packed;
}

element_shape::element_shape(std::uint64_t seed)
    : element_shape(static_cast<kind>(1 + random(seed).below(3)), derive_seed(seed, 1))
{
}

element_shape::element_shape(kind chosen, std::uint64_t seed) : _kind(chosen)
{
    switch (chosen) {
    case kind::plain:
        _pieces = {{0, element_size}};
        return;
    case kind::vector:
        make_vector(seed);
        break;
    case kind::list:
        make_list(seed);
        break;
    case kind::records:
        make_records(seed);
        break;
    }
    resize();
}

element_shape::~element_shape()
{
    if (!is_plain()) {
        MPI_Type_free(&_type);
    }
}

const char* element_shape::name() const
{
    const char* const names[] = {"plain numbers", "vectors", "lists", "records"};
    return names[static_cast<int>(_kind)];
}

// Half a page at the start of a page, and half a page at the end of another one.
void element_shape::make_vector(std::uint64_t seed)
{
    constexpr std::size_t half = element_size / 2;
    const std::size_t last     = 1 + random(seed).below(3);
    _pieces                    = {{0, half}, {last * page + page - half, half}};
    _num_pages                 = last + 1;
    MPI_Type_create_hvector(2, half / number_size, static_cast<MPI_Aint>(_pieces[1].offset), MPI_INT, &_type);
}

// Pieces of random lengths, in random order, in two to four pages.
void element_shape::make_list(std::uint64_t seed)
{
    random numbers(seed);
    const std::size_t num_used = 2 + numbers.below(3);
    std::size_t at             = 0;
    for (std::size_t i = 0; i < num_used; ++i) {
        const std::size_t length = element_size / num_used / 8 * 8;
        // One at the start of the page, one at its end, and the rest of them between.
        std::size_t left = i + 1 < num_used ? length : element_size - i * length;
        std::vector<std::size_t> lengths;
        while (left > 0) {
            const auto drawn = lengths.empty() && left > 8 ? number_size : number_size * (1 + numbers.below(60));
            lengths.push_back(std::min<std::size_t>(left, drawn));
            left -= lengths.back();
        }
        std::size_t gaps = page - (i + 1 < num_used ? length : element_size - i * length), offset = 0;
        for (std::size_t k = 0; k < lengths.size(); ++k) {
            const bool is_last    = k + 1 == lengths.size();
            const std::size_t gap = is_last ? gaps : k == 0 ? 0 : std::min(gaps, number_size * numbers.below(24));
            gaps -= gap;
            offset += gap;
            _pieces.push_back({at * page + offset, lengths[k]});
            offset += lengths[k];
        }
        at += 1 + (i + 1 < num_used ? 1 + numbers.below(2) : 0);
    }
    _num_pages = at;
    if (numbers.one_in(2)) {
        numbers.shuffle(_pieces);
    }
    std::vector<MPI_Aint> places;
    _shift = static_cast<std::ptrdiff_t>(page) * numbers.between(-2, 1);
    for (const piece& each : _pieces) {
        places.push_back(static_cast<MPI_Aint>(each.offset) + _shift);
    }
    MPI_Type_create_hindexed(static_cast<int>(_pieces.size()), lengths_in_numbers(_pieces).data(), places.data(),
                             MPI_INT, &_type);
}

// Two pages of numbers at regular distances, and the rest at both ends of a third one.
void element_shape::make_records(std::uint64_t seed)
{
    constexpr std::size_t number = 86, length = 16, distance = 48;
    static_assert((number - 1) * distance + length == page);
    constexpr std::size_t rest = (element_size - 2 * number * length) / 2;
    const std::size_t second   = 1 + random(seed).below(3);
    const std::size_t third    = second + 2;
    for (const std::size_t start : {std::size_t{0}, second * page}) {
        for (std::size_t i = 0; i < number; ++i) {
            _pieces.push_back({start + i * distance, length});
        }
    }
    _pieces.push_back({third * page, rest});
    _pieces.push_back({third * page + page - rest, rest});
    _num_pages = third + 1;
    MPI_Datatype column, both, ends;
    MPI_Type_create_hvector(number, length / number_size, distance, MPI_INT, &column);
    MPI_Type_create_hvector(2, 1, static_cast<MPI_Aint>(second * page), column, &both);
    MPI_Type_create_hvector(2, rest / number_size, page - rest, MPI_INT, &ends);
    const int lengths[]           = {1, 1};
    const MPI_Aint places[]       = {0, static_cast<MPI_Aint>(third * page)};
    const MPI_Datatype members[2] = {both, ends};
    MPI_Type_create_struct(2, lengths, places, members, &_type);
    for (MPI_Datatype* const each : {&column, &both, &ends}) {
        MPI_Type_free(each);
    }
}

void element_shape::resize()
{
    MPI_Datatype resized;
    MPI_Type_create_resized(_type, 0, static_cast<MPI_Aint>(_num_pages * page), &resized);
    MPI_Type_free(&_type);
    _type = resized;
    MPI_Type_commit(&_type);
}

guarded_elements::guarded_elements(const element_shape& shape, int number, use all)
    : _shape(shape), _uses(static_cast<std::size_t>(number), all), _is_used(shape.num_pages()),
      _mapped_length(length() + 2 * guard_pages * page)
{
    for (const piece& each : shape.pieces()) {
        _is_used[each.offset / page] = true;
    }
    void* const mapped = mmap(nullptr, _mapped_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        std::perror("mmap");
        std::abort();
    }
    _mapped = static_cast<unsigned char*>(mapped);
    _first  = _mapped + guard_pages * page;
}

guarded_elements::~guarded_elements()
{
    munmap(_mapped, _mapped_length);
}

void guarded_elements::set_use(int first, int number, use each)
{
    std::fill_n(_uses.begin() + first, number, each);
}

void* guarded_elements::at(int place) const
{
    return _first + static_cast<std::ptrdiff_t>(place) * static_cast<std::ptrdiff_t>(_shape.num_pages() * page) -
           _shape.shift();
}

MPI_Datatype guarded_elements::make_absolute() const
{
    MPI_Aint address = 0;
    MPI_Get_address(buffer(), &address);
    const int number          = count(static_cast<int>(_uses.size()));
    const MPI_Datatype member = handle();
    MPI_Datatype made;
    MPI_Type_create_struct(1, &number, &address, &member, &made);
    MPI_Type_commit(&made);
    return made;
}

void guarded_elements::protect(int how)
{
    if (length() > 0 && mprotect(_first, length(), how) != 0) {
        std::perror("mprotect");
        std::abort();
    }
}

void guarded_elements::put(std::vector<unsigned char>& memory, int place,
                           const std::vector<unsigned char>& packed) const
{
    const std::size_t start = static_cast<std::size_t>(place) * _shape.num_pages() * page;
    std::size_t done        = 0;
    for (const piece& each : _shape.pieces()) {
        for (std::size_t i = 0; i < each.length; ++i) {
            memory[start + each.offset + i] = packed[done++];
        }
    }
}

void guarded_elements::fill(std::uint64_t seed, int rank)
{
    constexpr unsigned char between = 0xa5;
    _wanted.assign(length(), between);
    for (std::size_t i = 0; i < _uses.size(); ++i) {
        put(_wanted, static_cast<int>(i), packed_element(seed, rank, static_cast<int>(i)));
    }
    protect(PROT_READ | PROT_WRITE);
    std::ranges::copy(_wanted, _first);
}

void guarded_elements::expect(int place, const std::vector<unsigned char>& packed)
{
    put(_wanted, place, packed);
}

void guarded_elements::close()
{
    if (!_is_lenient) {
        protect(PROT_NONE);
    }
}

void guarded_elements::allow()
{
    if (_is_lenient) {
        return;
    }
    protect(PROT_NONE);
    const std::size_t num_pages = _shape.num_pages();
    for (std::size_t i = 0; i < _uses.size() * num_pages; ++i) {
        const use each = _uses[i / num_pages];
        if (each != use::none && _is_used[i % num_pages]) {
            mprotect(_first + i * page, page, each == use::reads ? PROT_READ : PROT_READ | PROT_WRITE);
        }
    }
}

bool guarded_elements::is_right()
{
    protect(PROT_READ | PROT_WRITE);
    return std::equal(_wanted.begin(), _wanted.end(), _first);
}

} // namespace ucxl::test
