#include "tax.h"

#include "sides.h"
#include "transfer_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace ucxl::bench
{

namespace
{

constexpr const char* without_library = "not loaded";
constexpr const char* with_library    = "loaded";
constexpr const char* by_limit        = "limit-queue";
constexpr std::size_t lengths[]       = {8, 4096, 65536, 1 << 20};
constexpr double most_more            = 20e-9; // an operation
constexpr double operations           = 2;     // a message: to send and to receive it

// With these settings; `loaded`: of the library under test.
pair start(scratch_folder& folder, const std::string& memory, bool loaded, std::vector<std::string> settings = {})
{
    if (loaded) {
        settings.emplace_back("LD_PRELOAD=" BENCH_FOLDER "/.libs/libucp_layout.so");
    }
    pair made = start_program(folder, memory, loaded ? with_library : without_library, "bench_tax_side", {}, settings);
    if ((made.process->ask("loaded") != 0) != loaded) {
        throw std::runtime_error(loaded ? "libucp_layout was not loaded" : "libucp_layout was loaded");
    }
    return made;
}

void tell_length(pair& by, std::size_t length)
{
    by.process->ask(fmt::format("bytes {}", length));
}

// One pair of process pairs, all lengths.
void measure_pair(const effort& how, const std::string& memory, pair& limit, std::vector<row>& rows)
{
    scratch_folder folder;
    pair plain = start(folder, memory, false), loaded = start(folder, memory, true);
    for (row& one : rows) {
        for (pair* by : {&loaded, &plain, &limit}) {
            tell_length(*by, one.length);
        }
        const std::vector<measured> made =
            alternate(how, {run_by(with_library, loaded, "contiguous"), run_by(without_library, plain, "contiguous"),
                            run_by(by_limit, limit, "contiguous")});
        if (one.results.empty()) {
            one.results = made;
        } else {
            append_rounds(one.results, made);
        }
    }
}

std::string trimmed(std::string cell)
{
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
    return cell;
}

// The tables in a log: a title "context place cfg#N | operation", and lines "range | protocol | transport".
// The number in a title counts endpoints, and a table without lines says nothing.
std::set<std::string> tables_in(std::istream& log)
{
    std::set<std::string> made;
    std::string title, lines;
    const auto finish = [&] {
        if (!lines.empty()) {
            made.insert(title + '\n' + lines);
        }
        lines.clear();
    };
    for (std::string line; std::getline(log, line);) {
        std::vector<std::string> cells;
        std::istringstream rest(line.substr(std::min(line.find('|'), line.size())));
        for (std::string cell; std::getline(rest, cell, '|');) {
            cells.push_back(trimmed(cell));
        }
        if (cells.size() > 2 && cells[1].find("cfg#") != std::string::npos) {
            finish();
            title = cells[1].substr(0, cells[1].find("cfg#")) + cells[2];
        } else if (cells.size() > 2) {
            for (std::size_t i = 1; i < cells.size(); ++i) {
                lines += "    " + cells[i];
            }
            lines += '\n';
        }
    }
    finish();
    return made;
}

// What UCX chose, in both processes, for all lengths.
std::set<std::string> protocol_tables(const std::string& memory, bool loaded)
{
    const scratch_folder folder;
    {
        scratch_folder for_fifo;
        pair by = start(for_fifo, memory, loaded, {"UCX_PROTO_INFO=y", "UCX_LOG_FILE=" + folder.path() + "/%p"});
        for (const std::size_t length : lengths) {
            tell_length(by, length);
        }
    }
    std::set<std::string> made;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
        std::ifstream log(file.path());
        made.merge(tables_in(log));
    }
    return made;
}

// Of an operation.
quartiles difference_of(const row& one)
{
    std::vector<double> more;
    const std::vector<double>&loaded = one.results[0].rounds, &plain = one.results[1].rounds;
    for (std::size_t i = 0; i < std::min(loaded.size(), plain.size()); ++i) {
        more.push_back((loaded[i] - plain[i]) / operations);
    }
    return quartiles_of(std::move(more));
}

// Most pairs agree, or the machine was too busy to tell.
const char* verdict(const quartiles& of)
{
    return of.high <= most_more ? "yes" : of.low <= most_more ? "not settled" : "no";
}

} // namespace

tax measure_tax(const effort& how, unsigned num_pairs)
{
    tax paid;
    for (const std::size_t length : lengths) {
        paid.rows.push_back({fmt::format("contiguous, {} bytes", length),
                             length,
                             1,
                             "host to host",
                             "contiguous",
                             {},
                             {{with_library, {by_limit}}}});
    }
    scratch_folder folder;
    const shared_memory memory(pair_memory_length);
    pair limit = start_limit(folder, memory.path());
    for (unsigned i = 0; i < num_pairs; ++i) {
        measure_pair(how, memory.path(), limit, paid.rows);
    }
    const std::set<std::string> plain  = protocol_tables(memory.path(), false),
                                loaded = protocol_tables(memory.path(), true);
    paid.num_tables                    = static_cast<unsigned>(plain.size());
    const auto add_only = [&](const char* who, const std::set<std::string>& in, const std::set<std::string>& other) {
        for (const std::string& table : in) {
            if (!other.contains(table)) {
                paid.differing_tables += fmt::format("only {}: {}", who, table);
            }
        }
    };
    add_only(without_library, plain, loaded);
    add_only(with_library, loaded, plain);
    return paid;
}

std::string tax_table(const tax& paid)
{
    std::string table = fmt::format(
        "\ncontiguous memory, host to host, with the library loaded and not: a message, and what each of its two "
        "operations costs more;\nof limit: time of a bare queue / loaded\n"
        "{:>10} {:>14} {:>10} {:>9} {:>22} {:>9}  {}\n",
        "bytes", "not loaded us", "loaded us", "more ns", "half of the pairs ns", "of limit", "20 ns at most");
    for (const row& one : paid.rows) {
        const quartiles more = difference_of(one);
        table += fmt::format("{:>10} {:14.3f} {:10.3f} {:9.1f} {:>22} {}  {}\n", one.length, one.results[1].time * 1e6,
                             one.results[0].time * 1e6, more.middle * 1e9,
                             fmt::format("{:.1f} to {:.1f}", more.low * 1e9, more.high * 1e9),
                             ratio_text(one.of_the_limit(with_library), 9), verdict(more));
    }
    return table + fmt::format("{} tables of protocols by UCX_PROTO_INFO: {}\n{}", paid.num_tables,
                               paid.differing_tables.empty() ? "the same with the library loaded" : "DIFFERENT",
                               paid.differing_tables);
}

std::string judge(const tax& paid)
{
    const auto count = [&](std::string_view answer) {
        return std::ranges::count_if(paid.rows, [&](const row& one) { return verdict(difference_of(one)) == answer; });
    };
    const bool same = paid.num_tables > 0 && paid.differing_tables.empty();
    return fmt::format(
        "contiguous host to host, an operation at most 20 ns more with the library loaded: {} of {} lengths, {} not "
        "settled; {} protocols\n",
        count("yes"), paid.rows.size(), count("not settled"), same ? "the same" : "other");
}

} // namespace ucxl::bench
