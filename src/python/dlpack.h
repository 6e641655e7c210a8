// The structures of DLPack 1.0, by which libraries of arrays and tensors hand memory to each other
// (https://dmlc.github.io/dlpack). Only what is read here has names of its own.
#pragma once

#include <cstdint>

namespace ucxl::python::dlpack
{

enum device_kind : std::int32_t {
    cpu       = 1,
    cuda      = 2,
    cuda_host = 3, // pinned memory of the host
    rocm      = 10,
    rocm_host = 11
};

struct device {
    device_kind kind;
    std::int32_t id;
};

enum type_code : std::uint8_t { integer, unsigned_integer, floating, handle, brain_floating, complex, boolean };

struct type {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct tensor {
    void* data;
    dlpack::device device;
    std::int32_t num_dims;
    dlpack::type type;
    std::int64_t* shape;
    std::int64_t* strides; // elements; null: contiguous
    std::uint64_t byte_offset;
};

// In a capsule "dltensor".
struct managed_tensor {
    dlpack::tensor tensor;
    void* context;
    void (*release)(managed_tensor*);
};

// In a capsule "dltensor_versioned".
struct versioned_tensor {
    std::uint32_t major_version, minor_version;
    void* context;
    void (*release)(versioned_tensor*);
    std::uint64_t flags;
    dlpack::tensor tensor;
};

// Flags.
inline constexpr std::uint64_t is_read_only = 1;
inline constexpr std::uint64_t is_copied    = 2; // the tensor is not the memory of the object that was asked for it

} // namespace ucxl::python::dlpack
