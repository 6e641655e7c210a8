// Elements of a datatype in memory of which a process can only touch what a call may touch: other pages are
// inaccessible, and those that MPI only reads are read-only.
//
//     const element_shape shape(seed);                   // one page of numbers per element, in pieces
//     guarded_elements room(shape, 3, use::none);
//     room.set_use(1, 1, use::updates);                  // the second element
//     room.fill(seed, own_rank);
//     room.expect(1, packed_element(seed, peer, 0));     // what it should be afterwards
//     room.allow();
//     MPI_Recv(room.at(1), shape.count(1), shape.handle(), peer, ...);
//     if (!room.is_right()) ...
//
// The first byte of each page that an element uses is its own, and so is the last one.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ucxl::test
{

// Of all elements, whatever their shape. Pages may be larger, then no page is of one element only.
constexpr std::size_t page = 4096, element_size = page;

// The bytes of an element in the order in which MPI packs them.
std::vector<unsigned char> packed_element(std::uint64_t seed, int rank, int index);

struct piece {
    std::size_t offset; // in the element
    std::size_t length;
};

// Where an element has its numbers: in some pages of its own, with pages between them that it does not use.
class element_shape
{
public:
    enum class kind : unsigned char { plain, vector, list, records };

    // Not plain.
    explicit element_shape(std::uint64_t seed);
    element_shape(kind chosen, std::uint64_t seed);
    ~element_shape();
    element_shape(const element_shape&)            = delete;
    element_shape& operator=(const element_shape&) = delete;

    MPI_Datatype handle() const { return _type; }
    // What MPI calls a count.
    int count(int elements) const
    {
        return _kind == kind::plain ? elements * static_cast<int>(element_size / 4) : elements;
    }
    bool is_plain() const { return _kind == kind::plain; }
    const std::vector<piece>& pieces() const { return _pieces; }
    std::size_t num_pages() const { return _num_pages; }
    std::ptrdiff_t shift() const { return _shift; }
    const char* name() const;

private:
    void make_vector(std::uint64_t seed);
    void make_list(std::uint64_t seed);
    void make_records(std::uint64_t seed);
    void resize();

    const kind _kind;
    MPI_Datatype _type = MPI_INT;
    std::vector<piece> _pieces;
    std::size_t _num_pages = 1;
    std::ptrdiff_t _shift  = 0; // of the numbers from the address that MPI gets
};

// What MPI does with an element.
enum class use : unsigned char { none, reads, updates };

class guarded_elements
{
public:
    guarded_elements(const element_shape& shape, int number, use all);
    ~guarded_elements();
    guarded_elements(const guarded_elements&)            = delete;
    guarded_elements& operator=(const guarded_elements&) = delete;

    void set_use(int first, int number, use each);
    // An MPI that touches more by itself may do so, if it changes nothing.
    void be_lenient() { _is_lenient = true; }

    void* at(int place) const;
    bool is_plain() const { return _shape.is_plain(); }
    void* buffer() const { return at(0); }
    MPI_Datatype handle() const { return _shape.handle(); }
    int count(int elements) const { return _shape.count(elements); }
    // All elements as one at MPI_BOTTOM; to be freed.
    MPI_Datatype make_absolute() const;

    // Element i gets packed_element(seed, rank, i), and is expected to keep it.
    void fill(std::uint64_t seed, int rank);
    void expect(int place, const std::vector<unsigned char>& packed);
    // Nothing may be touched.
    void close();
    // Only what the call uses.
    void allow();
    // Whether all is as expected. The program itself may touch everything then.
    bool is_right();

private:
    void protect(int how);
    void put(std::vector<unsigned char>& memory, int place, const std::vector<unsigned char>& packed) const;
    std::size_t length() const { return _uses.size() * _shape.num_pages() * page; }

    const element_shape& _shape;
    std::vector<use> _uses;
    std::vector<bool> _is_used; // pages of an element
    unsigned char* _mapped = nullptr;
    unsigned char* _first  = nullptr;
    std::size_t _mapped_length;
    std::vector<unsigned char> _wanted;
    bool _is_lenient = false;
};

} // namespace ucxl::test
