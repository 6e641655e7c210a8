// Random MPI datatypes: trees of all constructors over one basic type.
//
//     test::random random(seed);
//     const random_type type(random);           // committed, freed with the object
//     typed_memory memory(type.handle(), 3);    // holds three of it
//
// The same seed gives the same datatype in every process.
#pragma once

#include "support/random.h"

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace ucxl::test
{

// What random types are named from now on; empty: they have no names.
extern std::string name_of_types;

class random_type
{
public:
    // Has at least one byte, and none twice.
    explicit random_type(random& numbers);
    ~random_type();
    random_type(const random_type&)            = delete;
    random_type& operator=(const random_type&) = delete;

    MPI_Datatype handle() const { return _type; }
    int size() const { return _size; }
    const std::string& text() const { return _text; }

private:
    MPI_Datatype _type = MPI_DATATYPE_NULL;
    int _size          = 0;
    std::string _text;
};

// The basic type of all random types. It has as many bytes as an int, so every message is some ints.
constexpr int basic_size = 4;

// Memory that a number of elements of a datatype lies in, with some bytes more on either side.
class typed_memory
{
public:
    typed_memory(MPI_Datatype type, int count);

    void* buffer() { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(_bytes.data()) + _offset); }
    std::vector<unsigned char>& bytes() { return _bytes; }
    void fill(random& numbers);
    // The elements, packed by MPI itself, and the other way round.
    std::vector<unsigned char> packed();
    void unpack(const std::vector<unsigned char>& packed);
    // Receives a message that may be shorter than the elements.
    void unpack_some(const unsigned char* message, std::size_t length);

private:
    MPI_Datatype _type;
    int _count;
    std::size_t _offset = 0; // of the buffer in the bytes; may be outside
    std::vector<unsigned char> _bytes;
};

} // namespace ucxl::test
