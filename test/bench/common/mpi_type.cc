#include "mpi_type.h"

namespace ucxl::bench
{

namespace
{

MPI_Datatype number_type(std::size_t length)
{
    return length == 8 ? MPI_DOUBLE : length == 4 ? MPI_FLOAT : MPI_BYTE;
}

MPI_Datatype type_of(const type_tree& type);

// With all types that it is made of; those that MPI names are not freed.
struct made_of {
    MPI_Datatype what;
    bool named;

    explicit made_of(const type_tree& type) : what(type_of(type)), named(type.what == type_tree::kind::number) {}
    ~made_of()
    {
        if (!named) {
            MPI_Type_free(&what);
        }
    }
    made_of(const made_of&)            = delete;
    made_of& operator=(const made_of&) = delete;
};

MPI_Datatype list_type(const type_tree& type)
{
    std::vector<int> counts;
    std::vector<MPI_Aint> offsets;
    for (const type_tree::part& part : type.parts) {
        counts.push_back(static_cast<int>(part.count));
        offsets.push_back(static_cast<MPI_Aint>(part.offset));
    }
    const made_of child(*type.child);
    MPI_Datatype made;
    MPI_Type_create_hindexed(static_cast<int>(counts.size()), counts.data(), offsets.data(), child.what, &made);
    return made;
}

MPI_Datatype record_type(const type_tree& type)
{
    std::vector<int> counts;
    std::vector<MPI_Aint> offsets;
    std::vector<std::unique_ptr<made_of>> children;
    std::vector<MPI_Datatype> types;
    for (const type_tree::part& part : type.parts) {
        counts.push_back(static_cast<int>(part.count));
        offsets.push_back(static_cast<MPI_Aint>(part.offset));
        types.push_back(children.emplace_back(std::make_unique<made_of>(*part.child))->what);
    }
    MPI_Datatype made;
    MPI_Type_create_struct(static_cast<int>(counts.size()), counts.data(), offsets.data(), types.data(), &made);
    return made;
}

MPI_Datatype tile_type(const type_tree& type)
{
    int sizes[3], parts[3];
    const int starts[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {
        sizes[i] = static_cast<int>(type.rows[i]);
        parts[i] = static_cast<int>(type.part_of[i]);
    }
    // Two dimensions as two, as people write it.
    const int unused = sizes[0] == 1 ? 1 : 0;
    const made_of child(*type.child);
    MPI_Datatype made;
    MPI_Type_create_subarray(3 - unused, sizes + unused, parts + unused, starts, MPI_ORDER_C, child.what, &made);
    return made;
}

MPI_Datatype type_of(const type_tree& type)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    switch (type.what) {
    case type_tree::kind::number:
        return number_type(type.extent);
    case type_tree::kind::vector: {
        const made_of child(*type.child);
        MPI_Type_create_hvector(static_cast<int>(type.count), static_cast<int>(type.blocks),
                                static_cast<MPI_Aint>(type.stride), child.what, &made);
        return made;
    }
    case type_tree::kind::list:
        return list_type(type);
    case type_tree::kind::record:
        return record_type(type);
    case type_tree::kind::tile:
        return tile_type(type);
    case type_tree::kind::resized: {
        const made_of child(*type.child);
        MPI_Type_create_resized(child.what, 0, static_cast<MPI_Aint>(type.extent), &made);
        return made;
    }
    }
    return made;
}

} // namespace

MPI_Datatype mpi_type_of(const type_tree& type)
{
    MPI_Datatype made = type_of(type);
    MPI_Type_commit(&made);
    return made;
}

} // namespace ucxl::bench
