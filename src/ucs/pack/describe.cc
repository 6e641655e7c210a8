#include "program.h"

#include <format>

namespace ucxl
{

namespace
{

constexpr unsigned max_lines = 64;

class describer
{
public:
    explicit describer(const compiled_program& program) : _program(program) {}

    std::string text()
    {
        if (_program.steps.empty()) {
            return "nothing";
        }
        describe(_program.root.child, 0);
        _text.pop_back();
        return std::move(_text);
    }

private:
    void line(unsigned depth, const std::string& what)
    {
        if (_lines == max_lines) {
            _text += "...\n";
        } else if (_lines < max_lines) {
            _text += std::string(depth * 2, ' ') + what + '\n';
        }
        ++_lines;
    }

    void describe(std::uint32_t index, unsigned depth)
    {
        const step& what = _program.steps[index];
        switch (what.kind) {
        case step_kind::run:
            line(depth, run_text(what));
            return;
        case step_kind::table:
            line(depth, std::format("table of {} blocks, {} bytes{}", what.size, what.packed_length,
                                    what.one_source ? "" : ", many sources"));
            return;
        case step_kind::record:
            describe_record(what, depth);
            return;
        case step_kind::zip:
            line(depth, std::format("{} x zip of {} runs, {} bytes", what.count, what.size, what.cycle_length));
            describe_links(what, depth + 1);
            return;
        case step_kind::loop:
            describe_loop(what, depth);
            return;
        }
    }

    static std::string kernel_text(const block_kernels& kernels, std::uint64_t length)
    {
        return std::format("{}({})", kernels.name, length);
    }

    static std::string run_text(const step& what)
    {
        std::string text;
        if (what.run.outer_count > 1) {
            text += std::format("{} x stride {}, ", what.run.outer_count, what.run.outer_stride);
        }
        if (what.run.count == 1) {
            return text + kernel_text(*what.kernels, what.run.length);
        }
        return text + std::format("{} x {} stride {}", what.run.count, kernel_text(*what.kernels, what.run.length),
                                  what.run.stride);
    }

    void describe_record(const step& what, unsigned depth)
    {
        if (what.permute != nullptr) {
            line(depth, std::format("{} x record of {} blocks, {} bytes, permuted, {} at a time", what.count, what.size,
                                    what.cycle_length, _program.maps[what.map].words.iterations));
            return;
        }
        line(depth, std::format("{} x record of {} blocks, {} bytes, {} at a time", what.count, what.size,
                                what.cycle_length, what.batch));
        for (std::uint32_t i = what.first_column; i < what.first_column + what.num_columns; ++i) {
            line(depth + 1, column_text(what, _program.columns[i]));
        }
    }

    std::string column_text(const step& what, const record_column& column) const
    {
        const record_part* part = &_program.parts[what.first + column.first_part];
        if (column.group == nullptr) {
            return std::format("{} stride {}", kernel_text(*column.kernels, part->length), part->stride);
        }
        std::string text = "group";
        for (std::uint32_t i = 0; i < column.num_parts; ++i) {
            text += std::format("{} {} stride {}", i == 0 ? "" : ",", part[i].length, part[i].stride);
        }
        return text;
    }

    void describe_loop(const step& what, unsigned depth)
    {
        line(depth, std::format("{} x {{", what.count));
        describe_links(what, depth + 1);
        line(depth, "}");
    }

    void describe_links(const step& what, unsigned depth)
    {
        for (std::uint32_t i = what.first; i < what.first + what.size && _lines <= max_lines; ++i) {
            describe(_program.links[i].child, depth);
        }
    }

    const compiled_program& _program;
    std::string _text;
    unsigned _lines = 0;
};

} // namespace

std::string describe_program(const compiled_program& program)
{
    return describer(program).text();
}

} // namespace ucxl
