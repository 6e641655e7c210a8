// A peer of `bench pack`: MPI_Pack and MPI_Unpack of one MPI library, on the memory of the benchmark, as it says line
// by line on standard input:
//
//     case NUMBER                           of pack_cases(); answers with the packed bytes MPI says it has
//     pack|unpack hot|cold FIRST TIMES      answers with the seconds it took
//
// usage: bench_mpi_pack MEMORY
#include "bench/common/mpi_type.h"

#include "bench/common/arena.h"
#include "bench/common/shared_memory.h"

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

namespace
{

using namespace ucxl::bench;

// A case with its datatype.
class typed_case
{
public:
    explicit typed_case(layout_case of) : _of(std::move(of)), _type(mpi_type_of(*_of.type))
    {
        MPI_Type_size(_type, &_length);
        MPI_Pack_size(1, _type, MPI_COMM_SELF, &_buffer_length);
    }
    ~typed_case() { MPI_Type_free(&_type); }
    typed_case(const typed_case&)            = delete;
    typed_case& operator=(const typed_case&) = delete;

    int length() const { return _length; }

    double seconds(std::byte* memory, way direction, bool cold, std::size_t first, unsigned times) const
    {
        return arena(memory, _of, cold).seconds(direction, first, times, [&](std::byte* to, std::byte* from) {
            int position = 0;
            if (direction == way::pack) {
                MPI_Pack(from, 1, _type, to, _buffer_length, &position, MPI_COMM_SELF);
            } else {
                MPI_Unpack(from, _buffer_length, &position, to, 1, _type, MPI_COMM_SELF);
            }
        });
    }

private:
    layout_case _of;
    MPI_Datatype _type;
    int _length        = 0;
    int _buffer_length = 0;
};

void serve(std::byte* memory)
{
    const std::vector<case_maker> cases = pack_cases();
    std::optional<typed_case> current;
    for (std::string word; std::cin >> word;) {
        if (word == "case") {
            std::size_t number = 0;
            std::cin >> number;
            current.emplace(cases.at(number).make());
            std::printf("%d\n", current->length());
        } else {
            std::string warmth;
            std::size_t first = 0;
            unsigned times    = 0;
            std::cin >> warmth >> first >> times;
            const way direction = word == "pack" ? way::pack : way::unpack;
            std::printf("%.9g\n", current->seconds(memory, direction, warmth == "cold", first, times));
        }
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 2) {
        std::fprintf(stderr, "usage: bench_mpi_pack MEMORY; `bench pack` runs it\n");
        return 2;
    }
    try {
        serve(shared_memory(argv[1], arena_length).data());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_mpi_pack: %s\n", error.what());
        return 1;
    }
    MPI_Finalize();
    return 0;
}
