#include "settings.h"

#include "sys/size_text.h"

#include <array>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <ucp_layout.h>
#include <unistd.h>

namespace ucxl::mpi
{

namespace
{

[[gnu::format(printf, 2, 0)]] void log_line(const char* level, const char* format, va_list arguments)
{
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    std::fprintf(stderr, "ucx-layout-mpi %s  %s\n", level, text);
}

std::string lower(const char* text)
{
    std::string made(text);
    for (char& each : made) {
        each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
    return made;
}

void complain(const char* name, const char* value, const char* allowed)
{
    log_error("%s=%s is not one of: %s; the default is used", name, value, allowed);
}

void read_yes(const char* name, const char* value, bool& setting)
{
    if (value == nullptr) {
        return;
    }
    const std::string text = lower(value);
    if (text == "y" || text == "yes" || text == "1" || text == "on") {
        setting = true;
    } else if (text == "n" || text == "no" || text == "0" || text == "off") {
        setting = false;
    } else {
        complain(name, value, "y, n");
    }
}

void read_bytes(const char* name, const char* value, const char* automatic, std::optional<std::size_t>& setting)
{
    if (value == nullptr || (automatic != nullptr && lower(value) == automatic)) {
        return;
    }
    if (const auto size = read_size(value)) {
        setting = *size;
    } else {
        complain(name, value, "a number of bytes such as 4k, auto, inf");
    }
}

// "auto", or a word that sets the setting.
void read_choice(const char* name, const char* value, const char* word, bool& setting)
{
    if (value == nullptr) {
        return;
    }
    if (const std::string text = lower(value); text == word || text == "auto") {
        setting = text == word;
    } else {
        complain(name, value, ("auto, " + std::string(word)).c_str());
    }
}

void read_calls(const char* name, const char* value, settings& made)
{
    if (value == nullptr) {
        return;
    }
    settings chosen       = made;
    chosen.takes_messages = chosen.takes_packs = chosen.takes_collectives = chosen.takes_one_sided = false;
    const std::string text                                                                         = lower(value) + ",";
    for (std::size_t start = 0, end = 0; (end = text.find(',', start)) != text.npos; start = end + 1) {
        const std::string word = text.substr(start, end - start);
        if (word == "messages") {
            chosen.takes_messages = true;
        } else if (word == "pack") {
            chosen.takes_packs = true;
        } else if (word == "collectives") {
            chosen.takes_collectives = true;
        } else if (word == "onesided") {
            chosen.takes_one_sided = true;
        } else if (!word.empty()) {
            complain(name, value, "messages, pack, collectives, onesided, or several of them with commas");
            return;
        }
    }
    made = chosen;
}

// Where options are, one place after the other. An option of the environment is not looked for in a file.
class option_source
{
public:
    const char* value(const char* name)
    {
        if (!_is_environment) {
            const bool is_set = !_in_environment.contains(name) &&
                                ucp_layout_option_query(name + ucx_prefix.size(), _text.data(), _text.size()) == UCS_OK;
            return is_set ? _text.data() : nullptr;
        }
        const char* const found = std::getenv(name);
        if (found != nullptr) {
            _in_environment.emplace(name);
        }
        return found;
    }
    void use_files() { _is_environment = false; }

private:
    static constexpr std::string_view ucx_prefix = "UCX_";

    bool _is_environment = true;
    std::set<std::string, std::less<>> _in_environment;
    std::array<char, 256> _text{};
};

void read(option_source& source, settings& made)
{
    const auto each = [&](auto&& reader, const char* name, auto&&... how) {
        reader(name, source.value(name), std::forward<decltype(how)>(how)...);
    };
    each(read_yes, "UCX_LAYOUT_MPI_ENABLE", made.is_enabled);
    each(read_calls, "UCX_LAYOUT_MPI_CALLS", made);
    each(read_choice, "UCX_LAYOUT_MPI_TYPES", "all", made.takes_all_types);
    each(read_choice, "UCX_LAYOUT_MPI_ENGINE", "windows", made.always_takes_windows);
    each(read_bytes, "UCX_LAYOUT_MPI_MIN_SIZE", "auto", made.min_size);
    std::optional<std::size_t> windows;
    each(read_bytes, "UCX_LAYOUT_MPI_WINDOWS", nullptr, windows);
    made.idle_windows = windows.value_or(made.idle_windows);
    each(read_yes, "UCX_LAYOUT_MPI_ONE_PASS", made.is_one_pass);
    each(read_yes, "UCX_LAYOUT_MPI_STATIC_ARRAYS", made.shares_static_arrays);
    each(read_yes, "UCX_LAYOUT_MPI_REPORT", made.has_report);
    each(read_yes, "UCX_LAYOUT_MPI_STATUS", made.tells_status);
    each(read_choice, "UCX_LAYOUT_MPI_PML", "ucx", made.prefers_ucx);
}

struct read_settings {
    option_source source;
    settings values;
    bool has_files = false;

    read_settings() { read(source, values); }
};

read_settings& only()
{
    static read_settings& made = *new read_settings;
    return made;
}

} // namespace

const settings& settings::get()
{
    return only().values;
}

void settings::complete()
{
    read_settings& all = only();
    if (all.has_files || !has_ucx()) {
        return;
    }
    all.has_files = true;
    all.source.use_files();
    read(all.source, all.values);
}

bool has_ucx() noexcept
{
    std::array<char, 8> value{};
    return ucp_layout_option_query("TLS", value.data(), value.size()) != UCS_ERR_NO_DEVICE;
}

hidden_options::hidden_options()
{
    settings::get();
    constexpr std::string_view prefix = "UCX_LAYOUT_MPI_";
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view line(*each);
        const std::size_t end = line.find('=');
        if (line.starts_with(prefix) && end != line.npos) {
            _options.emplace_back(line.substr(0, end), line.substr(end + 1));
        }
    }
    for (const auto& [name, value] : _options) {
        unsetenv(name.c_str());
    }
}

hidden_options::~hidden_options()
{
    for (const auto& [name, value] : _options) {
        setenv(name.c_str(), value.c_str(), 1);
    }
}

bool is_logged_info()
{
    static const bool is_logged = [] {
        const char* const level = std::getenv("UCX_LOG_LEVEL");
        const std::string text  = lower(level == nullptr ? "warn" : level);
        return text != "fatal" && text != "error" && text != "warn" && text != "diag";
    }();
    return is_logged;
}

void log_info(const char* format, ...)
{
    if (is_logged_info()) {
        va_list arguments;
        va_start(arguments, format);
        log_line("INFO", format, arguments);
        va_end(arguments);
    }
}

void log_warn(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line("WARN", format, arguments);
    va_end(arguments);
}

void log_error(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line("ERROR", format, arguments);
    va_end(arguments);
}

} // namespace ucxl::mpi
