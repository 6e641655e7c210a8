#include "memory.h"

#include "collected.h"
#include "layout_object.h"
#include "ucx.h"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nanobind/stl/unique_ptr.h>

#include <unistd.h>

namespace ucxl::python
{

namespace
{

struct memory_object {
    std::optional<ucx_layout::memory> memory;
    std::unique_ptr<array> shared; // the caller's array, which stays as it is while it is shared
    std::span<std::byte> bytes;    // as long as was asked for
    std::size_t exports = 0;       // buffers of Python that are in use
    made_here process;

    void require_open() const
    {
        if (!memory) {
            raise(PyExc_ValueError, "Memory: it is closed");
        }
    }

    void close()
    {
        if (exports > 0) {
            raise(PyExc_BufferError, "Memory: {} arrays or memoryviews of it exist", exports);
        }
        if (!process.is_here()) {
            new std::optional(std::move(memory)); // it is its parent's, and stays until this process ends
        }
        memory.reset();
        shared.reset();
    }

    // For collected.h.
    int traverse(visitproc visit, void* arg) const { return shared == nullptr ? 0 : shared->traverse(visit, arg); }
    void clear()
    {
        if (exports == 0) {
            close();
        }
    }

    ~memory_object()
    {
        if (!process.is_here()) {
            new std::optional(std::move(memory));
        }
        memory.reset(); // before the array goes, whose memory it makes private again
    }
};

// Whether the memory at an address is a shared mapping, by the kernel's list of them.
bool is_shared_mapping(const void* address)
{
    const auto close = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close)> maps(std::fopen("/proc/self/maps", "re"));
    const auto wanted = std::bit_cast<std::uintptr_t>(address);
    char line[4200], rights[5];
    std::uintptr_t begin = 0, end = 0;
    while (maps != nullptr && std::fgets(line, sizeof(line), maps.get()) != nullptr) {
        if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, rights) == 3 && begin <= wanted &&
            wanted < end) {
            return rights[3] == 's';
        }
    }
    return false;
}

std::unique_ptr<memory_object> allocate(nb::handle length, nb::handle huge_pages)
{
    const auto bytes = integer_of(length, "length");
    if (bytes < 1) {
        raise(PyExc_ValueError, "length: {} bytes, at least 1 is needed", bytes);
    }
    ucx();
    ucp_layout_memory_params_t params{};
    params.field_mask = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH;
    params.length     = static_cast<std::size_t>(bytes);
    if (!huge_pages.is_none()) {
        params.field_mask |= UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES;
        params.huge_pages = nb::cast<bool>(huge_pages) ? UCP_LAYOUT_HUGE_PAGES_ALWAYS : UCP_LAYOUT_HUGE_PAGES_NEVER;
    }
    auto made    = std::make_unique<memory_object>();
    made->memory = checked("memory", [&] { return ucx_layout::memory::create(params); });
    made->bytes  = made->memory->bytes().first(params.length);
    return made;
}

std::unique_ptr<memory_object> share(nb::handle object)
{
    auto made    = std::make_unique<memory_object>();
    made->shared = std::make_unique<array>(object, "array");
    made->shared->require_writable();
    const auto there = made->shared->bounds();
    made->bytes      = {made->shared->data() + there.lb, static_cast<std::size_t>(there.ub - there.lb)};
    if (made->bytes.empty()) {
        raise(PyExc_ValueError, "array: it has no bytes");
    }
    ucx();
    made->memory = checked("array", [&] {
        return is_shared_mapping(made->bytes.data()) ? ucx_layout::memory::share(made->bytes)
                                                     : ucx_layout::memory::move(made->bytes);
    });
    return made;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags)
{
    auto& memory = *nb::inst_ptr<memory_object>(self);
    view->obj    = nullptr;
    if (!memory.memory || memory.shared != nullptr) {
        PyErr_SetString(PyExc_BufferError,
                        memory.memory ? "Memory: it is that of an array, use the array" : "Memory: it is closed");
        return -1;
    }
    const auto length = static_cast<Py_ssize_t>(memory.bytes.size());
    if (PyBuffer_FillInfo(view, self, memory.bytes.data(), length, 0, flags) != 0) {
        return -1;
    }
    ++memory.exports;
    return 0;
}

void release_buffer(PyObject* self, Py_buffer*)
{
    --nb::inst_ptr<memory_object>(self)->exports;
}

nb::object array_of(nb::handle memory, nb::handle shape, nb::handle dtype)
{
    const auto& object = nb::cast<const memory_object&>(memory);
    object.require_open();
    if (object.shared != nullptr) {
        raise(PyExc_ValueError, "Memory: it is that of an array, use the array");
    }
    const nb::module_ numpy = nb::module_::import_("numpy");
    // ndarray() gives a buffer back at once and keeps only its object; an array of bytes keeps the buffer.
    return numpy.attr("ndarray")(shape, numpy.attr("dtype")(dtype), numpy.attr("asarray")(memory));
}

} // namespace

made_here::made_here() : _process(getpid())
{
}

bool made_here::is_here() const
{
    return getpid() == _process;
}

void bind_memory(nb::module_& module)
{
    PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                           {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                           traverse_slot<memory_object>(),
                           clear_slot<memory_object>(),
                           {0, nullptr}};
    nb::class_<memory_object>(module, "Memory", nb::type_slots(slots), nb::is_final(),
                              R"doc(Memory that processes of this host reach in one pass. Made by memory() and share().

A context manager that closes it. What memory() made has the buffer protocol: arrays over it keep it, and it cannot be
closed before they end. After fork() the child has the same memory.)doc")
        .def_prop_ro("address",
                     [](const memory_object& memory) { return std::bit_cast<std::uintptr_t>(memory.bytes.data()); })
        .def_prop_ro(
            "length", [](const memory_object& memory) { return memory.bytes.size(); }, "Bytes.")
        .def_prop_ro("closed", [](const memory_object& memory) { return !memory.memory; })
        .def("array", &array_of, nb::arg("shape"), nb::arg("dtype") = "u1",
             nb::sig("def array(self, shape: Integers, dtype: Any = 'u1') -> Any"),
             "A new array of NumPy at the start of this memory, which memory() made. Raises TypeError if it does not "
             "fit, ValueError if the memory is that of an array.")
        .def("close", &memory_object::close,
             "Releases the memory; private memory is private again. Windows over it lose their remote keys. Raises "
             "BufferError while arrays over it exist. Closing twice is allowed.")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Memory"))
        .def(
            "__exit__", [](memory_object& memory, nb::args) { memory.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
    module.def("memory", &allocate, nb::arg("length"), nb::kw_only(), nb::arg("huge_pages") = nb::none(),
               nb::sig("def memory(length: int, *, huge_pages: bool | None = None) -> Memory"),
               R"doc(Zeroed memory of `length` bytes, at a page boundary, that other processes of this host can map.

Windows over it, of any layout, are reached by peers in one pass. `huge_pages`: None takes them where the kernel has
them, True needs them. Raises MemoryError; RuntimeError if there is no UCX.)doc");
    module.def("share", &share, nb::arg("array"), nb::sig("def share(array: Array) -> Memory"),
               R"doc(Shares the memory of an array: what memory() does, for memory that exists already.

A shared mapping (multiprocessing.shared_memory, mmap of a file in memory) is shared as it is. Private memory moves into
a file at the same address, whole pages at a time, and is private again after close(); the array stays valid. Meanwhile
other threads must not write it, or its neighbours on its first and last page: do it at the start, for large arrays. The
Memory keeps the array. Raises ValueError with the reason if the memory cannot move, or is read-only.)doc");
}

} // namespace ucxl::python
