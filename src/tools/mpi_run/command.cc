#include "command.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

namespace ucxl::mpi_run
{

namespace
{

// Options with a variable, or a list of variables, behind them.
constexpr std::array<std::string_view, 9> setting_options = {
    "-x", "--x", "-genv", "-env", "-genvlist", "-envlist", "--genv", "--env", "mca_base_env_list"};

// Options with a parameter of Open MPI and its value behind them.
constexpr std::array<std::string_view, 5> parameter_options = {"--mca", "-mca", "--gmca", "-gmca", "--omca"};

bool names_preload(std::string_view text)
{
    const std::string_view name = "LD_PRELOAD";
    for (std::size_t found = text.find(name); found != std::string_view::npos; found = text.find(name, found + 1)) {
        const std::size_t end    = found + name.size();
        const bool begins_a_name = found == 0 || text[found - 1] == ',' || text[found - 1] == ';';
        if (begins_a_name && (end == text.size() || text[end] == '=' || text[end] == ',' || text[end] == ';')) {
            return true;
        }
    }
    return false;
}

std::string quoted_word(const std::string& word)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
        return word;
    }
    std::string made = "'";
    for (const char each : word) {
        made += each == '\'' ? "'\\''" : std::string(1, each);
    }
    return made + "'";
}

} // namespace

std::vector<std::string> with_variables(const std::vector<std::string>& command, launcher_kind kind,
                                        const variables& set)
{
    std::vector<std::string> made{command.front()};
    for (const auto& [name, value] : set) {
        if (kind == launcher_kind::openmpi) {
            made.insert(made.end(), {"-x", name + "=" + value});
        } else {
            made.insert(made.end(), {"-genv", name, value});
        }
    }
    made.insert(made.end(), command.begin() + 1, command.end());
    return made;
}

std::optional<std::string> option_with_preload(const std::vector<std::string>& command, std::size_t end)
{
    for (std::size_t i = 1; i + 1 < std::min(end, command.size()); ++i) {
        if (std::ranges::contains(setting_options, command[i]) && names_preload(command[i + 1])) {
            return command[i] + " " + command[i + 1];
        }
    }
    return std::nullopt;
}

std::optional<std::string> pml_in(const std::vector<std::string>& command, std::size_t end)
{
    for (std::size_t i = 1; i + 2 < std::min(end, command.size()); ++i) {
        if (std::ranges::contains(parameter_options, command[i]) && command[i + 1] == "pml") {
            return command[i + 2];
        }
    }
    return std::nullopt;
}

bool allows_ucx(std::string_view pml)
{
    const bool is_without = pml.starts_with('^');
    const bool names_ucx  = std::ranges::any_of(pml.substr(is_without ? 1 : 0) | std::views::split(','),
                                                [](auto name) { return std::string_view(name) == "ucx"; });
    return names_ucx != is_without;
}

std::string quoted(const std::vector<std::string>& command)
{
    std::string made;
    for (const std::string& word : command) {
        made += (made.empty() ? "" : " ") + quoted_word(word);
    }
    return made;
}

} // namespace ucxl::mpi_run
