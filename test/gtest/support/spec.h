// Descriptors as a tree, and what they mean, said a second time and slowly: the oracle of every test. Nothing here uses
// the code of src/ucs/layout except build(), which hands the tree to the builders.
//
// Example: spec_ptr column = spec::strided(spec::block(8), {{1024, 8192}});
//          EXPECT_EQ(blocks_of(*build(*column)), segments_of(*column));
#pragma once

#include "ucs/layout/build.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ucxl::test
{

struct spec;
using spec_ptr = std::shared_ptr<const spec>;

// Of an iov (repeat and dims unused) or of an interleaved layout.
struct spec_part {
    std::uint32_t source = 0;
    std::int64_t offset  = 0;
    spec_ptr item;
    std::uint64_t repeat = 1;
    std::vector<dim> dims;
};

struct spec {
    enum class kind { block, contig, strided, iov, interleaved, resized };

    kind what            = kind::block;
    std::uint64_t length = 0;     // block
    std::uint64_t count  = 0;     // contig
    std::vector<dim> dims;        // strided
    std::vector<spec_part> parts; // iov, interleaved
    std::int64_t lb     = 0;      // resized
    std::int64_t extent = 0;      // resized; contig: of an item, because every item asks for it
    spec_ptr item;                // contig, strided, resized

    static spec_ptr block(std::uint64_t length);
    static spec_ptr contig(std::uint64_t count, spec_ptr item);
    static spec_ptr strided(spec_ptr item, std::vector<dim> dims);
    static spec_ptr iov(std::vector<spec_part> parts);
    static spec_ptr interleaved(std::vector<spec_part> parts);
    static spec_ptr resized(spec_ptr item, std::int64_t lb, std::int64_t extent);
};

// A contiguous piece of what is described.
struct segment {
    std::uint32_t source = 0;
    std::int64_t offset  = 0;
    std::uint64_t length = 0;

    bool operator==(const segment&) const = default;
};

// In packed order, as described: without empty ones, and neighbours that touch joined.
std::vector<segment> segments_of(const spec& of);
std::uint64_t packed_length_of(const spec& of);
// By source; only sources that have bytes or set bounds.
std::map<std::uint32_t, layout_bounds> bounds_of(const spec& of);
std::int64_t extent_of(const spec& of);
std::uint32_t num_sources_of(const spec& of);
// Whether a byte is described twice.
bool has_overlap(const spec& of);

// Joins neighbours that touch: two lists describe the same bytes in the same order exactly when these are equal.
std::vector<segment> joined(const std::vector<segment>& segments);
// What the code under test says, in the form of segments_of().
std::vector<segment> segments_of(const layout& of);

result<layout_ptr> build(const spec& of);
// As C++, to paste into a test.
std::string to_string(const spec& of);
std::string to_string(const std::vector<segment>& segments);

} // namespace ucxl::test
