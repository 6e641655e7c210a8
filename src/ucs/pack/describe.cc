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
    void line(unsigned depth, const std::string& text)
    {
        if (_lines == max_lines) {
            _text += "...\n";
        } else if (_lines < max_lines) {
            _text += std::string(depth * 2, ' ') + text + '\n';
        }
        ++_lines;
    }

    void describe(std::uint32_t index, unsigned depth)
    {
        const step& step = _program.steps[index];
        switch (step.kind) {
        case step_kind::run:
            line(depth, run_text(step));
            return;
        case step_kind::table:
            line(depth, std::format("table of {} blocks, {} bytes{}", step.size, step.packed_length,
                                    step.one_source ? "" : ", many sources"));
            return;
        case step_kind::record:
            describe_record(step, depth);
            return;
        case step_kind::zip:
            line(depth, std::format("{} x zip of {} runs, {} bytes", step.count, step.size, step.cycle_length));
            describe_links(step, depth + 1);
            return;
        case step_kind::loop:
            describe_loop(step, depth);
            return;
        }
    }

    static std::string kernel_text(const block_kernels& kernels, std::uint64_t length)
    {
        return std::format("{}({})", kernels.name, length);
    }

    static std::string run_text(const step& step)
    {
        std::string text;
        if (step.run.outer_count > 1) {
            text += std::format("{} x stride {}, ", step.run.outer_count, step.run.outer_stride);
        }
        if (step.run.count == 1) {
            return text + kernel_text(*step.kernels, step.run.length);
        }
        return text + std::format("{} x {} stride {}", step.run.count, kernel_text(*step.kernels, step.run.length),
                                  step.run.stride);
    }

    void describe_record(const step& step, unsigned depth)
    {
        if (step.permute != nullptr) {
            line(depth, std::format("{} x record of {} blocks, {} bytes, permuted, {} at a time", step.count, step.size,
                                    step.cycle_length, _program.maps[step.map].words.iterations));
            return;
        }
        line(depth, std::format("{} x record of {} blocks, {} bytes, {} at a time", step.count, step.size,
                                step.cycle_length, step.batch));
        for (std::uint32_t i = step.first_column; i < step.first_column + step.num_columns; ++i) {
            line(depth + 1, column_text(step, _program.columns[i]));
        }
    }

    std::string column_text(const step& step, const record_column& column) const
    {
        const record_part* part = &_program.parts[step.first + column.first_part];
        if (column.group == nullptr) {
            return std::format("{} stride {}", kernel_text(*part->kernels, part->length), part->stride);
        }
        std::string text = "group";
        for (std::uint32_t i = 0; i < column.num_parts; ++i) {
            text += std::format("{} {} stride {}", i == 0 ? "" : ",", part[i].length, part[i].stride);
        }
        return text;
    }

    void describe_loop(const step& step, unsigned depth)
    {
        line(depth, std::format("{} x {{", step.count));
        describe_links(step, depth + 1);
        line(depth, "}");
    }

    void describe_links(const step& step, unsigned depth)
    {
        for (std::uint32_t i = step.first; i < step.first + step.size && _lines <= max_lines; ++i) {
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
