#include "svg.h"

#include <fmt/format.h>
#include <iterator>

namespace ucxl::info
{

std::string escape_xml(std::string_view text)
{
    std::string escaped;
    for (const char c : text) {
        switch (c) {
        case '&':
            escaped += "&amp;";
            break;
        case '<':
            escaped += "&lt;";
            break;
        case '>':
            escaped += "&gt;";
            break;
        case '"':
            escaped += "&quot;";
            break;
        default:
            escaped += (c >= ' ' && c <= '~') || c == '\n' ? c : '?';
        }
    }
    return escaped;
}

void svg_picture::add_rect(const rectangle& place, std::string_view attributes, std::string_view hint)
{
    fmt::format_to(std::back_inserter(_shapes), R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" {})",
                   place.x, place.y, place.width, place.height, attributes);
    _shapes += hint.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_xml(hint));
}

void svg_picture::add_band(const rectangle& from, const rectangle& to, std::string_view attributes)
{
    fmt::format_to(std::back_inserter(_shapes),
                   R"(<polygon points="{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}" {}/>)"
                   "\n",
                   from.x, from.bottom(), from.right(), from.bottom(), to.right(), to.y, to.x, to.y, attributes);
}

void svg_picture::add_line(double x1, double y1, double x2, double y2, std::string_view attributes)
{
    fmt::format_to(std::back_inserter(_shapes),
                   R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" {}/>)"
                   "\n",
                   x1, y1, x2, y2, attributes);
}

void svg_picture::add_text(double x, double y, std::string_view attributes, std::string_view text)
{
    fmt::format_to(std::back_inserter(_shapes),
                   R"(<text x="{:.2f}" y="{:.2f}" {}>{}</text>)"
                   "\n",
                   x, y, attributes, escape_xml(text));
}

std::string svg_picture::text(double height, std::string_view title) const
{
    const double height_inside = height - 1, width_inside = _width - 1;
    return fmt::format(R"(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}"
     font-family="sans-serif" font-size="11" fill="#24292f">
<title>{2}</title>
<rect x="0.5" y="0.5" width="{3:.1f}" height="{4:.1f}" rx="6" fill="#ffffff" stroke="#d0d7de"/>
{5}</svg>
)",
                       _width, height, escape_xml(title), width_inside, height_inside, _shapes);
}

} // namespace ucxl::info
