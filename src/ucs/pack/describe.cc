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
        std::visit([&](const auto& form) { describe(form, depth); }, _program.steps[index].form);
    }

    void describe(const run_step& run, unsigned depth) { line(depth, run_text(run)); }

    void describe(const table_step& table, unsigned depth)
    {
        line(depth, std::format("table of {} blocks, {} bytes{}", table.size, table.packed_length,
                                table.one_source ? "" : ", many sources"));
    }

    void describe(const zip_step& zip, unsigned depth)
    {
        line(depth, std::format("{} x zip of {} runs, {} bytes", zip.count, zip.size, zip.cycle_length));
        describe_links(zip.first, zip.size, depth + 1);
    }

    static std::string kernel_text(const block_kernels& kernels, std::uint64_t length)
    {
        return std::format("{}({})", kernels.name, length);
    }

    static std::string run_text(const run_step& run)
    {
        std::string text;
        if (run.blocks.outer_count > 1) {
            text += std::format("{} x stride {}, ", run.blocks.outer_count, run.blocks.outer_stride);
        }
        if (run.blocks.count == 1) {
            return text + kernel_text(*run.kernels, run.blocks.length);
        }
        return text + std::format("{} x {} stride {}", run.blocks.count, kernel_text(*run.kernels, run.blocks.length),
                                  run.blocks.stride);
    }

    void describe(const record_step& record, unsigned depth)
    {
        if (record.permute != nullptr) {
            line(depth, std::format("{} x record of {} blocks, {} bytes, permuted, {} at a time", record.count,
                                    record.size, record.cycle_length, _program.maps[record.map].words.iterations));
            return;
        }
        line(depth, std::format("{} x record of {} blocks, {} bytes, {} at a time", record.count, record.size,
                                record.cycle_length, record.batch));
        for (std::uint32_t i = record.first_column; i < record.first_column + record.num_columns; ++i) {
            line(depth + 1, column_text(record, _program.columns[i]));
        }
    }

    std::string column_text(const record_step& record, const record_column& column) const
    {
        const record_part* part = &_program.parts[record.first + column.first_part];
        if (column.group == nullptr) {
            return std::format("{} stride {}", kernel_text(*part->kernels, part->length), part->stride);
        }
        std::string text = "group";
        for (std::uint32_t i = 0; i < column.num_parts; ++i) {
            text += std::format("{} {} stride {}", i == 0 ? "" : ",", part[i].length, part[i].stride);
        }
        return text;
    }

    void describe(const loop_step& loop, unsigned depth)
    {
        line(depth, std::format("{} x {{", loop.count));
        describe_links(loop.first, loop.size, depth + 1);
        line(depth, "}");
    }

    void describe_links(std::uint32_t first, std::uint32_t size, unsigned depth)
    {
        for (std::uint32_t i = first; i < first + size && _lines <= max_lines; ++i) {
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
